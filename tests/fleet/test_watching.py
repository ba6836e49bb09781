"""A fleet of real processes is watched: its page in a browser, its metrics by Prometheus's parser."""

import re
import subprocess
import urllib.request
from collections.abc import Iterator

import pytest
from fleet_processes import BIN, NAUGHTY, PATIENCE, Fleet, deployed, environment, free_port, wait_for
from in_browser import browser, in_a_browser  # noqa: F401
from prometheus_client.parser import text_string_to_metric_families

DONE = re.compile(r"(\d+) of 999 rounds are done")


@pytest.fixture
def fleet(tmp_path) -> Iterator[Fleet]:
    """Clients 0, 1 and 7."""
    with deployed(NAUGHTY, tmp_path / "work", "--nodes", "10", "--only", "0 1 7") as fleet:
        yield fleet


@in_a_browser
def test_the_page_and_the_metrics_of_a_running_fleet(fleet, browser):  # noqa: F811
    state, port = fleet.work / "watched", free_port()
    config = {"checkpoint": str(state), "deadline": PATIENCE, "nan": 0, "shape": 1, "metrics_port": str(port)}
    run = fleet.start(NAUGHTY, rounds=999, q=0.8, **config)
    for client in (0, 1):
        fleet.wait_until(f"client {client} rejected")
    command = [BIN / "safari", "report", state, "--serve", "--port", "0"]
    serving = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        page = browser.new_page()
        page.goto(serving.stdout.readline().strip(), timeout=1000 * PATIENCE)
        first = rounds_on(page)
        wait_for(lambda: rounds_on(page) > first, fleet.said)  # it loads itself anew
        shown = page.inner_text("body")
        page.screenshot(path=fleet.work / "page.png", full_page=True)
        page.close()
        before = rounds_said(fleet)
        metrics = read(port)
        wait_for(lambda: rounds_said(fleet) >= metrics["safari_round"], fleet.said)  # the log comes later
    finally:
        serving.terminate()
        serving.communicate(timeout=PATIENCE)
        fleet.kill("flwr-serverapp")
        run.kill()
        run.wait()
    assert "w is not finite" in shown
    assert "w has shape (5,)" in shown
    assert "unfinished" in shown
    assert metrics["safari_round"] >= before - 1
    assert metrics["safari_replies_total", "not finite", "rejected"] >= 1
    assert metrics["safari_replies_total", "shape", "rejected"] >= 1
    assert metrics["safari_replies_total", "", "answered"] >= 1
    assert metrics["safari_reply_seconds_sum"] > 0
    assert metrics["safari_checkpoint_seconds_count"] == metrics["safari_round"]
    assert ("safari_client_last_reply_timestamp_seconds", "7") in metrics


def rounds_on(page) -> int:
    found = DONE.search(page.inner_text("body"))
    return int(found.group(1)) if found else 0


def rounds_said(fleet) -> int:
    return len(re.findall(r"round \d+ of 999: (?:client|server|idle)", fleet.said()))


def read(port: int) -> dict:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    samples = [sample for family in families for sample in family.samples]
    return {(one.name, *one.labels.values()) if one.labels else one.name: one.value for one in samples}
