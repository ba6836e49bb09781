"""A real browser for the tests of pages; where none is installed, they are skipped and say so."""

import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_a_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on the PATH: install the package chromium"
)
PATIENCE = 30  # seconds: a machine with other work to do takes its time
expect.set_options(timeout=PATIENCE * 1000)

# The screen itself may be late: until it is what was asked for, nothing was drawn anew.
# Plotly writes its titles last.
TAKEN = """([width, scheme]) => {
  if (innerWidth !== width || !matchMedia(`(prefers-color-scheme: ${scheme})`).matches) return false;
  const muted = getComputedStyle(document.documentElement).getPropertyValue("--muted").trim();
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = muted;
  const ink = getComputedStyle(probe).color;
  probe.remove();
  return [...document.querySelectorAll(".plot")].every((plot) =>
    Math.abs(plot.querySelector(".main-svg").clientWidth - plot.clientWidth) <= 1 &&
    [...plot.querySelectorAll(".gtitle, .xtitle")].every((title) => getComputedStyle(title).fill === ink));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=120_000)
        yield browser
        browser.close()


def opened_page(browser: Browser) -> Page:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    return page


def shown(page: Page, width: int, scheme: str, height: int = 900) -> Page:
    """The page on such a screen, once its figures have taken its size and its colours."""
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(media="screen", color_scheme=scheme)
    page.wait_for_function(TAKEN, arg=[width, scheme])
    return page


def eventually(measure: Callable[[], Any], wanted: Any) -> Any:
    """What is measured, as soon as it is what is wanted; else what it still is when patience ends.

    Plotly draws a figure in several steps, and once more a moment after the screen has changed its size:
    whoever measures in between sees half of it.
    """
    end = time.monotonic() + PATIENCE
    while (found := measure()) != wanted and time.monotonic() < end:
        time.sleep(0.1)
    return found
