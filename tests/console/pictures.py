"""`python -m tests.console.pictures` writes docs/pictures/console-*.png: each page of a console in a real browser, over real jobs.

The worker of payments runs over moto and the real Valkey; its jobs die since their orders are missing, and are replayed when those are there.
What CloudWatch would have of it is told to moto as it was counted here: no function's log is read on this machine.
"""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from local.outside.payment_provider import Provider
from local.processes.children import Children
from local.stack.valkey import Valkey
from ops import ROOT
from shared.backends.redis.leases import RedisStore
from shared.clock import random_token as new_token
from tests.aws import CREDENTIALS
from tests.console.chromium import MISSING, Chromium, found
from tests.console.stage import Stage
from tests.moto_server import MotoServer
from tests.serving import serving
from tests.stack import new_stack
from tests.world import acquired

PICTURES = ROOT / "docs" / "pictures"
DONE, DIED, WAITING = 24, 11, 9


def main() -> int:
    """Write them; the exit status is 1 where there is no browser."""
    program = found()
    if program is None:
        print(f"No pictures: {MISSING}.")  # noqa: T201 - the result
        return 1
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(CREDENTIALS)
    server = MotoServer()
    server.start()
    os.environ["AWS_ENDPOINT_URL"] = server.endpoint
    with (
        tempfile.TemporaryDirectory(prefix="console-") as folder,
        Children() as children,
        serving(Provider(0)) as provider,
    ):
        valkey = Valkey(children, Path(folder) / "valkey")
        valkey.start()
        stage = Stage(new_stack(valkey, provider), Path(folder))
        with stage.running(), Chromium(program) as browser:
            _play(stage, browser)
    server.stop()
    return 0


def _play(stage: Stage, browser: Chromium) -> None:
    browser.goto(stage.address)
    done = [f"order-{1000 + number}" for number in range(DONE)]
    died = [f"order-{2000 + number}" for number in range(DIED)]
    for order in done:
        stage.seed(order)
    operations = {order: stage.capture(order) for order in [*done, *died]}
    for order in (done[-1], died[-1]):
        said = f"fetch('/jobs/{operations[order]}').then(answer => answer.text())"
        browser.until(f"{said}.then(text => text.includes('state done') || text.includes('state dead-lettered'))", 90)
    for state in ("running", "retrying"):
        browser.until(f"fetch('/jobs?state={state}').then(a => a.text()).then(t => t.includes('There are none'))", 60)
    stage.measure(succeeded=DONE, dead_lettered=DIED)
    stage.alarms("DeadLetterArrival")
    stage.works = False  # so that something waits in the picture
    for number in range(WAITING):
        stage.capture(f"order-{3000 + number}")
    _hold_locks(stage)
    _take(browser, stage, "stack", "/")
    browser.prefer("dark")
    _take(browser, stage, "stack-dark", "/")
    browser.prefer("light")
    _take(browser, stage, "letters", "/letters?worker=payments&again=1")
    browser.resize(400, 800)
    _take(browser, stage, "letters-narrow", "/letters?worker=payments")
    browser.resize(1280, 900)
    browser.follow("a[href^='/letters/payments/']")
    _take(browser, stage, "letter", browser.evaluate("location.pathname"))
    browser.follow("a[href$='/edit']")
    browser.write("textarea", '{\n  "order_id": "order-1000",\n  "payment_intent_id": "pi_ok_order-1000"\n}')
    browser.follow("form[method=post] button")
    browser.picture(PICTURES / "console-edit.png")
    stage.works = True
    _replay(stage, browser, died)
    _take(browser, stage, "job", f"/jobs/{operations[died[0]]}")
    _take(browser, stage, "jobs", "/jobs?job_type=capture-payment")
    _take(browser, stage, "operations", "/operations?owner=system")
    _take(browser, stage, "locks", "/locks")
    _take(browser, stage, "alarms", "/alarms")
    _take(browser, stage, "runbook", "/docs/runbooks/dead-letter-arrival.md")
    _take(browser, stage, "worker", "/workers/payments")
    _take(browser, stage, "changes", "/deeds")


def _replay(stage: Stage, browser: Chromium, orders: list[str]) -> None:
    for order in [*orders, *(f"order-{3000 + number}" for number in range(WAITING))]:
        stage.seed(order)
    browser.goto(f"{stage.here}/letters?worker=payments&again=1")
    browser.follow("td.do a[href^='/change/replay']")
    browser.sees("were counted")
    number = browser.evaluate("document.querySelector('form b').innerText")
    browser.write("input[name=why]", "the orders are there now")
    browser.write("input[name=number]", number)
    browser.write("input[name=rate]", "1")
    browser.picture(PICTURES / "console-replay.png")
    browser.follow("form[action='/change/replay'] button")
    browser.sees("watches the first", 30)
    browser.picture(PICTURES / "console-progress.png")
    browser.sees("It is over", 120)
    browser.picture(PICTURES / "console-replayed.png")


def _hold_locks(stage: Stage) -> None:
    """As a worker does that runs the first of those that wait."""
    store = RedisStore(stage.lookout.leases.connection)
    for number in range(2):
        acquired(store, f"order/order-{3000 + number}", new_token(), timedelta(minutes=5))


def _take(browser: Chromium, stage: Stage, name: str, path: str) -> None:
    browser.goto(f"{stage.here}{path}")
    browser.until("!document.querySelector('main progress') || document.title.startsWith('Job')")
    browser.picture(PICTURES / f"console-{name}.png")


if __name__ == "__main__":
    sys.exit(main())
