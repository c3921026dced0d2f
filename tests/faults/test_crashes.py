"""A process that kills itself at every failpoint, once and twice in a row, in the mode that `make faults MODE=` asks for.

Each failpoint has a scene that passes it. The scenes run side by side, since they mostly wait for what a crash left
behind to run out; the tests then look at what became of each. The witness of a crash is what its process noted last.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions.payments import CapturePayment, capture_payment
from local.demo.cached import CachedTags
from shared.claim import Claim
from shared.commit import Release
from shared.failpoints import Failpoint
from shared.intake.acceptance import Acceptance
from shared.job_record import SYSTEM, Hold, Status, record_id
from shared.message import Message
from shared.outbox import Posting
from shared.wire.parsing import fingerprint
from tests.aws import CREDENTIALS
from tests.faults.jobs import BREWS, CASKS, CRASHING, IMPATIENT, SHARES, YEARS
from tests.faults.lives import Life, cached_status
from tests.modes import MODE, Mode, chosen
from tests.stack import new_stack

if TYPE_CHECKING:
    from pathlib import Path

    from local.outside.payment_provider import Provider
    from local.stack.valkey import Valkey
    from tests.stack import Stack

SIDE_BY_SIDE = 6
PATIENCE = timedelta(seconds=240)
# A reply of a busy moto may be lost, and with it a message for its whole visibility: a process that passed nothing in its
# life is followed by another.
LONG = 80  # seconds
SPARE = 2
TIMES = (1, 2) if MODE in os.environ else (1,)  # all of it is `make faults`


@dataclass
class Scene:
    """One stack with something to do, and a process that dies on the way."""

    stack: Stack
    folder: Path
    name: str
    point: Failpoint
    program: str = "consume"
    worker: str = "crashing"
    arguments: dict[str, Any] = field(default_factory=dict)
    witnesses: list[str] = field(default_factory=list)

    @property
    def intent(self) -> str:
        return f"pi_{self.arguments.get('behaviour', 'ok')}_{self.name}"

    def seed(self, *, cached: bool = True) -> None:
        self.stack.seed(order_id=self.name, payment_intent_id=self.intent)
        if cached:
            self.tags.fill(f"order/{self.name}", "as it was before")

    @property
    def tags(self) -> CachedTags:
        return CachedTags(self.stack.settings.cache_host, int(self.stack.settings.cache_port))

    def send(self, job_type: str, payload: dict[str, str]) -> None:
        self.stack.send(json.dumps({"job_type": job_type, "idempotency_key": self.name, "payload": payload}))

    def send_capture(self, order: str | None = None) -> None:
        self.send("capture-payment", {"order_id": order or self.name, "payment_intent_id": self.intent})

    def crash(self, times: int) -> None:
        """Let processes die, one after the other."""
        environ = {**CREDENTIALS, "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
        for turn in range(times + SPARE):
            if len(self.witnesses) == times:
                return
            witness = self.folder / f"{self.name}-{turn}"
            life = Life(
                self.program,
                self.stack.settings,
                environ,
                self.point,
                worker=self.worker,
                mode=chosen(),
                arguments={"order": self.name, "intent": self.intent},
                witness=witness,
            )
            process = life.start()
            process.join(90)
            process.kill()
            if witness.exists():
                self.witnesses.append(witness.read_text())

    def finish(self) -> None:
        self.stack.run(patience=PATIENCE)

    def status(self, job_type: str = "capture-payment") -> Status | None:
        records = self.stack.database.records(self.stack.runtime.clock)
        view = records.view(record_id(SYSTEM, job_type, self.name))
        return None if view is None else view.status


def paid_once(scene: Scene) -> None:
    order = scene.stack.order(scene.name)
    assert (order["status"], order["version"]) == ("paid", "2")
    assert len(scene.stack.provider.ledger.charges_of(scene.intent)) == 1
    assert scene.status() is Status.COMPLETED
    assert scene.stack.dead_letters() == []
    assert scene.tags.present([f"order/{scene.name}"]) == frozenset()


def dead_lettered(scene: Scene) -> None:
    letters = scene.stack.dead_letters()
    assert letters
    assert {reason["reason"] for _, reason in letters} == {"unknown-order"}
    assert scene.status() is Status.DEAD_LETTERED
    assert scene.stack.provider.ledger.charges_of(scene.intent) == []


def brewed_once(scene: Scene) -> None:
    item = scene.stack.database.items.read(BREWS, (scene.name,))
    assert item is not None
    assert (item.attributes["times"], item.version) == (1, 1)
    assert scene.status("brew") is Status.COMPLETED
    assert scene.stack.dead_letters() == []


def parked_and_the_others_sent(scene: Scene) -> None:
    outbox = scene.stack.database.client.scan(TableName=scene.stack.settings.outbox_table, ConsistentRead=True)
    (stranger,) = [item for item in outbox["Items"] if item["worker"]["S"] == "stranger"]
    assert "stranger" in str(stranger)
    assert "parked" in str(stranger)
    paid_once(scene)


def capture(scene: Scene) -> None:
    scene.seed()
    scene.send_capture()


def busy(scene: Scene) -> None:
    scene.arguments["behaviour"] = "503x2"
    capture(scene)


def hopeless(scene: Scene) -> None:
    scene.send_capture("no such order")


def aged_once(scene: Scene) -> None:
    for year in range(YEARS):
        item = scene.stack.database.items.read(CASKS, (f"{scene.name}/{year}",))
        assert item is not None
        assert item.version == 1
    records = scene.stack.database.records(scene.stack.runtime.clock)
    view = records.view(record_id(SYSTEM, "age", scene.name))
    assert view is not None
    assert (view.status, view.checkpoints) == (Status.COMPLETED, YEARS)
    assert view.progress is not None
    assert (view.progress.done, view.progress.total) == (YEARS, YEARS)
    assert scene.tags.present([f"cask/{scene.name}/{year}" for year in range(YEARS)]) == frozenset()
    assert scene.stack.dead_letters() == []


def ageing(scene: Scene) -> None:
    for year in range(YEARS):
        scene.tags.fill(f"cask/{scene.name}/{year}", "as it was before")
    scene.send("age", {"cask": scene.name})


def pressed_once(scene: Scene) -> None:
    for name in (*map(str, range(SHARES)), "all"):
        item = scene.stack.database.items.read(CASKS, (f"{scene.name}/{name}",))
        assert item is not None
        assert item.version == 1
    records = scene.stack.database.records(scene.stack.runtime.clock)
    view = records.view(record_id(SYSTEM, "press", scene.name))
    assert view is not None
    assert (view.status, view.result, view.split and view.split.parts) == (
        Status.COMPLETED,
        f'{{"succeeded":{SHARES}}}',
        SHARES,
    )
    assert view.tally is not None
    assert view.tally.succeeded == SHARES
    assert scene.stack.dead_letters() == []


def pressing(scene: Scene) -> None:
    scene.send("press", {"press": scene.name})


def crushed(scene: Scene) -> None:
    """All parts have ended, and nobody has counted them."""
    pressing(scene)
    scene.stack.counts = False
    scene.stack.run(patience=PATIENCE)
    scene.stack.counts = True
    scene.program = "count"


def brewing(scene: Scene) -> None:
    scene.send("brew", {"pot": scene.name})


def charging_blind(scene: Scene) -> None:
    scene.send("charge-blind", {"order": scene.name, "intent": scene.intent})


def unknown_and_never_called(scene: Scene) -> None:
    assert scene.status("charge-blind") is Status.UNKNOWN
    assert scene.stack.provider.ledger.charges_of(scene.intent) == []
    assert scene.stack.dead_letters() == []


def impatient(scene: Scene) -> None:
    scene.arguments["behaviour"] = "503x2"
    scene.worker = "impatient"
    capture(scene)


def posted(scene: Scene) -> None:
    """The capture lies in the outbox, behind one for a worker that does not exist."""
    scene.seed()
    body = json.dumps(
        {
            "job_type": "capture-payment",
            "idempotency_key": scene.name,
            "payload": {"order_id": scene.name, "payment_intent_id": scene.intent},
        }
    )
    outbox = scene.stack.runtime.settlement.outbox
    now = scene.stack.runtime.clock.now()
    outbox.post(Posting(f"{scene.name}-1", "stranger", body, timedelta(0), None), now)
    outbox.post(Posting(f"{scene.name}-2", "payments", body, timedelta(0), None), now)
    scene.program = "relay"


def unsendable(scene: Scene) -> None:
    """A client's job lies in the outbox for a worker that does not exist, and a capture behind it."""
    posted(scene)
    record = record_id("user-1", "capture-payment", scene.name)
    body = Message("capture-payment", 1, scene.name, "{}", record=record).body()
    posting = Posting(f"{scene.name}-0", "nobody", body)
    names = ("user-1", "capture-payment", scene.name, "1:a", "{}", 1, "request")
    clock = scene.stack.runtime.clock
    scene.stack.database.acceptances(clock).accept(Acceptance(record, *names, posting), clock.now())


def told_and_the_others_sent(scene: Scene) -> None:
    records = scene.stack.database.records(scene.stack.runtime.clock)
    view = records.view(record_id("user-1", "capture-payment", scene.name))
    assert view is not None
    assert (view.status, view.death) == (Status.DEAD_LETTERED, 1)
    parked_and_the_others_sent(scene)


def lost(scene: Scene) -> None:
    """The job was given back once, and its message is gone."""
    scene.seed()
    payload = CapturePayment(order_id=scene.name, payment_intent_id=scene.intent)
    message = capture_payment.message(payload, scene.name)
    now = scene.stack.runtime.clock.now()
    record = record_id(SYSTEM, message.job_type, scene.name)
    names = (SYSTEM, message.job_type, scene.name, fingerprint(message, payload))
    claim = Claim(record, *names, message.payload, message.version, "t", now, max_attempts=5, death=0)
    records = scene.stack.database.records(scene.stack.runtime.clock)
    records.claim(claim, now)
    records.release(Hold(record, "t"), Release(now), now)
    scene.stack.database.client.update_item(
        TableName=scene.stack.settings.jobs_table,
        Key={"id": {"S": record}},
        UpdateExpression="SET look_at = :past",
        ExpressionAttributeValues={":past": {"S": now.isoformat()}},
    )
    scene.program = "rescue"


def produced(scene: Scene) -> None:
    scene.seed()
    scene.program = "produce"


def produced_again(scene: Scene) -> None:
    """The producer does not know whether it sent, and sends again with the same key."""
    scene.send_capture()


def read_through(scene: Scene) -> None:
    """A reader dies on the way; then another reads, the order is paid, and a third one reads."""
    scene.seed(cached=False)
    scene.program = "read"


def read_and_paid(scene: Scene) -> None:
    assert cached_status(scene.stack.settings, scene.name) == "pending"
    scene.send_capture()


def read_as_paid(scene: Scene) -> None:
    assert cached_status(scene.stack.settings, scene.name) == "paid"
    order = scene.stack.order(scene.name)
    assert (order["status"], order["version"]) == ("paid", "2")


Step = Callable[[Scene], None]
PAYING = (capture, None, paid_once)
BREWING = (brewing, None, brewed_once)
COUNTING = (crushed, None, pressed_once)
AGEING = (ageing, None, aged_once)
READING = (read_through, read_and_paid, read_as_paid)
RELAYING = (posted, None, parked_and_the_others_sent)
SCENES: dict[Failpoint, tuple[Step, Step | None, Step]] = {
    Failpoint.RECEIVED: PAYING,
    Failpoint.LOCKED_TOGETHER: PAYING,
    Failpoint.LEASED: PAYING,
    Failpoint.CLAIMED: PAYING,
    Failpoint.ITEM_READ: PAYING,
    Failpoint.FENCED: BREWING,
    Failpoint.INTENDED: (charging_blind, None, unknown_and_never_called),
    Failpoint.CALLING: PAYING,
    Failpoint.CALLED: PAYING,
    Failpoint.BEAT_CLAIM: BREWING,
    Failpoint.BEAT_MESSAGE: BREWING,
    Failpoint.CHECKPOINTED: AGEING,
    Failpoint.STEP_INVALIDATED: AGEING,
    Failpoint.PROGRESS_TOLD: AGEING,
    Failpoint.WAITING: (pressing, None, pressed_once),
    Failpoint.ENDS_RECEIVED: COUNTING,
    Failpoint.ENDS_NOTED: COUNTING,
    Failpoint.TALLY_TOLD: COUNTING,
    Failpoint.WOKEN: COUNTING,
    Failpoint.HANDLED: PAYING,
    Failpoint.COMMITTED: PAYING,
    Failpoint.CLAIM_RELEASED: (busy, None, paid_once),
    Failpoint.INVALIDATED: PAYING,
    Failpoint.LEASES_RETURNED: PAYING,
    Failpoint.HIDDEN: (busy, None, paid_once),
    Failpoint.SENT_ANEW: (impatient, None, paid_once),
    Failpoint.DEAD_LETTER_SENT: (hopeless, None, dead_lettered),
    Failpoint.BURIED: (hopeless, None, dead_lettered),
    Failpoint.ANSWERING: PAYING,
    Failpoint.RELAY_RECEIVED: RELAYING,
    Failpoint.RELAY_SENT: RELAYING,
    Failpoint.RELAY_MARKED: RELAYING,
    Failpoint.RELAY_GAVE_UP: (unsendable, None, told_and_the_others_sent),
    Failpoint.RELAY_PARKED: RELAYING,
    Failpoint.RESCUED: (lost, None, paid_once),
    Failpoint.PRODUCING: (produced, produced_again, paid_once),
    Failpoint.PRODUCED: (produced, produced_again, paid_once),
    Failpoint.CACHE_FETCHED: READING,
    Failpoint.CACHE_LOADED: READING,
    Failpoint.CACHE_STORED: READING,
}


# What an operator's process passes: tests/ops kills it in memory at each, tests/faults/test_replay.py for good.
AT_THE_DESK = (
    Failpoint.LETTERS_TAKEN,
    Failpoint.REOPENED,
    Failpoint.COPIES_SENT,
    Failpoint.LETTERS_DELETED,
    Failpoint.ARCHIVED,
    Failpoint.ENDED_BY_PEOPLE,
    Failpoint.EDITED_SENT,
)

# What the controller of the queue brake passes: tests/unit/test_brake.py lets it die at each.
AT_THE_BRAKE = (Failpoint.BRAKE_NOTED, Failpoint.BRAKE_FREED)

# Only a job that writes files passes it: tests/functions/test_imports.py dies there, at the first file and the last.
AT_THE_FILES = (Failpoint.FILE_WRITTEN,)

# A second process finds the step done, and does not come by again.
DONE_ONCE = {
    Failpoint.COMMITTED,
    Failpoint.INTENDED,
    Failpoint.WAITING,
    Failpoint.WOKEN,
    Failpoint.SENT_ANEW,
    Failpoint.DEAD_LETTER_SENT,
    Failpoint.BURIED,
    Failpoint.CACHE_STORED,
}
# Without leases nothing is leased.
LEASING = {Failpoint.LOCKED_TOGETHER, Failpoint.LEASED}
CRASHES = [
    (point, times)
    for times in TIMES
    for point in SCENES
    if not (times > 1 and point in DONE_ONCE) and not (chosen() is Mode.REDIS_GONE and point in LEASING)
]


@pytest.fixture(scope="module")
def played(
    aws_endpoint: str, valkey: Valkey, faults_provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[Failpoint, int], Any]:
    """Every scene, played to its end; a scene that failed on the way is there as its exception."""
    folder = tmp_path_factory.mktemp("witnesses")

    def play(point: Failpoint, times: int) -> Scene:
        begin, after, _ = SCENES[point]
        worker = IMPATIENT if begin is impatient else CRASHING
        stack = new_stack(valkey, faults_provider, visibility=3, worker=worker)
        if point in {Failpoint.FENCED, Failpoint.BEAT_CLAIM, Failpoint.BEAT_MESSAGE}:
            # The queue would keep the message for long: its heartbeat has it back.
            stack = new_stack(valkey, faults_provider, visibility=LONG, worker=worker)
        scene = Scene(stack, folder, f"{point.value.replace('-', '_')}_{times}", point)
        begin(scene)
        scene.crash(times)
        if after is not None:
            after(scene)
        scene.finish()
        return scene

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        futures = {(point, times): pool.submit(play, point, times) for point, times in CRASHES}
        return {key: future.exception() or future.result() for key, future in futures.items()}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("point", "times"), CRASHES)
def test_ide_15_dying_there_changes_nothing_about_the_end(
    point: Failpoint, times: int, played: dict[tuple[Failpoint, int], Any]
) -> None:
    scene = played[point, times]
    if isinstance(scene, BaseException):
        raise scene
    assert scene.witnesses == [point] * times
    SCENES[point][2](scene)


def test_every_failpoint_has_a_scene() -> None:
    assert set(SCENES) | {*AT_THE_DESK, *AT_THE_BRAKE, *AT_THE_FILES} == set(Failpoint)
