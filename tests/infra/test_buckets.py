"""Buckets of every template: who may touch which folder, and that nobody else, and nothing for ever, lies there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from functions import imports
from infra.plan import Plan
from infra.stage.settings import Stage
from shared.errors import DeclarationError
from shared.files import Folder
from shared.worker import Worker
from tests.infra.declared import SLOW, a_job
from tests.infra.walk import listed, plain, target, text

if TYPE_CHECKING:
    from tests.infra.walk import Json, Walk


def statements(walk: Walk, function: str) -> list[Json]:
    """What a function may do with files."""
    role = target(next(f["Role"] for n, f in walk.of("AWS::Lambda::Function").items() if plain(n) == function))
    return [
        statement
        for policy in walk.of("AWS::IAM::Policy").values()
        if {"Ref": role} in policy["Roles"]
        for statement in policy["PolicyDocument"]["Statement"]
        if "s3:" in str(statement["Action"])
    ]


def folders(walk: Walk, function: str) -> set[tuple[str, ...]]:
    """The folders that a function reaches, each with what it may do there; and what it may list, by prefix."""
    found: set[tuple[str, ...]] = set()
    for statement in statements(walk, function):
        actions = statement["Action"]
        if actions == "s3:ListBucket":
            found.add((statement["Condition"]["StringLike"]["s3:prefix"], actions))
        else:
            for resource in listed(statement["Resource"]):
                found.add((text(resource).rpartition(">/")[2] or text(resource), *sorted(listed(actions))))
    return found


ACCESS_LOGS = "FoundationAccessLogs"
WRITERS_OF_LOGS = {"delivery.logs.amazonaws.com", "logging.s3.amazonaws.com"}
WRITE = ("s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject")
DEPOSITED = {("texts/*", "s3:GetObject", "s3:PutObject"), ("texts/*", "s3:ListBucket")}


def test_a_function_reaches_its_folders_and_no_others(declared: Walk) -> None:
    mine = {
        ("found/*", *WRITE),
        ("found/*", "s3:ListBucket"),
        ("wanted/*", "s3:GetObject"),
        ("wanted/*", "s3:ListBucket"),
    }
    assert folders(declared, "WorkerSlowConsumerFunction") == mine | DEPOSITED
    for function in ("WorkerPayingConsumerFunction", "FrontDoorFunction"):
        assert folders(declared, function) == DEPOSITED
    for function in ("OutboxRelayFunction", "OutboxSweeperFunction", "PartCounterFunction", "LookoutFunction"):
        assert folders(declared, function) == set()


def files(walk: Walk) -> dict[str, Json]:
    """The buckets of files; what is left is the one of access logs."""
    return {name: bucket for name, bucket in walk.of("AWS::S3::Bucket").items() if plain(name) != ACCESS_LOGS}


def test_a_bucket_is_private_encrypted_and_forgets(walk: Walk) -> None:
    buckets = files(walk)
    assert buckets
    for bucket in buckets.values():
        assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
        (forget,) = bucket["LifecycleConfiguration"]["Rules"]
        assert (forget["Status"], forget["ExpirationInDays"]) == ("Enabled", 90)
        assert forget["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
        assert bucket["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}


def test_nothing_reaches_a_bucket_but_over_tls(walk: Walk) -> None:
    refusing = set()
    for policy in walk.of("AWS::S3::BucketPolicy").values():
        denied = [s["Condition"] for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Deny"]
        if {"Bool": {"aws:SecureTransport": "false"}} in denied:
            refusing.add(target(policy["Bucket"]))
        allowed = [s["Principal"] for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Allow"]
        if plain(target(policy["Bucket"])) == ACCESS_LOGS:
            assert {principal["Service"] for principal in allowed} <= WRITERS_OF_LOGS
        else:
            assert allowed == []
    assert refusing == set(walk.of("AWS::S3::Bucket"))


def test_the_products_files_are_those_of_its_imports(product: Walk) -> None:
    assert {plain(name) for name in files(product)} == {
        "FoundationBucketsImports",
        "FoundationBucketsDeposits",
    }
    assert Plan(Stage(name="dev", endpoints={}), (imports.WORKER,)).buckets == ("imports",)


def test_two_buckets_of_one_name_in_the_stack_are_refused() -> None:
    one = Worker("one", (a_job("a", Folder("my-files", "x").read),))
    other = Worker("other", (a_job("b", Folder("myFiles".lower(), "x").read),))
    Plan(Stage(name="dev"), (one, other))
    twin = Worker("twin", (a_job("c", Folder("my-files", "y").read),))
    assert Plan(Stage(name="dev"), (one, twin)).buckets == ("my-files",)


@pytest.mark.parametrize("name", ["Uploads", "a b", "", "-x", "x/y"])
def test_a_folder_that_infra_could_not_name_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match="use lower case words joined by '-', like 'uploads'"):
        Folder("imports", name)
    with pytest.raises(DeclarationError, match="use lower case words joined by '-', like 'uploads'"):
        Folder(name, "uploads")


def test_the_widest_right_of_a_workers_jobs_counts() -> None:
    folder = Folder("pages", "found")
    assert [reach.right.value for reach in SLOW.reaches] == ["read-write", "read"]
    both = Worker("both", (a_job("a", folder.read), a_job("b", folder.read_write), a_job("c", folder.read)))
    assert both.reaches == (folder.read_write,)
