"""`tahan smoke` before the product's own consumer in memory: what it sends ends as it must, and what does not is noticed."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from functions import canary
from functions.canary import CANARIES
from ops.exits import CommandError, Exit
from ops.probes import SITUATIONS
from ops.stack.door import http_status
from shared.errors import DeadLetter, Unavailable
from shared.job_record import Status
from tests.ops.desk import OUTPUTS, Desk
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CANARY = OUTPUTS["QueueCanary"]
NAMES = [situation.name for situation in SITUATIONS]


@dataclass
class House(Desk):
    """A desk whose stack is awake: while the command sleeps, the canary's consumer works."""

    awake: bool = True
    leaves: set[str] = field(default_factory=set)  # ends whose messages nobody works on
    before: Any = None  # called before the consumer works
    after: Any = None  # and after it

    def __post_init__(self) -> None:
        super().__post_init__()
        self.world = World(canary.WORKER, clock=self.clock)
        self.world.database = self.jobs
        self.world.queue = self.queue = self.queues[CANARY]
        self.taken = 0
        sleep = self.clock.sleep

        def sleeping(seconds: float) -> None:
            sleep(seconds)
            if self.awake:
                self.work()

        self.clock.sleep = sleeping  # type: ignore[method-assign]

    def work(self) -> None:
        if self.before is not None:
            self.before()
        fresh = [message for url, message in self.sent if url == CANARY][self.taken :]
        self.taken += len(fresh)
        self.queue.send([each for each in fresh if json.loads(each.body)["payload"]["ends"] not in self.leaves])
        for record in self.queue.receive():
            _, is_done = self.world.run(
                record["body"], messageId=record["messageId"], receiptHandle=record["receiptHandle"]
            )
            if is_done:
                self.queue.delete(record["receiptHandle"])
        if self.after is not None:
            self.after()

    @property
    def results(self) -> dict[str, bool]:
        return {each["situation"]: each["right"] for each in self.json["results"]}


def test_one_of_each_situation_ends_as_it_must_and_nothing_is_left() -> None:
    house = House()
    assert house.run("smoke", "--json") == Exit.DONE
    assert house.results == dict.fromkeys(NAMES, True)
    assert house.json["letters_left"] == 0
    assert not house.queue.dead
    assert len(house.sent) == sum(situation.messages for situation in SITUATIONS)
    assert [(line["what"], line["outcome"]) for line in house.audit] == [("smoke", "begins"), ("smoke", "done")]


def test_people_get_a_table_and_a_sum() -> None:
    house = House()
    assert house.run("smoke") == Exit.DONE
    assert all(name in house.out for name in NAMES)
    assert "WRONG" not in house.out
    assert "5 of 5 ended as they must, none did not." in house.err


def test_a_second_run_is_not_taken_for_the_first() -> None:
    house = House()
    assert house.run("smoke", "--json") == Exit.DONE
    first = house.json["run"]
    house.token = "f" * 32
    assert house.run("smoke", "--json") == Exit.DONE
    assert house.json["run"] != first
    assert house.results == dict.fromkeys(NAMES, True)


def test_a_stack_that_sleeps_is_told_after_the_patience() -> None:
    house = House(awake=False)
    assert house.run("smoke", "--json", "--timeout", "30") == Exit.NOT_DONE
    assert house.results == dict.fromkeys(NAMES, False)
    assert sum(house.clock.slept) == pytest.approx(30, abs=1)


@pytest.mark.parametrize("place", range(len(SITUATIONS)))
def test_each_situation_that_does_not_end_is_told_by_name(place: int) -> None:
    house = House(leaves={SITUATIONS[place].ends})
    assert house.run("smoke", "--json", "--timeout", "40") == Exit.NOT_DONE
    assert house.results == {name: name != NAMES[place] for name in NAMES}
    assert house.run("smoke", "--timeout", "40") == Exit.NOT_DONE
    assert "WRONG" in house.out
    assert "look at `tahan status`" in house.err


def test_an_effect_that_happens_twice_is_told() -> None:
    house = House()

    def doubling() -> None:
        house.before = None
        probe = {"run": house.token, "ends": "completed"}
        text = json.dumps({"job_type": "smoke-probe", "idempotency_key": "another", "payload": probe})
        house.world.run(text)

    house.before = doubling
    assert house.run("smoke", "--json", "--timeout", "20") == Exit.NOT_DONE
    (wrong,) = [each for each in house.json["results"] if not each["right"]]
    assert wrong["situation"] == NAMES[0]
    assert wrong["seen"] == "completed after 1 attempt, 2 effects"


def test_dead_letters_of_others_stay() -> None:
    house = House()

    def bury_others() -> None:
        house.after = None
        other = {"job_type": "smoke-probe", "idempotency_key": "smoke/other/dead-lettered"}
        house.world.run(json.dumps({**other, "payload": {"run": "other", "ends": "dead-lettered"}}))

    house.after = bury_others  # behind the run's own
    assert house.run("smoke", "--json") == Exit.DONE
    assert [json.loads(letter.body)["idempotency_key"] for letter in house.queue.dead] == ["smoke/other/dead-lettered"]


def test_letters_that_there_must_not_be_are_told_with_their_reason_and_taken_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        reason = "broken"
        raise DeadLetter(reason)

    monkeypatch.setattr(canary, "_counted", broken)
    house = House()
    assert house.run("smoke", "--json", "--timeout", "20") == Exit.NOT_DONE
    seen = {each["situation"]: each["seen"] for each in house.json["results"]}
    assert seen[NAMES[0]] == "dead-lettered after 1 attempt, dead letter broken"
    assert house.json["letters_left"] == 0
    assert not house.queue.dead


def test_a_silent_front_door_is_told_beside_the_others_and_nothing_is_left() -> None:
    house = House()
    house.door = {}
    house.outputs["Api"] = "https://api.example"
    assert house.run("smoke", "--json") == Exit.NOT_DONE
    assert house.results == {**dict.fromkeys(NAMES, True), "the front door, without a token": False}
    assert not house.queue.dead


def test_results_are_told_though_nobody_can_clean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        message = "sqs gave no answer"
        raise Unavailable(message, dependency="sqs")

    monkeypatch.setattr("ops.letters.discard.Discard.run", gone)
    house = House()
    assert house.run("smoke", "--json") == Exit.LEFT
    assert house.results == dict.fromkeys(NAMES, True)
    assert house.json["letters_left"] == 2


def test_an_address_in_clear_is_refused_before_anything_is_sent() -> None:
    house = House()
    assert house.run("smoke", "--api", "http://api.example") == Exit.REFUSED
    assert house.sent == []


def test_who_is_interrupted_leaves_no_letters() -> None:
    house = House()

    def interrupted() -> None:
        house.after = None
        raise KeyboardInterrupt

    house.after = interrupted
    assert house.run("smoke") == Exit.INTERRUPTED
    assert not house.queue.dead


def test_letters_that_cannot_be_taken_away_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House()
    monkeypatch.setattr("shared.backends.memory.dead_letters.MemoryDeadLetters.delete", lambda _, __: frozenset())
    assert house.run("smoke") == Exit.LEFT
    assert "2 dead letters of this run are left: `tahan dlq discard --job-type smoke-probe`." in house.err


def test_a_store_that_does_not_answer_is_asked_again() -> None:
    house = House()

    def gone(looks: int) -> None:
        if looks < 8:
            message = "dynamodb gave no answer"
            raise Unavailable(message, dependency="dynamodb")

    house.jobs.on_look = gone
    assert house.run("smoke", "--json") == Exit.DONE


def test_the_front_door_is_asked_whom_it_lets_in(tmp_path: Path) -> None:
    house = House()
    house.outputs["Api"] = "https://api.example/"
    assert house.run("smoke", "--json") == Exit.DONE
    assert house.results["the front door, without a token"]
    file = tmp_path / "token"
    file.write_text("token\n", encoding="utf-8")
    house = House()
    assert house.run("smoke", "--json", "--api", "https://other.example", "--token-file", str(file)) == Exit.DONE
    assert house.doors == ["https://other.example/operations"] * 2
    house = House()
    house.door = {None: 200, "token": 401}
    house.outputs["Api"] = "https://api.example"
    assert house.run("smoke", "--json", "--token-file", str(file)) == Exit.NOT_DONE
    assert [name for name, right in house.results.items() if not right] == [
        "the front door, without a token",
        "the front door, with a token",
    ]
    assert house.run("smoke", "--token-file", str(tmp_path / "none")) == Exit.REFUSED


def test_a_dry_run_sends_nothing() -> None:
    house = House()
    assert house.run("smoke", "--dry-run", "--json") == Exit.DONE
    assert house.json == {**{each.name: each.expected for each in SITUATIONS}, "sent": False}
    assert (house.sent, house.audit) == ([], [])


def test_a_stack_without_a_canary_is_refused() -> None:
    house = House()
    del house.outputs["QueueCanary"]
    assert house.run("smoke") == Exit.REFUSED
    assert "runs no worker 'canary'" in house.err


def test_the_expected_ends_are_those_of_the_declared_probe() -> None:
    ends = canary.Probe.model_json_schema()["properties"]["ends"]["enum"]
    assert {each.ends for each in SITUATIONS} == {*ends, "well"}
    assert {each.status for each in SITUATIONS} >= {Status.COMPLETED, Status.FAILED, Status.DEAD_LETTERED}
    assert CANARIES.name == "canaries"


class Answers(BaseHTTPRequestHandler):
    """Answers 200 to who has a token."""

    def do_GET(self) -> None:
        self.send_response(200 if self.headers.get("Authorization") == "Bearer t" else 401)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def door() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_front_door_answers_by_the_token(door: str) -> None:
    assert (http_status(f"{door}/operations", None), http_status(f"{door}/operations", "t")) == (401, 200)


def test_a_token_goes_to_no_address_in_clear_and_who_does_not_answer_is_named() -> None:
    with pytest.raises(CommandError, match="begins with https"):
        http_status("http://api.example/operations", "t")
    with pytest.raises(CommandError, match="gave no answer"):
        http_status("http://127.0.0.1:9/operations", None)
