"""The local stack knows nothing of the caller's AWS account, whatever the environment holds (LOC-01)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from local.processes.environment import CREDENTIALS, REGION, child_environment, loopback
from local.stack.clients import Clients
from shared.errors import SettingsError

FOLDER = Path("folder")
HOSTILE = {
    "AWS_PROFILE": "nowhere",
    "AWS_DEFAULT_PROFILE": "nowhere",
    "AWS_ACCESS_KEY_ID": "AKIA" + "Z" * 16,
    "AWS_SECRET_ACCESS_KEY": "q" * 40,
    "AWS_SESSION_TOKEN": "real",
    "AWS_ENDPOINT_URL": "https://dynamodb.eu-central-1.amazonaws.com",
    "AWS_ENDPOINT_URL_SQS": "https://sqs.eu-central-1.amazonaws.com",
    "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/admin",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "/token",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.2/credentials",
    "AWS_REGION": "us-west-2",
    "HTTPS_PROXY": "http://proxy.example:3128",
    "PYTHONPATH": "/elsewhere",
    "HOME": "/home/somebody",
    "PATH": "/bin",
}


def test_a_child_gets_nothing_of_the_caller_s_aws_settings() -> None:
    environ = child_environment(HOSTILE, FOLDER)

    secrets = {value for name, value in HOSTILE.items() if name != "PATH"}
    assert secrets.isdisjoint(environ.values())
    assert "AWS_PROFILE" not in environ
    assert environ["PATH"] == "/bin"
    assert environ["AWS_REGION"] == REGION
    assert environ["HOME"] == environ["TMPDIR"] == str(FOLDER)
    assert {name: environ[name] for name in CREDENTIALS} == CREDENTIALS


def test_loc_01_clients_ignore_profile_credentials_and_endpoints_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)

    clients = Clients.at("http://127.0.0.1:4566")

    for client in (clients.sqs, clients.dynamodb):
        assert client.meta.endpoint_url == "http://127.0.0.1:4566"
        assert client.meta.region_name == REGION
        signer: Any = vars(client)["_request_signer"]
        assert signer._credentials.access_key == CREDENTIALS["AWS_ACCESS_KEY_ID"]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:4566", "http://localhost:1", "http://[::1]:80/path", "https://127.8.9.1"]
)
def test_addresses_of_this_machine_are_taken(url: str) -> None:
    assert loopback(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "https://sqs.eu-central-1.amazonaws.com",
        "http://10.0.0.1:4566",
        "http://169.254.169.254",
        "http://127.0.0.1.example.com",
        "http://localhost@example.com",
        "http://0.0.0.0:4566",
        "ftp://127.0.0.1",
        "127.0.0.1:4566",
        "",
    ],
)
def test_loc_01_all_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="not on this machine"):
        loopback(url)


def test_clients_refuse_an_endpoint_elsewhere() -> None:
    with pytest.raises(SettingsError, match="not on this machine"):
        Clients.at("https://dynamodb.eu-central-1.amazonaws.com")


def test_configuration_files_are_not_read() -> None:
    environ = child_environment(HOSTILE, FOLDER)

    assert environ["AWS_CONFIG_FILE"] == environ["AWS_SHARED_CREDENTIALS_FILE"] == os.devnull
