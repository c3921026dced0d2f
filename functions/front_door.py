"""The HTTP front door: puts its parts together and answers API Gateway's events.

Each group of routes is a module of its own and adds itself to the app: `operations`, `reads`. Here is what holds for all of them: a path
that is not there, an error that nobody thought of, the counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from functions import inventory, payments
from functions.http.answers import refusal
from functions.http.app import App
from functions.http.callers_rate import keep_rate
from functions.http.operations import Operations, add_operations
from functions.http.problem import BROKEN, NOT_FOUND
from functions.http.reads import Reads, add_reads
from functions.http.resources import Conditions
from functions.invoked import invoked, once
from shared.backends import aws
from shared.backends.dynamodb.acceptances import DynamoDBAcceptances
from shared.backends.dynamodb.fences import DynamoDBFences
from shared.backends.dynamodb.intake import DynamoDBIntakeStore
from shared.backends.dynamodb.item_source import DynamoDBItemSource
from shared.backends.dynamodb.items import DynamoDBItems
from shared.backends.dynamodb.job_record_layer import JobRecordLayer
from shared.backends.dynamodb.job_records import DynamoDBJobRecords
from shared.backends.dynamodb.owned_jobs import DynamoDBOwnedJobs
from shared.backends.powertools import PowertoolsTelemetry
from shared.backends.redis.cache import RedisCache
from shared.backends.redis.elasticache import connection
from shared.backends.redis.rates import RedisRates
from shared.cache import Cache
from shared.clock import Surroundings, SystemClock, random_token
from shared.files import OnFirstUse
from shared.intake.quota import WithinQuota
from shared.intake.request import Intake
from shared.intake.shedding import Shedding
from shared.job import JobTypes
from shared.outcome import signature
from shared.rate import Rate
from shared.telemetry import NO_JOB_TYPE
from shared.wire.deposits import Deposits

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler import Response

    from shared.files import FileStore
    from shared.intake.acceptance import AcceptsJobs
    from shared.intake.owned_jobs import OwnedJobs
    from shared.intake.shedding import IntakeStore
    from shared.job_records import JobRecords
    from shared.rate import Rates
    from shared.settings import OwnerLimits, Settings
    from shared.telemetry import Telemetry

WORKERS = (payments.WORKER, inventory.WORKER)
OPEN_JOBS = tuple(job for worker in WORKERS for job in worker.jobs if job.open_to_clients)
OPEN = {job.name: worker.name for worker in WORKERS for job in worker.jobs if job.open_to_clients}


# A store that is silent has to be told to the client, with when to come again, before the function's time is up. Two calls may
# find that out, one after the other: whether intake is closed, which nobody has to know, and the one that has to be done.
READ_SECONDS = 1.0
ATTEMPTS = 2


def client(service: str) -> Any:  # noqa: ANN401 - boto3 builds the class at run time
    """A client of an AWS service that gives up while a request can still be answered."""
    return aws.client(service, read_seconds=READ_SECONDS, attempts=ATTEMPTS)


@dataclass(frozen=True, slots=True)
class FrontDoor:
    """Answers events of API Gateway."""

    app: App
    telemetry: Telemetry

    def handle(self, event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - the Lambda context
        """Answer one request."""
        with invoked(self.telemetry, context):
            answered = self.app.answer(event, context)
            if answered["statusCode"] >= HTTPStatus.BAD_REQUEST:
                self.telemetry.count("refused", NO_JOB_TYPE)
            return answered


def assemble(  # noqa: PLR0913 - the parts, by keyword only
    *,
    accepts: AcceptsJobs,
    records: JobRecords,
    jobs: OwnedJobs,
    reads: Reads,
    closures: IntakeStore,
    rates: Rates | None,
    limits: OwnerLimits | None,
    here: Surroundings,
    telemetry: Telemetry,
    deposits: Deposits | None = None,
) -> FrontDoor:
    """Put a front door together from given parts; without `rates` or `limits` owners are not limited one by one."""
    app = App()
    if limits is not None:
        accepts = WithinQuota(accepts, records, jobs, limits.unfinished)
        if rates is not None:
            keep_rate(app, rates, Rate(limits.requests_per_second, limits.burst), telemetry)
    intake = Intake(JobTypes.of(*OPEN_JOBS), OPEN, accepts, records, here, deposits)
    shedding = Shedding(closures, here.clock, here.random)
    add_operations(app, Operations(intake, jobs, here.clock, telemetry, Conditions(reads.source), shedding))
    add_reads(app, reads)

    @app.not_found
    def absent(_: Exception) -> Response[str]:
        return refusal(NOT_FOUND)

    @app.exception_handler(Exception)  # type: ignore[untyped-decorator]  # Powertools gives it no types
    def broken(error: Exception) -> Response[str]:
        # Powertools would log the error's text and let Lambda log it again; it may quote what the client sent.
        telemetry.count("request_failed", NO_JOB_TYPE)
        telemetry.warn("request_failed", error=type(error).__name__, signature=signature(error, BROKEN.code))
        return refusal(BROKEN)

    return FrontDoor(app, telemetry)


def connect(settings: Settings) -> FrontDoor:
    """A front door for the stack that the settings name."""
    clock, random, dynamodb = SystemClock(), SystemRandom(), client("dynamodb")
    here = Surroundings(clock, random, random_token)
    # A function answers one request at a time: its own connection, and that of the thread that renews a refill lease.
    redis = connection(settings, clock, most=2) if settings.cache_host else None
    items, telemetry = DynamoDBItems(dynamodb, settings.tables), PowertoolsTelemetry("front-door")
    layer = JobRecordLayer(dynamodb, settings.jobs_table, items, settings.outbox_table)
    fences = DynamoDBFences(dynamodb, settings.jobs_table, clock, random)
    return assemble(
        accepts=DynamoDBAcceptances(dynamodb, settings.jobs_table, settings.outbox_table, clock, random),
        records=DynamoDBJobRecords(layer, fences, clock, random),
        jobs=DynamoDBOwnedJobs(dynamodb, settings.jobs_table, clock, random),
        reads=Reads(
            DynamoDBItemSource(items, clock, random),
            None if redis is None else Cache(RedisCache(redis), here, telemetry),
        ),
        rates=None if redis is None else RedisRates(redis),
        limits=settings.owner_limits,
        closures=DynamoDBIntakeStore(dynamodb, settings.jobs_table),
        here=here,
        telemetry=telemetry,
        deposits=Deposits(OnFirstUse(partial(_files, settings))) if settings.buckets else None,
    )


def _files(settings: Settings) -> FileStore:
    from shared.backends.s3 import S3Files  # noqa: PLC0415 - most requests never use it

    return S3Files(client("s3"), settings.buckets)


door_here = once(connect)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - the Lambda context
    """Answer one request."""
    return door_here().handle(event, context)
