"""Puts a worker's parts together: the one place that chooses technologies. Tests and the simulator put in their own."""

from __future__ import annotations

from dataclasses import dataclass
from random import SystemRandom
from typing import TYPE_CHECKING

from shared.backends.aws import client
from shared.backends.dynamodb.fences import DynamoDBFences
from shared.backends.dynamodb.items import DynamoDBItems
from shared.backends.dynamodb.job_record_layer import JobRecordLayer
from shared.backends.dynamodb.job_records import DynamoDBJobRecords
from shared.backends.dynamodb.outbox import DynamoDBOutbox
from shared.backends.dynamodb.parts import DynamoDBParts
from shared.backends.http import HttpTransport
from shared.backends.memory.gates import MemoryGates
from shared.backends.powertools import PowertoolsTelemetry
from shared.backends.redis.elasticache import connection
from shared.backends.redis.gates import RedisGates
from shared.backends.redis.leases import RedisStore
from shared.backends.sqs.queue import SqsQueue
from shared.clock import Surroundings, SystemClock, random_token
from shared.errors import SettingsError
from shared.execution import Execution
from shared.files import OnFirstUse
from shared.lease import Leases
from shared.pipeline.attempt import Attempts
from shared.pipeline.finishing import GATHERING, Finishing
from shared.pipeline.keeper import Keeper
from shared.pipeline.locking import Locking
from shared.pipeline.postponing import Postponing
from shared.pipeline.preparation import Preparation
from shared.pipeline.reporting import Reporting
from shared.pipeline.units import Units
from shared.producer import Producer
from shared.rounds.counting import Counting
from shared.settings import PREFIX
from shared.settlement import Settlement
from shared.wire.deposits import DEPOSITS, Deposits
from shared.work.way import Ways

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping
    from datetime import timedelta
    from random import Random

    from shared.cache import Cache
    from shared.clock import Clock, Tokens
    from shared.dependency import Transport
    from shared.files import FileStore
    from shared.gate import Gates
    from shared.item import ItemStore
    from shared.job_records import JobRecords
    from shared.lease import LeaseStore
    from shared.outbox import Outbox
    from shared.rounds.counting import Parts
    from shared.settings import Settings
    from shared.settlement import ReceivedFrom
    from shared.telemetry import Telemetry
    from shared.worker import Worker


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a consumer works with."""

    worker: Worker
    clock: Clock
    keeper: Keeper
    execution: Execution
    settlement: Settlement
    telemetry: Telemetry

    @property
    def stopping(self) -> threading.Event:
        """Set when the process is to end."""
        return self.execution.here.stopping


def assemble(  # noqa: PLR0913 - the parts, by keyword only
    worker: Worker,
    *,
    records: JobRecords,
    items: ItemStore,
    outbox: Outbox,
    parts: Parts,
    leases: LeaseStore,
    gates: Gates,
    queue: ReceivedFrom,
    transport: Transport,
    telemetry: Telemetry,
    clock: Clock,
    random: Random,
    tokens: Tokens,
    files: FileStore | None = None,
    gathering: timedelta = GATHERING,
) -> Runtime:
    """Put a worker together from given parts."""
    keeper = Keeper(telemetry)
    here = Surroundings(clock, random, tokens)
    held = Leases(leases, keeper, clock)
    locking, finishing = Locking(held, here), Finishing(held, clock, gathering)
    counting = Counting(parts, {job.name: worker.name for job in worker.jobs if not worker.fifo}, clock)
    deposits = None if files is None else Deposits(files)
    ways = Ways(gates, MemoryGates(clock), worker.max_concurrency, here, telemetry)
    postponing = Postponing(worker.pace, here, telemetry)
    execution = Execution(
        worker=worker,
        records=records,
        preparation=Preparation(
            worker.job_types,
            records,
            queue,
            keeper,
            locking,
            here,
            telemetry,
            deposits,
        ),
        locking=locking,
        finishing=finishing,
        ways=ways,
        units=Units(worker, records, items, parts, transport, ways, here, held.drop, files, deposits),
        attempts=Attempts(worker.name, records, here, telemetry, counting, finishing, postponing),
        postponing=postponing,
        here=here,
        telemetry=telemetry,
        reporting=Reporting(worker.name, clock, telemetry),
    )
    settlement = Settlement(worker, queue, records, outbox, clock, telemetry)
    return Runtime(worker, clock, keeper, execution, settlement, telemetry)


def producer(queue_url: str, bucket: str | None = None) -> Producer:
    """A producer for a queue, by the caller's own AWS credentials; payloads over 200 KB go into the bucket of deposits."""
    queue = SqsQueue(client("sqs"), queue_url)
    deposits = None if bucket is None else Deposits(files_in({DEPOSITS.bucket: bucket}))
    return Producer(queue, SystemClock(), SystemRandom(), random_token, fifo=queue.fifo, deposits=deposits)


def cache(settings: Settings, telemetry: Telemetry, *, threads: int = 10) -> Cache:
    """The cache of a process, for whoever reads through it; its one connection opens when first used. Make it once.

    Args:
        settings: which cache.
        telemetry: where it counts; whoever made it flushes it.
        threads: as many as read through it at the same time.

    Raises:
        SettingsError: the function has no cache; or a user, and nothing to sign with.
    """
    from shared.backends.redis.cache import RedisCache  # noqa: PLC0415 - a function that reads no cache does not pay for it
    from shared.cache import Cache  # noqa: PLC0415 - as above

    if not settings.cache_host:
        message = f"{PREFIX}CACHE_HOST is not set: deploy the function with the cache, or read the source."
        raise SettingsError(message)
    clock = SystemClock()
    redis = connection(settings, clock, most=2 * threads)  # a reader's, and that of the thread that renews its lease
    return Cache(RedisCache(redis), Surroundings(clock, SystemRandom(), random_token), telemetry)


def connect(worker: Worker, settings: Settings) -> Runtime:
    """Put a worker together from the stack it is deployed in; connections open when first used."""
    paced = worker.at_pace(settings.pace)
    clock, random = SystemClock(), SystemRandom()
    dynamodb = client("dynamodb", pool=paced.threads)
    items = DynamoDBItems(dynamodb, settings.tables)
    layer = JobRecordLayer(dynamodb, settings.jobs_table, items, settings.outbox_table)
    fences = DynamoDBFences(dynamodb, settings.jobs_table, clock, random)
    redis = connection(settings, clock, most=paced.threads + 2)
    queue = SqsQueue(
        client("sqs", pool=paced.threads), settings.queues[paced.name], settings.dead_letter_queues[paced.name]
    )
    return assemble(
        paced,
        records=DynamoDBJobRecords(layer, fences, clock, random),
        items=items,
        outbox=DynamoDBOutbox(dynamodb, settings.outbox_table),
        parts=DynamoDBParts(dynamodb, settings.jobs_table, settings.outbox_table, clock, random),
        leases=RedisStore(redis),
        gates=RedisGates(redis),
        queue=queue,
        transport=HttpTransport(settings.endpoints, clock),
        telemetry=PowertoolsTelemetry(paced.name),
        clock=clock,
        random=random,
        tokens=random_token,
        files=files_in(settings.buckets, paced.threads) if settings.buckets else None,
    )


def files_in(buckets: Mapping[str, str], threads: int = 1) -> FileStore:
    """The files of buckets by their logical names; S3 is connected when they are first used."""

    def connected() -> FileStore:
        from shared.backends.s3 import READ_SECONDS, S3Files  # noqa: PLC0415 - most functions never use it

        return S3Files(client("s3", pool=threads, read_seconds=READ_SECONDS), buckets)

    return OnFirstUse(connected)
