"""Valkey and the stand-in as real processes: they answer, restart, and are gone at the end (LOC-01)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import psutil
import redis

from local.processes.children import Children
from local.processes.ports import listens
from local.stack.clients import Clients
from local.stack.standin import start_standin
from local.stack.valkey import Valkey

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def nothing(_: str) -> None:
    """Take no notice."""


def test_valkey_comes_back_on_its_port_and_empty(tmp_path: Path) -> None:
    with Children() as children:
        valkey = Valkey(children, tmp_path)
        assert not valkey.is_running
        valkey.start()
        with redis.Redis(host=valkey.host, port=valkey.port) as client:
            client.set("key", "value")

            valkey.stop()
            assert not valkey.is_running
            valkey.start()

            assert client.get("key") is None
        port = valkey.port

    assert not listens(port)


def test_valkey_that_keeps_comes_back_with_what_it_held(tmp_path: Path) -> None:
    with Children() as children:
        valkey = Valkey(children, tmp_path, keeps=True)
        valkey.start()
        with redis.Redis(host=valkey.host, port=valkey.port) as client:
            client.set("key", "value", px=60_000)

            valkey.stop()
            valkey.start()

            assert client.get("key") == b"value"


def test_loc_01_the_stand_in_works_whatever_the_environment_says_of_aws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nowhere")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA" + "Z" * 16)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "q" * 40)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://sqs.eu-central-1.amazonaws.com")
    with Children() as children:
        valkey = Valkey(children, tmp_path / "valkey")
        standin = start_standin(children, tmp_path / "standin", valkey, nothing)
        environ = psutil.Process(standin.child.process.pid).environ()
        assert "AWS_PROFILE" not in environ
        assert os.environ["AWS_ACCESS_KEY_ID"] not in environ.values()
        sqs = Clients.at(standin.endpoint).sqs

        queue = sqs.create_queue(QueueName="q")["QueueUrl"]
        sqs.send_message(QueueUrl=queue, MessageBody="here")

        assert queue.startswith(standin.endpoint)
        assert [message["Body"] for message in sqs.receive_message(QueueUrl=queue)["Messages"]] == ["here"]
        bound = {link.laddr[0] for link in psutil.Process(standin.child.process.pid).net_connections("tcp")}
        assert bound == {"127.0.0.1"}

    assert not standin.child.is_running
