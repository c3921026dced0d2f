"""Order per entity: what is to be sent in order is, whatever fails on the way, and what is not is not held back by it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from functions.outbox_sweeper import BATCH, GRACE, Sweeper
from shared.backends.dynamodb.outbox import read_posting, write_posting
from shared.backends.memory.database import MemoryDatabase
from shared.errors import Refused, Unavailable
from shared.message import Message
from shared.outbox import Posting, posting_of
from shared.producer import ROUNDS, NotTaken
from shared.rounds.relay import Relay
from shared.telemetry import Silent
from tests.world import START, FakeClock, Note, World, body, note_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.producer import Outgoing


@dataclass
class Line:
    """A queue that refuses some bodies for a while, an outbox, a relay between them."""

    refusing: set[str] = field(default_factory=set)
    final: bool = False

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.sent: list[str] = []
        self.calls: list[int] = []
        self.outbox: Any = MemoryDatabase(self.clock)
        self.relay = Relay(self.outbox, self.outbox, lambda _: self, self.clock, Random(1), Silent())  # noqa: S311 - repeatable

    def send(self, batch: Sequence[Outgoing]) -> Sequence[str | NotTaken]:
        self.calls.append(len(batch))
        self.sent += [message.body for message in batch if message.body not in self.refusing]
        return [NotTaken("Code", final=self.final) if m.body in self.refusing else "id" for m in batch]

    def committed(self, *texts: str) -> list[Posting]:
        """Ordered postings, each of a commit of its own."""
        postings = [posting(text) for text in texts]
        for each in postings:
            self.outbox.post(each, self.clock.moment)
            self.clock.pass_(timedelta(milliseconds=20))
        return postings


def posting(text: str, *, ordered: bool = True) -> Posting:
    """`a1` is the first message of group a."""
    return Posting(text, "notes", text, group=text[0], ordered=ordered)


def order_of(sent: list[str], group: str) -> list[str]:
    return [text for text in sent if text[0] == group]


def test_i12_what_is_behind_one_that_waits_is_held_back_and_other_lanes_go_on() -> None:
    line = Line(refusing={"a2"})
    postings = line.committed("a1", "b1", "a2", "a3", "b2", "c1")
    with pytest.raises(Unavailable, match="2 of 6"):
        line.relay.relay(postings)
    assert sorted(line.sent) == ["a1", "b1", "b2", "c1"]
    line.refusing.clear()
    line.relay.relay(postings)  # the stream delivers the batch again
    assert line.sent[4:] == ["a2", "a3"]


def test_two_of_one_lane_never_travel_in_one_call() -> None:
    line = Line()
    line.relay.relay(line.committed(*(f"{group}{number}" for number in range(3) for group in "ab")))
    assert line.calls == [2, 2, 2]
    assert order_of(line.sent, "a") == ["a0", "a1", "a2"]


def test_what_can_never_be_sent_is_parked_and_the_next_goes_on() -> None:
    line = Line(refusing={"a1"}, final=True)
    line.relay.relay(line.committed("a1", "a2"))
    assert line.sent == ["a2"]
    assert line.outbox.parked == {"a1": "Code"}


def test_what_has_a_group_for_fairness_alone_is_held_back_by_nothing() -> None:
    line = Line(refusing={"a1"})
    with pytest.raises(Unavailable, match="1 of 3"):
        line.relay.relay([posting(text, ordered=False) for text in ("a1", "a2", "a3")])
    assert line.sent == ["a2", "a3"]
    assert line.calls[0] == 3


def test_the_sweeper_keeps_the_order_over_all_of_a_sweep() -> None:
    line = Line(refusing={"a000"})
    for number in range(BATCH + 20):
        line.outbox.post(posting(f"a{number:03}"), line.clock.moment)
        line.clock.moment += GRACE / 1000
    line.outbox.post(posting("b1"), line.clock.moment)
    line.clock.moment += 2 * GRACE
    sweeper = Sweeper(line.outbox, line.relay, line.clock, Random(1), Silent())  # noqa: S311 - repeatable
    sweeper.sweep(line.clock.moment + 100 * GRACE)
    assert line.sent == ["b1"]
    assert len(line.calls) == ROUNDS + (
        line.calls[0] == 1
    )  # the first of the lane was tried as one try, not once a batch
    line.refusing.clear()
    sweeper.sweep(line.clock.moment + 100 * GRACE)
    assert order_of(line.sent, "a") == [f"a{number:03}" for number in range(BATCH + 20)]


def test_the_items_of_a_lane_share_their_partition_so_that_the_stream_keeps_their_order() -> None:
    for ordered, lane in ((True, "notes/a"), (False, "a1")):
        item = write_posting(posting("a1", ordered=ordered), START)
        assert (item["lane"]["S"], item["id"]["S"]) == (lane, "a1")
        assert read_posting(item) == posting("a1", ordered=ordered)


def test_a_handler_asks_for_order_within_a_group() -> None:
    def handler(_: Note, work: Any) -> None:
        work.enqueue(note_job().message(Note(thing="b"), "next"), group="b", ordered=True)

    world = World.of(handler)
    world.run(body())
    (made,) = world.database.outbox.values()
    assert (made.lane, made.group, made.ordered) == ("notes/b", "b", True)


@pytest.mark.parametrize("options", [{}, {"group": "g", "delay": GRACE}])
def test_order_without_a_group_or_with_a_delay_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="order"):
        posting_of(Message("note", 1, "k", "{}"), "p", "notes", ordered=True, **options)


def test_i12_what_the_stream_missed_goes_before_what_it_brings_after_it() -> None:
    line = Line()
    missed, _, brought = line.committed("a1", "b1", "a2")
    line.relay.relay([brought])
    assert line.sent == ["a1", "a2"]
    line.relay.relay([missed])  # late, and no more than what is done
    assert line.sent == ["a1", "a2"]


def test_i12_what_the_stream_has_given_up_holds_back_what_it_brings_after_it() -> None:
    line = Line(refusing={"a1"})
    *_, brought = line.committed("a1", "a2")
    with pytest.raises(Unavailable, match="1 of 1"):
        line.relay.relay([brought])
    assert line.sent == []


def test_what_is_behind_what_was_asked_for_is_left_to_its_own_turn() -> None:
    line = Line()
    first, *_ = line.committed("a1", "a2", "a3")
    line.relay.relay([first])
    assert line.sent == ["a1"]


def test_one_group_at_two_workers_is_two_lanes() -> None:
    line = Line(refusing={"a1"})
    line.outbox.post(first := posting("a1"), START)
    line.outbox.post(other := replace(posting("a2"), worker="others"), START)
    with pytest.raises(Unavailable, match="1 of 2"):
        line.relay.relay([first, other])
    assert line.sent == ["a2"]
