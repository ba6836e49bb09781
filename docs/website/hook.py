"""The documentation site: pages that are not files of docs/, links that leave docs/, and formulas.

MkDocs calls the functions that begin with `on_`. The home page is the README, so that both say the same.
Formulas become MathML, which browsers draw without a script and without a network.
"""

import html
import posixpath
import re
import sys
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
from api import pages, title

ROOT = Path(__file__).parents[2]
AT_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(\]\()([^)#\s]+)")
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_config(config):
    """List the API pages, and pages that exist by now, in the navigation."""
    config.nav = [_filled(entry) for entry in config.nav if _exists(entry)]
    return config


def on_files(files, config):
    """Add the pages that are made here, and the files of the repository that pages link to."""
    for name, text in _made_pages().items():
        files.append(File.generated(config, name, content=text))
    for source in sorted(_linked_files()):
        files.append(File.generated(config, source, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Lead links to files outside docs/ to their copies in the site."""
    if page.file.src_uri in AT_ROOT.values() or page.file.src_uri.startswith("api/"):
        return markdown
    folder = posixpath.dirname(page.file.src_uri)
    return LINK.sub(lambda found: found[1] + _inside(f"docs/{folder}", found[2], folder), markdown)


def on_page_content(content, page, config, files):
    """Draw the formulas."""
    return FORMULA.sub(_drawn, content)


def _made_pages():
    at_root = {
        page: LINK.sub(lambda found: found[1] + _inside("", found[2], ""), (ROOT / source).read_text())
        for source, page in AT_ROOT.items()
    }
    return at_root | pages()


def _linked_files():
    """The files outside docs/ that some page links to, relative to the repository."""
    sources = [(ROOT / name, "") for name in AT_ROOT] + [
        (path, posixpath.join("docs", path.parent.relative_to(ROOT / "docs").as_posix()))
        for path in (ROOT / "docs").rglob("*.md")
    ]
    for path, folder in sources:
        for _, target in LINK.findall(path.read_text(encoding="utf-8")):
            place = posixpath.normpath(posixpath.join(folder, target))
            if not place.startswith("docs/") and place not in AT_ROOT and (ROOT / place).is_file():
                yield place


def _inside(folder, target, page_folder):
    """A link of a file in `folder` of the repository as a link of a page in `page_folder` of the site."""
    if ":" in target:
        return target
    place = posixpath.normpath(posixpath.join(folder, target))
    place = AT_ROOT.get(place, place.removeprefix("docs/"))
    return posixpath.relpath(place, page_folder or ".")


def _drawn(found):
    block = found["tag"] == "div"
    tex = html.unescape(found["tex"]).replace("\\lvert", "\\left|").replace("\\rvert", "\\right|")
    return convert(tex, display="block" if block else "inline")


def _filled(entry):
    if entry != {"API": "api/index.md"}:
        return entry
    made = pages()
    listed = [{title(Path(name).stem): name} for name in made if name != "api/index.md"]
    return {"API": ["api/index.md", *listed]}


def _exists(entry):
    name = next(iter(entry.values()))
    made = isinstance(name, list) or name in AT_ROOT.values() or name.startswith("api/")
    return made or (ROOT / "docs" / name).is_file()
