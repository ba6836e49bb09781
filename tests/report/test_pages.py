"""The five pages in a real browser: on a desk and on a phone, on a light and on a dark screen."""

import itertools
import re

import numpy as np
import polars as pl
import pytest
from in_browser import eventually, in_a_browser, opened_page, shown
from playwright.sync_api import expect
from sample_pages import COMPARED, PAGES

from safari.report.colours import algorithm_inks, ordered_inks, plain_inks
from safari.report.curves import comparison_figure
from safari.report.page import Heat, render
from safari.report.page_figures import drawing
from safari.report.sweep_page import sweep_page

DESK, PHONE = 1400, 400
SCREENS = [*itertools.product((DESK, PHONE), ("light", "dark"))]

CONTRASTS = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (part) => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4;
  const scale = (colour) => colour.startsWith("color(") ? 1 : 255;
  const luminance = (colour) => {
    const [r, g, b] = numbers(colour.replace("color(srgb", "")).map((part) => linear(part / scale(colour)));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (!/, 0\\)$|transparent/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
    if (/SCRIPT|STYLE|NOSCRIPT/.test(element.tagName)) continue;
    const style = getComputedStyle(element);
    const ink = element.closest("svg.main-svg") ? style.fill : style.color;
    const [one, two] = [luminance(ink), luminance(behind(element))].sort((a, b) => b - a);
    found.push([(one + .05) / (two + .05), walker.currentNode.textContent.trim().slice(0, 40)]);
  }
  return found;
}"""
BEYOND = "Math.max(0, document.documentElement.scrollWidth - innerWidth)"
CLIPPED = """() => [...document.querySelectorAll(".block .scroll, .block :is(th, td):not(.track)")]
  .filter((box) => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1)
  .map((box) => `${box.closest("section").id}, ${box.textContent.trim().slice(0, 30)}: ` +
    `${box.scrollWidth} in ${box.clientWidth}`)"""
STROKES = """() => Object.fromEntries([...document.querySelectorAll("[data-kind=curves]")].map((figure) => [
  figure.closest("section").id,
  Object.fromEntries([...figure.querySelectorAll(".legend li")].map((line) => {
    const style = getComputedStyle(line.querySelector(".swatch"));
    return [line.textContent.trim(), [style.stroke, parseFloat(style.strokeWidth)]];
  })),
]))"""
DRAWN = """() => [...document.querySelectorAll("#curves0 .scatterlayer .trace path.js-line")]
  .map((line) => [line.style.stroke, parseFloat(line.style.strokeWidth)])
  .filter(([_, width]) => width > 0)"""


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    """The pages, each loaded once."""
    folder, found = tmp_path_factory.mktemp("pages"), {}
    for name, make in PAGES.items():
        file = folder / f"{name}.html"
        # A page that loads itself anew would do so in the middle of a test.
        file.write_text(re.sub(r'<meta http-equiv="refresh".*>', "", render(make())), encoding="utf-8")
        found[name] = opened_page(browser)
        found[name].goto(file.as_uri())
    return found


@in_a_browser
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_clipped_or_hard_to_read(opened, name, width, scheme):
    page = shown(opened[name], width, scheme)
    assert eventually(lambda: page.evaluate(BEYOND), 0) == 0, "the page scrolls sideways"
    assert eventually(lambda: page.evaluate(CLIPPED), []) == [], "columns are cut off"
    assert eventually(lambda: faint(page), []) == [], "words hardly stand out from what is behind them"


def faint(page):
    return [(round(ratio, 2), text) for ratio, text in page.evaluate(CONTRASTS) if ratio < 4.5]


@in_a_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_safari_has_the_strongest_line_and_every_algorithm_one_colour(opened, scheme):
    page = shown(opened["comparison"], DESK, scheme)
    figures = page.evaluate(STROKES)
    assert len(figures) == 2
    for lines in figures.values():
        widths = {name: width for name, (_, width) in lines.items()}
        assert widths.pop("SAFARI") >= 1.5 * max(widths.values())
    colours = {name: {lines[name][0] for lines in figures.values()} for name in figures["recall"]}
    assert all(len(found) == 1 for found in colours.values())
    assert len(set.union(*colours.values())) == len(colours), "two algorithms look alike"
    fills = page.locator("#classes .fill").evaluate_all(
        "fills => fills.map(fill => [fill.closest('tr').querySelector('th').textContent.trim(), "
        "getComputedStyle(fill).backgroundColor])"
    )
    assert {name: {colour for who, colour in fills if who == name} for name, _ in fills} == colours
    # The strongest line lies on top: it is drawn last.
    drawn = sorted(figures["curves0"].values(), key=lambda line: line[1])
    assert eventually(lambda: sorted(page.evaluate(DRAWN)), sorted(drawn)) == sorted(drawn)
    assert page.evaluate(DRAWN)[-1] == drawn[-1], "SAFARI's line lies on top"


@in_a_browser
def test_pictures_have_the_colours_of_the_page(opened):
    lines = shown(opened["comparison"], DESK, "light").evaluate(STROKES)["curves0"]
    histories = {
        row["algorithm"]: [pl.DataFrame({"round": [1, 2], "accuracy": [0.4, 0.5]})]
        for row in ({"algorithm": "fedavg"}, {"algorithm": "server-only"}, {"algorithm": "safari"})
    }
    (axes,) = comparison_figure(histories, 0.95).axes
    assert len(axes.lines) == 4
    for line in axes.lines:
        name = line.get_label().partition(":")[0]
        red, green, blue = (int(line.get_color()[at : at + 2], 16) for at in (1, 3, 5))
        (on_page,) = (stroke for label, (stroke, _) in lines.items() if label.partition(":")[0] == name)
        assert on_page == f"rgb({red}, {green}, {blue})", name


@in_a_browser
def test_the_ceiling_is_drawn_and_named(opened):
    for name, key in (("comparison", "curves0"), ("run", "curves"), ("sweep", "curves0")):
        lines = opened[name].evaluate(STROKES)[key]
        assert "ceiling of client-only training: 95.0 %" in lines, name


def test_one_cell_far_below_the_others_does_not_leave_these_in_one_colour():
    values = (57.0, 90.0, 91.0, 92.0, 93.0, 94.0, 95.0)
    names = tuple(map(str, values))
    shades = drawing(Heat("h", "", "", "", "", "", names, ("one",), (values,)))["shades"]
    places, strengths = zip(*shades, strict=True)
    at = [np.interp((value - 57) / (95 - 57), places, strengths) for value in values]
    assert at[0] == 0
    assert at[-1] == 1
    assert at[-1] - at[1] > 0.4
    assert min(np.diff(at)) > 0.03


@in_a_browser
def test_the_page_of_an_unfinished_fleet_loads_itself_anew(browser, tmp_path):
    file = tmp_path / "fleet.html"
    html = render(PAGES["fleet"]())
    file.write_text(html.replace('content="5"', 'content="1"'), encoding="utf-8")
    page = opened_page(browser)
    page.goto(file.as_uri())
    following = tmp_path / "next.html"
    following.write_text("<title>The next round</title>", encoding="utf-8")
    following.replace(file)  # as safari writes it: never half
    expect(page).to_have_title("The next round")
    page.close()


def contrast(one: str, other: str) -> float:
    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_line_stands_out_from_white_and_from_dark():
    names = ["safari", "fedavg", "server-only", *"abcdef"]
    inks = [*algorithm_inks(names).values(), *plain_inks(6), *ordered_inks(10)]
    assert min(contrast(ink.light, "#ffffff") for ink in inks) >= 3
    assert min(contrast(ink.dark, "#14191e") for ink in inks) >= 3


def test_no_page_of_single_runs_speaks_of_seeds():
    one = pl.DataFrame([row for row in COMPARED if row["seed"] == 0])
    for page in (sweep_page("One", one, [], "", {}), PAGES["run"]()):
        assert not re.search(r"over \d+ seeds|over the seeds", render(page))
