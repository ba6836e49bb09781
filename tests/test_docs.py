"""The docs say what the software does."""

import contextlib
import io
import json
import re
import sys
from importlib import import_module
from pathlib import Path

import safari

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"\d+\.\d+")


def test_the_readme_opens_with_a_program_and_its_output():
    program, output = re.findall(r"```(?:python)?\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[:2]
    assert len([line for line in program.splitlines() if line and not line.startswith("import")]) <= 5
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    assert NUMBER.sub("", printed.getvalue()) == NUMBER.sub("", output)
    for ours, written in zip(NUMBER.findall(printed.getvalue()), NUMBER.findall(output), strict=True):
        assert abs(float(ours) - float(written)) < 0.01


def test_the_spec_reference_is_up_to_date():
    sys.path.insert(0, str(ROOT / "docs"))
    from make_reference import reference

    assert (ROOT / "docs" / "spec.md").read_text() == reference(), "run: python docs/make_reference.py"


def test_the_methods_page_is_up_to_date():
    sys.path.insert(0, str(ROOT / "docs"))
    from make_methods import PAGE, methods

    assert PAGE.read_text(encoding="utf-8") == methods(), "run: python docs/make_methods.py"


def test_the_privacy_page_shows_the_committed_results():
    sys.path.insert(0, str(ROOT / "docs"))
    from make_privacy import page

    assert (ROOT / "docs" / "privacy.md").read_text() == page(), "run: python docs/make_privacy.py"


def test_the_league_page_shows_the_committed_results():
    sys.path.insert(0, str(ROOT / "docs"))
    from make_league import league

    assert (ROOT / "docs" / "league.md").read_text() == league(), "run: python docs/make_league.py"


def test_the_page_of_flowers_examples_shows_the_committed_results():
    sys.path.insert(0, str(ROOT / "docs"))
    from make_flower_examples import PAGE, page

    assert PAGE.read_text() == page(), "run: python docs/make_flower_examples.py"


def test_the_readme_says_how_the_best_form_of_safari_did_in_the_league():
    sys.path.insert(0, str(ROOT / "docs"))
    from make_league import best_form, read_tables

    form, beside = best_form(read_tables())
    assert form == "clg-sgd + scaffold + average"
    first = sum(rank == 1 for rank, _, _ in beside.values())
    said = " ".join((ROOT / "README.md").read_text().split())
    assert f"is first in {first} of {len(beside)} settings and nowhere worse than the best method" in said
    assert all(apart.high >= 0 for _, _, apart in beside.values())
    settings = json.loads((ROOT / "benchmarks" / "results" / "forms.json").read_text())["settings"]
    apart = [of["forms"][form]["less_safari"] for of in settings.values()]
    better, worse = sum(one["low"] > 0 for one in apart), sum(one["high"] < 0 for one in apart)
    assert f"beats the paper's form in {better} of {len(apart)} settings and is worse in {worse}" in said


def test_the_reproduction_page_shows_the_committed_results():
    sys.path.insert(0, str(ROOT / "docs"))
    from make_reproduction import reproduction

    written = (ROOT / "docs" / "reproduction.md").read_text()
    assert written == reproduction(), "run: python docs/make_reproduction.py"


def test_links_in_the_docs_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_public_name_has_an_api_page():
    sys.path.insert(0, str(ROOT / "docs" / "website"))
    from api import pages, rooms_of_names

    documented = {name: path for names in rooms_of_names().values() for name, path in names.items()}
    entries = {entry for page in pages().values() for entry in re.findall(r"^::: (.+)$", page, re.MULTILINE)}
    assert len(safari.__all__) == len(set(safari.__all__))
    for name in safari.__all__:
        module, _, attribute = documented[name].rpartition(".")
        assert getattr(import_module(module), attribute) is getattr(safari, name), name
        assert documented[name] in entries, name


def test_the_theory_page_shows_what_its_quick_commands_print():
    sys.path.insert(0, str(ROOT / "docs"))
    from make_theory import OUTPUT, PAGE, printed

    page = PAGE.read_text(encoding="utf-8")
    quick = [found for found in OUTPUT.finditer(page) if "--out" not in found["command"]]
    assert len(quick) == 3
    for found in quick:
        assert printed(found["command"]) in found.group(), (
            f"run: python docs/make_theory.py ({found['command']})"
        )
