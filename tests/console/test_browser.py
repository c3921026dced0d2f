"""The console in a real browser: each page, a replay from click to completed job, the keyboard, and what goes wrong."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.console.contrast import CONTRAST

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.console.chromium import Chromium
    from tests.console.stage import Stage

    Alone = Callable[[int], tuple[subprocess.Popen[str], str]]

PAGES = (
    "/",
    "/letters",
    "/jobs",
    "/operations",
    "/locks",
    "/alarms",
    "/deeds",
    "/workers/payments",
    "/docs/runbooks/queue-age.md",
)


def test_who_opens_the_printed_address_is_in_and_the_token_leaves_the_address(browser: Chromium, stage: Stage) -> None:
    assert browser.evaluate("location.href") == f"{stage.here}/"
    assert browser.evaluate("document.cookie") == "", "no script reads the cookie"
    assert browser.evaluate("history.state") is None
    browser.sees("The stack")


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_page_is_readable_wide_and_narrow_light_and_dark(
    browser: Chromium, stage: Stage, path: str, scheme: str
) -> None:
    browser.prefer(scheme)
    browser.goto(f"{stage.here}{path}")
    assert browser.evaluate("document.querySelectorAll('main h1').length") == 1
    assert browser.evaluate("document.querySelector('[data-problem]')?.innerText") is None
    assert browser.evaluate(CONTRAST) == [], "WCAG AA: 4.5 to 1"
    browser.resize(360, 740)
    assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
        "nothing is cut off on a narrow screen"
    )
    browser.resize(1280, 900)
    browser.prefer("light")


def test_a_replay_goes_from_click_to_completed_job(browser: Chromium, stage: Stage) -> None:
    orders = [f"order-replay-{number}" for number in range(7)]
    operations = [stage.capture(order) for order in orders]
    browser.until(f"fetch('/jobs/{operations[-1]}').then(a => a.text()).then(t => t.includes('unknown-order'))", 40)
    for order in orders:
        stage.seed(order)
    browser.goto(f"{stage.here}/letters?again=1")
    browser.sees("unknown-order")
    browser.follow("td.do a[href^='/change/replay']")
    browser.sees("7 letters were counted")
    browser.write("input[name=why]", "the orders are there now")
    browser.write("input[name=number]", "7")
    browser.follow("form[action='/change/replay'] button")
    browser.sees("Why: the orders are there now")
    browser.sees("It is over", 60)
    browser.sees("7 completed")
    assert all(stage.stack.order(order)["status"] == "paid" for order in orders)
    browser.goto(f"{stage.here}/jobs/{operations[0]}")
    browser.sees("done")
    browser.sees("replay 1")


def test_the_number_and_the_dry_run_stand_before_a_discard(browser: Chromium, stage: Stage) -> None:
    operation = stage.capture("order-nobody")
    browser.until(f"fetch('/jobs/{operation}').then(a => a.text()).then(t => t.includes('unknown-order'))", 40)
    browser.goto(f"{stage.here}/change/discard?id={operation}")
    browser.sees("1 letters were counted")
    browser.write("input[name=why]", "test data")
    browser.write("input[name=number]", "2")
    browser.follow("button.danger")
    browser.sees("Type 1, the number of letters")
    browser.goto(f"{stage.here}/change/discard?id={operation}")
    browser.write("input[name=why]", "test data")
    browser.write("input[name=number]", "1")
    browser.follow("button.danger")
    browser.sees("It is over", 40)
    assert len(list(stage.house.archives.iterdir())) == 1


def test_the_picture_moves_on_by_itself(browser: Chromium, stage: Stage) -> None:
    browser.goto(f"{stage.here}/")
    stage.works = False
    try:
        browser.until("[...document.querySelectorAll('td')].some(e => e.innerText === 'disabled')")
    finally:
        stage.works = True
    browser.until("![...document.querySelectorAll('td')].some(e => e.innerText === 'disabled')")


def test_all_is_done_by_keyboard_with_the_focus_seen(browser: Chromium, stage: Stage) -> None:
    browser.goto(f"{stage.here}/jobs")
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.className") == "skip"
    browser.press("Enter")
    assert browser.evaluate("document.activeElement.id") == "main"
    browser.press("/")
    assert browser.evaluate("document.activeElement.name") == "id"
    assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid", "the focus is seen"
    browser.press("Tab")
    browser.type("no such key")
    browser.evaluate("window.isOld = true")
    browser.press("Enter")
    browser.until("window.isOld !== true")
    browser.sees("There are none among them")
    browser.goto(f"{stage.here}/")
    for _ in range(30):
        browser.press("Tab")
        if browser.evaluate("document.activeElement.id") == "worker-payments":
            break
    browser.press("Enter")
    browser.sees("Worker payments")


def test_a_console_that_was_killed_is_told_on_its_page(chromium: Chromium, alone: Alone) -> None:
    child, address = alone(0)
    chromium.goto(address)
    chromium.sees("The stack")
    child.kill()
    chromium.sees("The console does not answer: it was stopped.")
    assert chromium.evaluate("document.getElementById('gone').getAttribute('role')") == "alert"
    assert "The stack" in chromium.text, "what was shown stays, and is said to be old"


def test_ten_thousand_letters_and_credentials_that_expire(chromium: Chromium, alone: Alone) -> None:
    child, address = alone(10_000)
    chromium.goto(address)
    begun = time.monotonic()
    chromium.goto(f"{address.partition('?')[0]}letters")
    chromium.sees("read of about 10,001")
    assert time.monotonic() - begun < 10
    chromium.follow("a[rel=next]")
    chromium.sees("Page 2 of ")
    chromium.goto(f"{address.partition('?')[0]}")
    chromium.sees("The stack")
    assert child.stdin is not None
    child.stdin.write("expire\n")
    child.stdin.flush()
    chromium.sees("The credentials are no longer good")
    assert "The stack" in chromium.text
    chromium.goto(f"{address.partition('?')[0]}jobs")
    chromium.sees("aws sso login")
