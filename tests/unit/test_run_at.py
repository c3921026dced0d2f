"""R1.1: a job does not run before its `run_at`, whatever brings its message early, and begins to the second."""

from __future__ import annotations

import json
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from functions.outbox_sweeper import GRACE, Sweeper
from shared.errors import Refused
from shared.limits import LONGEST_DELAY
from shared.message import Message
from shared.outbox import LEAD, LONGEST_SCHEDULE, Posting
from shared.outcome import Because, Completed, DeadLettered, Postponed
from shared.producer import Producer
from shared.rounds.relay import Relay
from shared.telemetry import NO_JOB_TYPE, Silent
from shared.wire.parsing import fingerprint, read_message
from shared.worker import Worker
from tests.world import START, Counter, FakeClock, Note, NotingQueue, World, body, event, note_job, record_of

if TYPE_CHECKING:
    from shared.unit_of_work import UnitOfWork

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def at(wait: timedelta) -> str:
    return body(run_at=(START + wait).isoformat())


def test_r1_1_a_message_that_comes_early_waits_and_no_attempt_exists() -> None:
    world = World.of()
    outcome, acknowledged = world.run(at(timedelta(minutes=5)))
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.TOO_EARLY
    assert timedelta(minutes=5) <= outcome.after <= timedelta(minutes=5, seconds=2)
    assert not acknowledged
    assert world.database.records == {}
    world.clock.pass_(timedelta(minutes=5))
    assert isinstance(world.run(at(timedelta(minutes=5)))[0], Completed)


def test_a_message_that_comes_early_takes_no_lock() -> None:
    world = World.of()
    taken: list[object] = []

    class Noting:
        def __getattr__(self, name: str) -> Any:
            return taken.append(name)

    world.cache = Noting()
    world.handle(event(record_of(at(HOUR))))
    assert taken == []


def test_what_waits_for_longer_than_sqs_delays_is_kept_in_the_outbox_and_not_on_the_queue() -> None:
    world = World.of()
    outcome, acknowledged = world.run(at(timedelta(days=40)))
    assert isinstance(outcome, Postponed)
    assert acknowledged
    assert world.queue.hidden == {}
    (posting,) = world.database.outbox.values()
    assert posting.delay == outcome.after
    assert json.loads(posting.body)["run_at"] == (START + timedelta(days=40)).isoformat()


def test_what_is_years_ahead_is_kept_for_a_year_and_then_again() -> None:
    world = World.of()
    outcome, acknowledged = world.run(at(timedelta(days=4000)))
    assert isinstance(outcome, Postponed)
    assert acknowledged
    (posting,) = world.database.outbox.values()
    assert posting.delay == LONGEST_SCHEDULE


def test_on_a_fifo_queue_run_at_is_refused_with_its_reason() -> None:
    world = World.of()
    object.__setattr__(world.worker, "fifo", True)  # the queue turned FIFO after the message was sent
    outcome = world.execute(at(HOUR), group="g")
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == "run-at-on-fifo"


def test_run_at_is_a_part_of_what_was_asked_for() -> None:
    early, same = (read_message(at(wait)) for wait in (HOUR, HOUR))
    late, never = read_message(at(2 * HOUR)), read_message(body())
    payload = Note(thing="a")
    prints = [fingerprint(message, payload) for message in (early, same, late, never)]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3
    other_zone = read_message(body(run_at="2026-01-01T03:00:00+02:00"))
    assert fingerprint(other_zone, payload) == prints[0]


def test_run_at_without_a_zone_is_malformed() -> None:
    outcome = World.of().execute(body(run_at="2026-01-01T03:00:00"))
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == "invalid-envelope"


@pytest.mark.parametrize(
    ("wait", "delay"),
    [
        (-HOUR, timedelta(0)),
        (timedelta(seconds=7.5), timedelta(seconds=8)),
        (timedelta(minutes=15), timedelta(minutes=15)),
        (timedelta(days=3), timedelta(minutes=15)),
    ],
)
def test_a_producer_has_sqs_wait_for_as_long_as_it_can(wait: timedelta, delay: timedelta) -> None:
    queue = NotingQueue()
    producer = Producer(queue, FakeClock(), Random(1), Counter())  # noqa: S311 - repeatable
    producer.enqueue(note_job().message(Note(thing="a"), "k", run_at=START + wait))
    (sent,) = queue.sent
    assert sent.delay == delay
    assert json.loads(sent.body)["run_at"] == (START + wait).isoformat()


def test_a_producer_waits_for_the_longer_of_delay_and_run_at() -> None:
    queue = NotingQueue()
    producer = Producer(queue, FakeClock(), Random(1), Counter())  # noqa: S311 - repeatable
    later = note_job().message(Note(thing="a"), "k", run_at=START + 2 * MINUTE)
    for delay in (MINUTE, 3 * MINUTE):
        producer.enqueue(later, delay=delay)
    assert [sent.delay for sent in queue.sent] == [2 * MINUTE, 3 * MINUTE]


def test_a_producer_of_a_fifo_queue_refuses_run_at() -> None:
    producer = Producer(NotingQueue(), FakeClock(), Random(1), Counter(), fifo=True)  # noqa: S311 - repeatable
    with pytest.raises(Refused, match="run_at"):
        producer.enqueue(Message("note", 1, "k", "{}", run_at=START), group="g")


def test_a_job_that_is_enqueued_for_later_waits_for_the_longer_of_delay_and_run_at() -> None:
    def handler(_: Note, work: object) -> None:
        later = note_job().message(Note(thing="b"), "later", run_at=START + 3 * HOUR)
        work.enqueue(later, delay=HOUR)  # type: ignore[attr-defined]
        work.enqueue(later, delay=5 * HOUR)  # type: ignore[attr-defined]

    world = World.of(handler)
    world.run(body())
    assert [posting.delay for posting in world.database.outbox.values()] == [3 * HOUR, 5 * HOUR]


def test_i9_what_is_scheduled_is_sent_by_the_sweeper_so_that_it_begins_to_the_second() -> None:
    world = World.of()
    queue = NotingQueue()
    relay = Relay(world.database, world.database, lambda _: queue, world.clock, Random(1), Silent())  # noqa: S311 - repeatable
    sweeper = Sweeper(world.database, relay, world.clock, Random(1), world.telemetry)  # noqa: S311 - repeatable
    posting = Posting("p", "notes", "{}", delay=HOUR)
    world.database.post(posting, START)
    relay.relay([posting])  # the stream brings it at once
    while world.clock.moment < START + HOUR:
        sweeper.sweep(world.clock.moment + MINUTE)
        if queue.sent:
            break
        world.clock.pass_(MINUTE)
    (sent,) = queue.sent
    sends = world.clock.moment
    assert START + HOUR - LEAD < sends <= START + HOUR - LEAD + GRACE + 2 * MINUTE
    assert sends + sent.delay == START + HOUR
    assert sent.delay <= LONGEST_DELAY
    assert world.telemetry.counts["swept", NO_JOB_TYPE] == 1


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_moment_that_cannot_be_reckoned_with_is_malformed_and_no_poison(moment: str) -> None:
    outcome = World.of().execute(body(run_at=moment))
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == "invalid-run-at"
    assert isinstance(World.of().execute(body(enqueued_at=moment)), Completed)


def test_on_a_fifo_queue_a_job_whose_time_has_come_runs() -> None:
    world = World(Worker("notes", jobs=(note_job(),), fifo=True))
    assert world.execute(at(-HOUR), group="g") == Completed(1)


@pytest.mark.parametrize("wait", [-HOUR, HOUR])
@pytest.mark.parametrize("options", [{"delay": MINUTE}, {}])
def test_a_handler_on_a_fifo_queue_cannot_put_off_what_it_sends_there(options: dict[str, Any], wait: timedelta) -> None:
    later = None if options else START + wait
    refused: list[str] = []

    def handler(_: Note, work: UnitOfWork) -> None:
        message = note_job().message(Note(thing="b"), "later", run_at=later)
        work.enqueue(message, worker="others", **options)
        with pytest.raises(Refused, match="FIFO") as caught:
            work.enqueue(message, group="g", **options)
        refused.append(str(caught.value))

    world = World(Worker("notes", jobs=(note_job(handler),), fifo=True))
    assert world.execute(body(), group="g") == Completed(1)
    assert len(refused) == 1
