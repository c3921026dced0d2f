"""Queues and mappings of every template."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.infra.declared import ADDED, ORDERED, PAYING, READING, SLOW, WORKERS
from tests.infra.walk import plain, target, text

if TYPE_CHECKING:
    from tests.infra.walk import Json, Walk

DAY = 24 * 60 * 60


def mapping(declared: Walk, worker: str) -> Json:
    (found,) = [m for name, m in declared.mappings("SQS").items() if plain(name) == f"Worker{worker}Mapping"]
    return found


def test_bat_02_every_mapping_asks_for_partial_responses(walk: Walk) -> None:
    for mapped in walk.of("AWS::Lambda::EventSourceMapping").values():
        assert mapped["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_bat_02_a_worker_that_a_user_adds_asks_for_partial_responses(declared: Walk) -> None:
    assert len(declared.mappings("SQS")) == len(WORKERS) + 1
    assert mapping(declared, "Added")["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_bat_08_every_mapping_of_a_queue_limits_its_concurrency(walk: Walk) -> None:
    functions = walk.of("AWS::Lambda::Function")
    for mapped in walk.mappings("SQS").values():
        most = mapped["ScalingConfig"]["MaximumConcurrency"]
        assert most >= 2
        reserved = functions[walk.called(mapped["FunctionName"])].get("ReservedConcurrentExecutions")
        assert reserved is None or reserved >= most


def test_bat_08_a_message_is_received_often_before_sqs_gives_it_up(walk: Walk) -> None:
    for queue in walk.source_queues().values():
        assert queue["RedrivePolicy"]["maxReceiveCount"] >= 10


def test_bat_13_no_mapping_of_a_queue_filters(walk: Walk) -> None:
    assert walk.mappings("SQS")
    for mapped in walk.mappings("SQS").values():
        assert "FilterCriteria" not in mapped


def test_bat_01_visibility_leaves_room_for_six_runs_and_the_window(walk: Walk) -> None:
    functions = walk.of("AWS::Lambda::Function")
    for mapped in walk.mappings("SQS").values():
        timeout = functions[walk.called(mapped["FunctionName"])]["Timeout"]
        window = mapped.get("MaximumBatchingWindowInSeconds", 0)
        queue = walk.source_queues()[target(mapped["EventSourceArn"])]
        assert queue["VisibilityTimeout"] >= 6 * timeout + window
        assert queue["VisibilityTimeout"] <= 43_200


def test_bat_01_the_longest_function_with_the_longest_window_is_deployed(declared: Walk) -> None:
    queue = declared.source_queues()[target(mapping(declared, "Slow")["EventSourceArn"])]
    assert queue["VisibilityTimeout"] == 6 * 900 + 300 == SLOW.visibility_timeout.total_seconds()


def test_the_numbers_of_a_mapping_are_the_declared_ones(declared: Walk) -> None:
    reading = mapping(declared, "Reading")
    assert (reading["BatchSize"], reading["MaximumBatchingWindowInSeconds"]) == (100, 5)
    assert reading["ScalingConfig"] == {"MaximumConcurrency": READING.max_concurrency}
    assert mapping(declared, "Added")["BatchSize"] == ADDED.batch_size
    (paying,) = [
        f for n, f in declared.of("AWS::Lambda::Function").items() if plain(n) == "WorkerPayingConsumerFunction"
    ]
    assert paying["ReservedConcurrentExecutions"] == PAYING.reserved_concurrency
    assert paying["Timeout"] == PAYING.function_timeout.total_seconds()
    assert paying["MemorySize"] == PAYING.memory


def test_a_fifo_worker_has_fifo_queues_and_no_window(declared: Walk) -> None:
    ordered = mapping(declared, "InOrder")
    assert "MaximumBatchingWindowInSeconds" not in ordered
    assert ordered["BatchSize"] == ORDERED.batch_size
    queues = declared.of("AWS::SQS::Queue")
    source = queues[target(ordered["EventSourceArn"])]
    dead = queues[target(source["RedrivePolicy"]["deadLetterTargetArn"])]
    for queue in (source, dead):
        assert queue["FifoQueue"] is True
        assert queue["QueueName"].endswith(".fifo")


def test_every_source_queue_redrives_to_a_queue_that_admits_it_alone(walk: Walk) -> None:
    queues = walk.of("AWS::SQS::Queue")
    for source in walk.source_queues().values():
        dead = queues[target(source["RedrivePolicy"]["deadLetterTargetArn"])]
        allowed = dead["RedriveAllowPolicy"]
        assert allowed["redrivePermission"] == "byQueue"
        (arn,) = allowed["sourceQueueArns"]
        assert text(arn).rpartition(":")[2] == source["QueueName"]
        assert dead.get("FifoQueue") == source.get("FifoQueue")


def test_dead_letters_live_longer_than_the_messages_they_were(walk: Walk) -> None:
    queues = walk.of("AWS::SQS::Queue")
    for source in walk.source_queues().values():
        assert source["MessageRetentionPeriod"] == 4 * DAY
    for name in set(queues) - set(walk.source_queues()):
        assert queues[name]["MessageRetentionPeriod"] == 14 * DAY


def test_every_queue_and_topic_refuses_what_comes_without_tls(walk: Walk) -> None:
    for kind, policies, listed in (
        ("AWS::SQS::Queue", "AWS::SQS::QueuePolicy", "Queues"),
        ("AWS::SNS::Topic", "AWS::SNS::TopicPolicy", "Topics"),
    ):
        refusing = {
            target(reference)
            for policy in walk.of(policies).values()
            for statement in policy["PolicyDocument"]["Statement"]
            if statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
            for reference in policy[listed]
        }
        assert refusing == set(walk.of(kind))


PATTERNS = {
    "relay": {"eventName": ["INSERT"]},
    "part-counter": {
        "eventName": ["MODIFY"],
        "dynamodb": {
            "NewImage": {
                "part_of": {"S": [{"exists": True}]},
                "status": {"S": ["completed", "failed", "cancelled", "dead-lettered"]},
            }
        },
    },
}


@pytest.mark.parametrize("name", PATTERNS)
def test_what_a_stream_cannot_deliver_is_given_up_by_age_alone_and_told(walk: Walk, name: str) -> None:
    mapped = walk.streamed(name)
    assert mapped["StartingPosition"] == "TRIM_HORIZON"
    assert mapped["BisectBatchOnFunctionError"] is True
    assert (mapped["BatchSize"], mapped["MaximumRetryAttempts"]) == (100, -1)
    assert mapped["MaximumRecordAgeInSeconds"] == 6 * 60 * 60
    (criterion,) = mapped["FilterCriteria"]["Filters"]
    assert json.loads(criterion["Pattern"]) == PATTERNS[name]
    assert target(mapped["DestinationConfig"]["OnFailure"]["Destination"]) in walk.of("AWS::SQS::Queue")


@pytest.mark.parametrize(("name", "key"), [("relay", ["lane", "id"]), ("part-counter", ["id"])])
def test_each_reads_the_stream_of_its_table_with_new_images(walk: Walk, name: str, key: list[str]) -> None:
    table = walk.of("AWS::DynamoDB::Table")[target(walk.streamed(name)["EventSourceArn"])]
    assert [each["AttributeName"] for each in table["KeySchema"]] == key
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}


def test_dlq_05_no_function_sends_to_the_queue_that_feeds_it(walk: Walk) -> None:
    fed_by: dict[str, set[str]] = {}
    for mapped in walk.mappings("SQS").values():
        fed_by.setdefault(walk.called(mapped["FunctionName"]), set()).add(target(mapped["EventSourceArn"]))
    for role, function in walk.functions_by_role().items():
        sends = {grant.resource for grant in walk.grants(role) if grant.action == "sqs:SendMessage"}
        assert not sends & fed_by.get(function, set())
