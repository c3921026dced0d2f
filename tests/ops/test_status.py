"""`tahan status` and `tahan locks`: what is told, what is not known, and what an AWS account is asked."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest

from functions.registry import WORKERS
from ops.exits import Exit
from ops.stack import aws_running
from ops.stack.aws_running import AwsRunning
from ops.stack.deployed import Deployed
from ops.stack.running import COUNTED, Depth, Receiving
from shared.errors import Unavailable
from shared.rounds.brake import Brake, BrakeState
from tests.ops.desk import OUTPUTS, Desk
from tests.world import START

GATE = {"open_for_s": 12.4, "down_for_s": 90.0, "calls": 0, "failures": 0, "ramping": False}
GONE = Unavailable("Redis failed", dependency="lookout")


def busy() -> Desk:
    desk = Desk()
    desk.running.depths["payments"] = Depth(1200, 40, 3, 2)
    desk.running.numbers = {"payments": {"age": 300.0, "succeeded": 55.0, "postponed": 4.0}, "users": {}}
    desk.running.gates = {"payment-provider": GATE}
    until = START + timedelta(minutes=5)
    desk.brakes.brakes["payments"] = Brake(BrakeState.PAUSED, "payment-provider", "its breaker is open", START, until)
    desk.running.states["users"] = Receiving("Disabled", 5)
    return desk


def test_one_look_tells_what_waits_what_stands_still_and_what_is_down() -> None:
    desk = busy()
    assert desk.run("status") == Exit.DONE
    for told in ("1200", "0:05:00", "paused", "disabled", "payment-provider: down for 0:01:30, next look in 0:00:12"):
        assert told in desk.out, told
    assert "`tahan resume payments --why ...` frees it" in desk.out
    assert {"payments", "users", "inventory"} <= set(desk.out.split())


def test_a_pause_that_lambda_does_not_keep_is_told() -> None:
    desk = busy()
    desk.run("status", "payments")
    assert "yet enabled" in " ".join(desk.out.split())
    desk.running.states["payments"] = Receiving("Disabled", 5)
    desk.run("status", "payments")
    assert "enabled" not in desk.out


def test_scripts_read_the_same_as_json() -> None:
    desk = busy()
    assert desk.run("status", "payments", "--json") == Exit.DONE
    (row,) = desk.json["workers"]
    assert (row["waiting"], row["in_flight"], row["delayed"], row["dead_letters"]) == (1200, 40, 3, 2)
    assert (row["oldest_s"], row["objective_s"], row["succeeded_5m"], row["retried_5m"]) == (300.0, 120.0, 55.0, None)
    assert row["brake"] == {
        "state": "paused",
        "by": "payment-provider",
        "why": "its breaker is open",
        "by_hand": False,
        "until": "2026-01-01T00:05:00+00:00",
    }
    assert desk.json["gates"] == {"payment-provider": GATE}


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        ({}, "up, 0 calls under way"),
        ({"calls": 3, "failures": 2}, "up, 3 calls under way, 2 failures in a row"),
        ({"ramping": True, "calls": 1}, "coming back, 1 calls under way"),
        ({"down_for_s": 60.0}, "down for 0:01:00, somebody may look"),
    ],
)
def test_a_breaker_is_told_in_words(gate: dict[str, Any], told: str) -> None:
    desk = Desk()
    healthy = {"open_for_s": 0.0, "down_for_s": None, "calls": 0, "failures": 0, "ramping": False}
    desk.running.gates = {"shop": {**healthy, **gate}}
    desk.run("status")
    assert f"shop: {told}" in desk.out


def test_what_cannot_be_looked_at_is_said_and_the_rest_is_told() -> None:
    desk = busy()
    desk.running.numbers = Unavailable("cloudwatch gave no answer", dependency="cloudwatch")
    desk.running.gates = GONE
    assert desk.run("status", "payments", "--json") == Exit.DONE
    assert "Ages and rates are not known" in desk.err
    assert "Breakers are not known: Redis failed" in desk.err
    assert (desk.json["gates"], desk.json["workers"][0]["oldest_s"]) == (None, None)
    assert desk.json["workers"][0]["waiting"] == 1200


def test_an_unknown_worker_lists_those_that_there_are() -> None:
    desk = Desk()
    assert desk.run("status", "shoes") == Exit.REFUSED
    assert "payments, users, inventory" in desk.err


def test_watching_looks_again_until_it_is_interrupted() -> None:
    desk = busy()
    looks = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt

    desk.clock.sleep = sleep  # type: ignore[method-assign]
    assert desk.run("status", "--watch", "--json") == Exit.INTERRUPTED
    assert len(desk.out.splitlines()) == 3


LOCK = {"key": "order/17", "holder": "abcdef12", "left_s": 21.5}


def test_locks_are_listed_by_the_beginning_of_their_key() -> None:
    desk = Desk()
    desk.running.locks = [LOCK]
    assert desk.run("locks", "list", "order/", "--limit", "7") == Exit.DONE
    assert desk.running.asked == [{"look": "locks", "start": "order/", "most": 7}]
    assert "order/17" in desk.out
    assert "There may be more" in desk.err
    desk.run("locks", "list", "--json")
    assert desk.json == {"locks": [LOCK], "complete": False}


def test_a_lock_is_shown_or_nobody_holds_it() -> None:
    desk = Desk()
    desk.running.locks = [LOCK]
    assert desk.run("locks", "show", "order/17", "--json") == Exit.DONE
    assert desk.json == LOCK
    assert desk.run("locks", "show", "order/18") == Exit.ABSENT
    assert "Nobody holds 'order/18'" in desk.err


def test_a_lookout_that_gives_no_answer_is_told() -> None:
    desk = Desk()
    desk.running.gates = GONE
    assert desk.run("locks", "list") == Exit.NOT_DONE
    assert "Redis failed" in desk.err


class Api:
    """Lambda's and CloudWatch's API, as far as they are asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []

    def get_metric_data(self, **asked: Any) -> Any:
        self.asked.append(asked)
        return self.answer

    def invoke(self, **asked: Any) -> Any:
        self.asked.append(asked)
        return {**self.answer, "Payload": io.BytesIO(self.answer["Payload"])}


def looking(monkeypatch: pytest.MonkeyPatch, api: Api) -> AwsRunning:
    monkeypatch.setattr(aws_running, "client", lambda *_, **__: api)
    return AwsRunning(Deployed("tahan-dev", OUTPUTS))


def test_rates_are_summed_over_the_job_types_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api({"MetricDataResults": []})
    payments = WORKERS[0]
    seen = looking(monkeypatch, api).measured([payments], START)
    assert seen == {"payments": {}}
    queries = api.asked[0]["MetricDataQueries"]
    assert len(queries) == 1 + len(payments.jobs) * len(COUNTED)
    names = [query["MetricStat"]["Metric"]["MetricName"] for query in queries]
    succeeded = [query["Id"] for query, name in zip(queries, names, strict=True) if name == "succeeded"]
    api.answer = {
        "MetricDataResults": [{"Id": name, "Values": [3.0, 99.0]} for name in succeeded]
        + [{"Id": "q0", "Values": [7.0]}]
    }
    assert looking(monkeypatch, api).measured([payments], START) == {"payments": {"succeeded": 6.0, "age": 7.0}}
    metric = queries[1]["MetricStat"]["Metric"]
    assert (metric["Namespace"], {each["Name"] for each in metric["Dimensions"]}) == ("Tahan", {"service", "job_type"})


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"Payload": b'{"unavailable": "Redis is gone"}'}, "Redis is gone"),
        ({"FunctionError": "Unhandled", "Payload": b'{"errorType": "KeyError"}'}, "KeyError"),
        ({"Payload": b"null"}, "it failed"),
    ],
)
def test_a_lookout_that_fails_is_unavailable(monkeypatch: pytest.MonkeyPatch, answer: Any, why: str) -> None:
    with pytest.raises(Unavailable, match=why):
        looking(monkeypatch, Api(answer)).ask_lookout({"look": "gates"})


def test_the_lookout_is_asked_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api({"Payload": b'{"gates": {}}'})
    assert looking(monkeypatch, api).ask_lookout({"look": "gates"}) == {"gates": {}}
    (asked,) = api.asked
    assert (asked["FunctionName"], json.loads(asked["Payload"])) == ("lookout", {"look": "gates"})
