"""What a worker is deployed with: our settings, and the quotas of its account. A plan is another deployment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.capacity import quotas
from infra.stage.identity import Identity
from shared.outbox import SHARDS

if TYPE_CHECKING:
    from shared.worker import Worker

DOOR_REQUESTS = float(Identity.model_fields["requests_per_second"].default)
STREAM_BATCH = 100  # of infra/constructs/mapping.py, whose import would start the CDK; a test holds them together


@dataclass(frozen=True, slots=True)
class Pollers:
    """Provisioned mode of a mapping: pollers that are kept, and the most that there may be."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Deployment:
    """The settings of one worker and its surroundings.

    Attributes:
        batch_size: messages in one invocation.
        window: seconds that a mapping waits for a batch to fill.
        threads: jobs side by side in one invocation.
        max_concurrency: the mapping's maximum concurrency; None sets none.
        pollers: provisioned mode, which excludes a maximum concurrency; `infra/` has no setting for it yet.
        reserved: concurrency of the function, if any.
        account: concurrent invocations of the account.
        call_rate: calls a second that the dependency's declaration allows, if it does.
        calls_at_once: and at one time.
        table_units: write units, and read units, a second that one table may have.
        warm_writes: write units a second that a table takes at once.
        index_keys: keys of the indexes of unended jobs and of waiting messages.
        stream_shards: shards of the outbox's stream.
        shard_batches: batches of one shard at a time.
        stream_batch: messages in one batch of the relay.
        cache_units: ECPU a second that the cache takes at once.
        door_requests: requests a second that the front door of the stage admits.
        api_requests: requests a second of all APIs of the account.
        hottest: share of the jobs that are about the one item (and lock key) that is asked for most.
    """

    batch_size: int = 10
    window: float = 0
    threads: int = 10
    max_concurrency: int | None = 10
    pollers: Pollers | None = None
    reserved: int | None = None
    account: int = int(quotas.ACCOUNT_CONCURRENCY.value)
    call_rate: float | None = None
    calls_at_once: int | None = None
    table_units: float = quotas.TABLE_UNITS.value
    warm_writes: float = quotas.NEW_TABLE_WRITES.value
    index_keys: int = SHARDS
    stream_shards: int = int(quotas.SHARDS_OF_A_NEW_TABLE.value)
    shard_batches: int = int(quotas.BATCHES_OF_A_SHARD.value)
    stream_batch: int = STREAM_BATCH
    cache_units: float = quotas.NEW_CACHE_UNITS.value
    door_requests: float = DOOR_REQUESTS
    api_requests: float = quotas.API_REQUESTS.value
    hottest: float = 0

    @classmethod
    def of(cls, worker: Worker) -> Deployment:
        """What `infra/` makes of a worker, in an account whose quotas nobody has raised."""
        gated = next((each for each in worker.dependencies if each.gate is not None), None)
        return cls(
            batch_size=worker.batch_size,
            window=worker.window.total_seconds(),
            threads=worker.threads,
            max_concurrency=worker.max_concurrency,
            reserved=worker.reserved_concurrency,
            call_rate=None if gated is None or gated.rate is None else gated.rate.per_second,
            calls_at_once=None if gated is None else gated.concurrency,
        )
