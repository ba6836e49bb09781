"""The gallery's pages run, and print what they show."""

import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))
from make_gallery import PAGES, prepare, rendered  # noqa: E402

NUMBER = re.compile(r"\d+\.\d+")
CLOSE = {"percent": 2.5, "fraction": 0.02}
"""How far results may lie apart on two machines: rounding moves a test sample or two, and intervals more."""


def test_there_is_a_gallery():
    assert len(PAGES) >= 3


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_page_of_the_gallery_prints_what_it_shows(path, tmp_path):
    prepare(path, tmp_path)
    written = path.read_text(encoding="utf-8")
    fresh = rendered(written, tmp_path)
    assert squeezed(fresh) == squeezed(written), "run: python docs/make_gallery.py"
    for ours, shown in zip(NUMBER.findall(fresh), NUMBER.findall(written), strict=True):
        unit = "fraction" if len(shown.partition(".")[2]) > 2 else "percent"
        assert abs(float(ours) - float(shown)) <= CLOSE[unit]
    for picture in re.findall(r"\]\(([^)]+\.png)\)", written):
        assert (tmp_path / picture).is_file()


def squeezed(page: str) -> str:
    """The page without its numbers, without the rules of tables, whose width follows from them, and without
    names that follow from numbers: the worst client's, in brackets."""
    plain = re.sub(r"% \(\w+\)", "%", re.sub(r"\d+", "", NUMBER.sub("", page)))
    return re.sub(r"[\s\u2500-\u257f-]+", " ", plain)
