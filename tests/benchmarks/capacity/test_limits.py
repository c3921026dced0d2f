"""What bounds a worker: each number by hand, and the first one changes when its setting is moved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.capacity import quotas
from benchmarks.capacity.deployment import Deployment
from benchmarks.capacity.invocation import batch_for, concurrency_for
from benchmarks.capacity.limits import bottleneck, limits_of
from benchmarks.capacity.shape import Origin, counted_workers, shape_of
from tests.benchmarks.capacity.cases import INVOICES, PAYMENTS, plain, wide

POLL = quotas.POLL.value


def bound(name: str, origin: Origin = Origin.QUEUE, **settings: float | None) -> float:
    """The jobs a second of a bound of a plain job."""
    return next(
        limit.jobs for limit in limits_of(plain(origin=origin), wide(**settings)) if limit.name.startswith(name)
    )


def test_concurrency_is_rate_times_time_divided_by_the_batch() -> None:
    needed = concurrency_for(100, plain(0.5).time, wide(), 10)
    assert needed == pytest.approx(100 * (0.5 + POLL) / 10)
    assert concurrency_for(100, plain(0.5).time, wide(), 1) == pytest.approx(10 * needed)


def test_few_invocations_make_full_batches_and_many_make_single_ones() -> None:
    time, deployment = plain(0.5).time, wide()
    assert batch_for(100, 1000, time, deployment) == 1
    assert batch_for(100, 1, time, deployment) == 10
    assert batch_for(100, 100 * (0.5 + POLL) / 4, time, deployment) == pytest.approx(4)


def test_the_maximum_concurrency_bounds_the_rate() -> None:
    assert bound("maximum concurrency", max_concurrency=20) == pytest.approx(20 * 10 / (0.5 + POLL))


def test_threads_fewer_than_the_batch_make_rounds() -> None:
    assert bound("maximum concurrency", max_concurrency=20, threads=4) == pytest.approx(20 * 10 / (3 * 0.5 + POLL))


def test_messages_in_flight_bound_the_rate_by_the_time_they_are_held() -> None:
    retry = plain().worker.jobs[0].retry.base.total_seconds()
    assert bound("messages in flight") == pytest.approx(120_000 / (0.5 + POLL + quotas.POSTPONED_SHARE.value * retry))


def test_a_table_bounds_the_rate_by_its_quota_and_begins_with_what_a_new_one_takes() -> None:
    shape = plain()
    assert shape.jobs_writes == 3  # a claim, and its part of a transaction, which counts twice
    limit = next(each for each in limits_of(shape, Deployment()) if each.name == "writes of the job records")
    assert limit.jobs == pytest.approx(40_000 / 3)
    assert limit.after(0) == pytest.approx(4000 / 3)
    assert limit.after(30 * 60) == pytest.approx(8000 / 3)
    assert limit.after(24 * 3600) == pytest.approx(40_000 / 3)


def test_an_index_of_eight_keys_is_eight_partitions() -> None:
    assert bound("index of unended", Origin.FRONT_DOOR, index_keys=8) == pytest.approx(8 * 1000 / 2)
    assert bound("index of waiting", Origin.FRONT_DOOR, index_keys=8) == pytest.approx(8 * 1000 / 2)


def test_one_hot_item_is_one_partition_and_its_lock_one_job_at_a_time() -> None:
    shape = shape_of(PAYMENTS, seconds=0.5)
    found = {limit.name: limit.jobs for limit in limits_of(shape, wide(hottest=0.1))}
    assert found["partition of one item"] == pytest.approx(1000 / 2 / 0.1)
    assert found["lock on one item"] == pytest.approx(1 / 0.5 / 0.1)


def test_the_relay_sends_a_batch_of_each_shard_at_a_time() -> None:
    seconds = POLL + 10 * quotas.SENT_EACH.value + 100 * quotas.MARKED_EACH.value
    assert bound("outbox relay", Origin.FRONT_DOOR, stream_shards=4) == pytest.approx(4 * 100 / seconds)


def test_parts_of_the_counts_are_all_of_them() -> None:
    for worker in counted_workers():
        shape = shape_of(worker)
        written = shape.jobs_writes + shape.items_writes + shape.outbox_writes - shape.messages  # marks are the relay's
        assert written == shape.counted["write_units"]


def test_the_first_bound_is_another_once_its_setting_is_moved() -> None:
    shape, declared = shape_of(PAYMENTS), Deployment.of(PAYMENTS)
    ladder = [
        bottleneck(shape, declared).name,
        bottleneck(shape, moved := replace(declared, call_rate=10_000)).name,
        bottleneck(shape, moved := replace(moved, calls_at_once=1000)).name,
        bottleneck(shape, moved := replace(moved, max_concurrency=1000)).name,
    ]
    assert ladder == [
        "rate of the outside system",
        "calls at one time",
        "maximum concurrency of the mapping",
        "calls at one time",
    ]


def test_invoices_are_first_bound_by_the_relay_until_its_batches_run_side_by_side() -> None:
    shape, declared = shape_of(INVOICES), Deployment.of(INVOICES)
    assert bottleneck(shape, declared).name == "outbox relay"
    assert bottleneck(shape, replace(declared, shard_batches=10)).name == "maximum concurrency of the mapping"


def test_a_wider_setting_never_lowers_a_bound() -> None:
    shape = shape_of(PAYMENTS, Origin.FRONT_DOOR)
    declared = Deployment.of(PAYMENTS)
    for name in ("max_concurrency", "account", "table_units", "index_keys", "stream_shards", "cache_units"):
        wider = replace(declared, **{name: getattr(declared, name) * 2})
        before = {limit.name: limit.jobs for limit in limits_of(shape, declared)}
        after = {limit.name: limit.jobs for limit in limits_of(shape, wider)}
        assert all(after[each] >= before[each] for each in before), name
