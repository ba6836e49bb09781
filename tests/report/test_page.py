"""The report page, in a real browser: it works, it asks for nothing, and its text stays text."""

import math
import re
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from in_browser import eventually, in_a_browser, opened_page, shown
from playwright.sync_api import Locator, expect

from safari.report.page import Curves, Entry, Heat, Line, Page, Table, Text, render

EVIL = (
    """</script><script>window.hacked = 1</script><img src=x onerror="hacked = 1">'"&amp; {{ 7 * 7 }} %{y}"""
)
ROUNDS = tuple(range(1, 42))
ALT = 'Two curves that rise, "quoted"'

RESULTS = Table(
    "results",
    f"Results {EVIL}",
    f"Caption {EVIL}",
    (f"Algorithm {EVIL}", "Ours", "Difference"),
    (
        (Entry("FedAvg", hint=EVIL), Entry("91.0", 91.0), Entry("+2.0", 2.0, 2.0)),
        (Entry(f"SAFARI {EVIL}"), Entry("missing"), Entry("-9.0", -9.0, -9.0)),
        (Entry("FedProx 10"), Entry("100.0", 100.0), Entry("0.0", 0.0, 0.0)),
        (Entry("FedProx 9"), Entry("diverged", math.nan), Entry("0.0", 0.0, math.nan)),
        (Entry("Scaffold"), Entry("9.5", 9.5), Entry("missing")),
    ),
)
CURVES = Curves(
    "curves",
    "Curves",
    f"Caption {EVIL}",
    ALT,
    f"round {EVIL}",
    f"accuracy {EVIL}",
    (
        Line(
            "rises",
            ROUNDS,
            tuple(r + 0.5 for r in ROUNDS),
            tuple(r - 1.0 for r in ROUNDS),
            tuple(r + 1.0 for r in ROUNDS),
        ),
        Line(
            f"stops {EVIL}", ROUNDS[:3], (5.0, math.nan, math.inf), (4.0, math.nan, 1.0), (6.0, math.nan, 2.0)
        ),
    ),
)
HEAT = Heat(
    "heat",
    "Heat",
    "",
    f"Heat map {EVIL}",
    f"q {EVIL}",
    "rate",
    ("0.5", "0.5", EVIL),
    ("small", "large"),
    ((-12.5, 0.0, 3.25), (1.0, None, math.nan)),
)
WIDE = Table(
    "wide", "Wide", "", tuple(f"a long column {i}" for i in range(12)), ((Entry("some words"),) * 12,)
)
REPORT = Page(
    f"Report {EVIL}",
    f"Subtitle {EVIL}",
    (Text("text", "Text", (f"Paragraph {EVIL}", "word" * 60)), RESULTS, CURVES, HEAT, WIDE),
    f'name = "{EVIL}"\nlong = "{"x" * 300}"\n',
    {f"fact {EVIL}": EVIL, "command": "y" * 200},
)


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory) -> Iterator[SimpleNamespace]:
    """The one page that all tests share, for it takes seconds to load, and all that it did since."""
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(render(REPORT), encoding="utf-8")
    page, asked, complaints = opened_page(browser), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri())
    yield SimpleNamespace(page=page, url=file.as_uri(), asked=asked, complaints=complaints)
    page.close()


@pytest.fixture
def page(opened):
    """As a desktop shows it."""
    opened.page.mouse.move(0, 0)
    yield shown(opened.page, 1100, "light", height=800)
    assert opened.asked == [opened.url], "the page asked for more than its own file"
    assert opened.complaints == []
    assert opened.page.evaluate("window.hacked") is None


def column(page, number: int) -> list[str]:
    return page.locator(f"#results tbody tr > :nth-child({number})").all_inner_texts()


def heading(page, number: int) -> Locator:
    return page.locator("#results thead th").nth(number - 1)


def sort_orders(page) -> list[str]:
    return page.locator("#results th[aria-sort]").evaluate_all("heads => heads.map(head => head.ariaSort)")


@in_a_browser
def test_every_text_is_shown_as_written(page):
    assert page.title() == f"Report {EVIL}"
    assert page.locator("h1").text_content() == f"Report {EVIL}"
    assert page.locator("#results h2").text_content() == RESULTS.title
    assert page.locator("#_record code").text_content() == REPORT.spec
    assert page.locator(".hint").get_attribute("title") == EVIL
    assert page.locator("#heat .plot").get_attribute("aria-label") == HEAT.alt
    assert EVIL in page.locator("#_record .facts").text_content()
    assert EVIL in page.locator("#curves .legend").text_content()
    for axis in ("xtitle", "gtitle"):
        assert EVIL in page.locator(f"#curves .{axis}").text_content()
    assert EVIL in page.locator("#heat .xtick text").last.text_content()


@in_a_browser
def test_the_contents_lead_to_every_block(page):
    links = page.locator("nav a").evaluate_all("links => links.map(link => link.hash.slice(1))")
    assert links == ["text", "results", "curves", "heat", "wide", "_record"]
    assert all(page.locator(f"[id='{link}']").count() == 1 for link in links)


@in_a_browser
def test_a_click_on_a_heading_sorts_by_value_with_missing_last(page):
    written = column(page, 2)
    heading(page, 2).locator("button").click()
    assert column(page, 2) == ["9.5", "91.0", "100.0", "missing", "diverged"]
    assert sort_orders(page) == ["ascending"]
    heading(page, 2).locator("button").click()
    assert column(page, 2) == ["100.0", "91.0", "9.5", "missing", "diverged"]
    assert sort_orders(page) == ["descending"]
    heading(page, 2).locator("button").click()
    assert column(page, 2) == written
    assert sort_orders(page) == []


@in_a_browser
def test_the_keyboard_sorts_and_equal_rows_keep_their_order(page):
    heading(page, 2).locator("button").focus()
    page.keyboard.press("Tab")
    expect(heading(page, 3).locator("button")).to_be_focused()
    assert (
        heading(page, 3).locator("button").evaluate("button => getComputedStyle(button).outlineStyle")
        == "solid"
    )
    page.keyboard.press("Enter")
    assert column(page, 3) == ["-9.0", "0.0", "0.0", "+2.0", "missing"]
    assert column(page, 1)[1:3] == ["FedProx 10", "FedProx 9"]
    page.keyboard.press("Space")
    assert column(page, 3) == ["+2.0", "0.0", "0.0", "-9.0", "missing"]
    assert column(page, 1)[1:3] == ["FedProx 10", "FedProx 9"]
    assert sort_orders(page) == ["descending"]


@in_a_browser
def test_a_column_of_words_sorts_by_its_words(page):
    heading(page, 1).locator("button").click()
    assert [text.split(" <")[0] for text in column(page, 1)] == [
        "FedAvg",
        "FedProx 9",
        "FedProx 10",
        "SAFARI",
        "Scaffold",
    ]
    assert heading(page, 1).get_attribute("aria-sort") == "ascending"
    assert len(sort_orders(page)) == 1


@in_a_browser
def test_cells_are_coloured_by_the_sign_and_size_of_their_shade(page):
    strengths = {
        cell.inner_text(): re.findall(r"--(more|less).*--strength: ([\d.]+)", cell.get_attribute("style"))[0]
        for cell in page.locator("#results tbody .shaded").all()
    }
    assert strengths == {"+2.0": ("more", "0.400"), "-9.0": ("less", "1.000")}


@in_a_browser
def test_hovering_over_curves_shows_the_values_there(page):
    plot = page.locator("#curves .plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)
    hover = page.locator("#curves .hoverlayer")
    expect(hover).to_contain_text("rises : ")
    shown = re.search(r"rises : ([\d.]+) \(([\d.]+) to ([\d.]+)\)", hover.text_content())
    mean, low, high = map(float, shown.groups())
    assert mean - 0.5 in ROUNDS
    assert (low, high) == (mean - 1.5, mean + 0.5)
    assert f"round {EVIL}" in hover.text_content()


@in_a_browser
def test_a_line_can_be_hidden_and_shown_by_its_name(page):
    lines = page.locator("#curves .scatterlayer .trace")
    expect(lines).to_have_count(4)
    page.get_by_label("rises").uncheck()
    expect(lines).to_have_count(2)
    page.get_by_label("rises").check()
    expect(lines).to_have_count(4)


@in_a_browser
def test_missing_cells_of_a_heat_map_say_so(page):
    expect(page.locator("#heat .annotation-text")).to_have_text(["missing", "missing"])
    expect(page.locator("#heat .heatmap-label")).to_have_text(["−12.5", "0.0", "3.2", "1.0"])


@in_a_browser
def test_figures_have_an_alternative_and_their_numbers_as_a_table(page):
    expect(page.get_by_role("img", name=ALT, exact=True)).to_have_count(1)
    page.locator("#heat summary").press("Enter")
    assert page.locator("#heat .data tbody").inner_text().split() == [
        *("small", "-12.5", "0.0", "3.2"),
        *("large", "1.0", "missing", "missing"),
    ]
    rows = page.locator("#curves .data tbody tr")
    assert rows.count() == len(ROUNDS)
    assert rows.first.locator("th, td").all_text_contents() == ["1", "1.5", "0.0", "2.0", "5.0", "4.0", "6.0"]
    assert rows.last.locator("td").all_text_contents()[3:] == ["missing"] * 3


@in_a_browser
def test_a_figure_is_saved_as_svg(page):
    with page.expect_download() as download:
        page.locator("#curves .save").click()
    assert download.value.suggested_filename == "curves.svg"
    assert "rises" in download.value.path().read_text()


@in_a_browser
def test_a_phone_never_scrolls_the_page_sideways(page):
    shown(page, 360, "light", height=740)
    expect(page.locator("#curves .main-svg").first).to_have_attribute("width", "328")
    beyond = "Math.max(0, document.documentElement.scrollWidth - innerWidth)"
    assert eventually(lambda: page.evaluate(beyond), 0) == 0
    boxes = page.locator(".block > .scroll")
    widest = "boxes => Math.max(0, ...boxes.map(box => box.scrollWidth - box.clientWidth))"
    assert eventually(lambda: boxes.evaluate_all(widest), 0) == 0, (
        "a wide table's cells stand below one another"
    )


@in_a_browser
def test_a_dark_screen_has_a_dark_page_and_dark_plots(page):
    shown(page, 1100, "dark", height=800)
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert max(map(int, re.findall(r"\d+", background))) < 60
    expect(page.locator("#curves .main-svg").first).to_have_css("background-color", background)


@in_a_browser
def test_paper_is_light_and_has_headings_but_no_buttons(page):
    shown(page, 1100, "dark", height=800)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("button:visible, nav:visible, .data:visible, .legend input:visible")).to_have_count(0)
    printed = heading(page, 2).evaluate("head => getComputedStyle(head, '::before').content")
    assert printed == '"Ours"'
    expect(page.locator("#_record code")).to_be_visible()
    for place in ("html", "#curves .main-svg >> nth=0"):
        expect(page.locator(place)).to_have_css("background-color", "rgb(255, 255, 255)")

    def covered() -> bool:
        drawn = page.locator("#curves .main-svg").first.bounding_box()
        return drawn["y"] + drawn["height"] > page.locator("#curves figcaption").bounding_box()["y"]

    assert eventually(covered, False) is False, "the picture covers its caption"


def test_only_figures_need_the_plotting_library():
    without = render(Page("Words", "", (Text("text", "Text", ("One.",)), RESULTS), "", {}))
    assert len(without) < 60_000
    assert "plotly.js v" not in without
    assert render(REPORT).count("plotly.js v") == 1


def test_keys_are_links_and_belong_to_one_block():
    text = Text("one", "One", ())
    with pytest.raises(ValueError, match="'one': belongs to two blocks"):
        Page("", "", (text, text), "", {})
    with pytest.raises(ValueError, match="'a b': a letter, then"):
        Page("", "", (Text("a b", "", ()),), "", {})


def test_blocks_whose_lengths_differ_are_refused():
    with pytest.raises(ValueError, match="table t: row 0: 1 long, but columns is 2 long"):
        Table("t", "", "", ("a", "b"), ((Entry("1"),),))
    with pytest.raises(ValueError, match="line l: low: 0 long, but x is 1 long"):
        Line("l", (1.0,), (1.0,), (), (1.0,))
    with pytest.raises(ValueError, match="heat map h: row 0 of values: 1 long, but x is 2 long"):
        Heat("h", "", "", "", "", "", ("a", "b"), ("c",), ((1.0,),))
