"""The golden files: for every job type and released version of its payload, the schema, and messages with what they become.

During every deploy messages are in flight that earlier code has sent, and earlier code reads what new code sends. Consumers
refuse fields that they do not know. So a released schema never changes: what is to change is a new version.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.errors import Malformed, NewerVersion
from shared.job import JobTypes
from shared.message import Message
from shared.strict_json import json_text
from shared.wire.parsing import read_message, typed_payload
from tests.contracts.samples import samples
from tests.contracts.schema import differences, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from shared.job import Job
    from tests.contracts.schema import Json

FOLDER = Path(__file__).parent / "payloads"
RETIRED = "retired"  # why and since when no message of it can be in flight: 30 days after the last was sent


@dataclass(frozen=True, slots=True)
class Golden:
    """What was released of one version.

    Attributes:
        messages: payloads as they are sent, and the current payload that each becomes.
        retired: why it need not be read any more; None while it must.
    """

    job_type: str
    version: int
    schema: Json
    messages: tuple[tuple[Json, Json], ...]
    retired: str | None = None

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.job_type}.v{self.version}.json"

    def write(self, folder: Path) -> None:
        """Write the file."""
        content = {
            "job_type": self.job_type,
            "version": self.version,
            **({} if self.retired is None else {RETIRED: self.retired}),
            "schema": self.schema,
            "messages": [{"payload": payload, "becomes": becomes} for payload, becomes in self.messages],
        }
        (folder / self.name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_all(folder: Path = FOLDER) -> dict[tuple[str, int], Golden]:
    """All files, by job type and version."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        messages = tuple((each["payload"], each["becomes"]) for each in content["messages"])
        golden = Golden(content["job_type"], content["version"], content["schema"], messages, content.get(RETIRED))
        if golden.name != path.name:
            message = f"{path.name} holds {golden.name}: a file is called after what it holds."
            raise ValueError(message)
        found[golden.job_type, golden.version] = golden
    return found


def becomes(job: Job[Any, Any], version: int, payload: Json) -> Json:
    """What the current code makes of a payload of that version, read as it is from a queue.

    Raises:
        Malformed: or NewerVersion: it is not read.
    """
    message = Message(job.name, version, "golden", json_text(payload))
    _, typed = typed_payload(read_message(message.body()), JobTypes.of(job))
    return typed.model_dump(mode="json")


def broken(jobs: Iterable[Job[Any, Any]], released: dict[tuple[str, int], Golden]) -> Iterator[str]:
    """What would break messages in flight, each with what to do."""
    by_name = {job.name: job for job in jobs}
    for job in by_name.values():
        for version in range(job.oldest, job.version + 1):
            if (job.name, version) not in released:
                yield _unreleased(job, version)
    for golden in released.values():
        known = by_name.get(golden.job_type)
        if golden.retired is not None:
            continue
        if known is None:
            yield (
                f"{golden.job_type}: the job type is gone, and version {golden.version} of its payload may be in flight"
                f' or among the dead letters for 30 days: keep it, or write "{RETIRED}": "why, and since when" into'
                f" {golden.name}."
            )
        elif not known.oldest <= golden.version <= known.version:
            yield (
                f"{golden.job_type}: version {golden.version} is not read any more ({known.oldest} to {known.version}"
                f" are): its messages would be dead-lettered. Give upgrades[{golden.version}] back, or write"
                f' "{RETIRED}": "why, and since when" into {golden.name}.'
            )
        else:
            yield from _changed(known, golden)


def _unreleased(job: Job[Any, Any], version: int) -> str:
    if version == job.version:
        return (
            f"{job.name}: version {version} of its payload is not released: run `make contract`, look at the messages in"
            f" {job.name}.v{version}.json, and commit it."
        )
    return f"{job.name}: it upgrades version {version}, of which {job.name}.v{version}.json is missing: give it back."


def _changed(job: Job[Any, Any], golden: Golden) -> Iterator[str]:
    if golden.version == job.version and (found := list(differences(golden.schema, schema_of(job.payload)))):
        yield advice(job, found)
        return
    for place, (payload, expected) in enumerate(golden.messages):
        try:
            now = becomes(job, golden.version, payload)
        except (Malformed, NewerVersion) as error:
            yield f"{golden.name}: message {place} is refused now: {error}. Messages like it are in flight: read it again."
            continue
        if now != expected:
            yield (
                f"{golden.name}: message {place} becomes {json.dumps(now)} now, and was {json.dumps(expected)}: mend"
                f" upgrades[{golden.version}]; what is to be otherwise is a new version."
            )


def advice(job: Job[Any, Any], found: list[str]) -> str:
    """What to do with a schema that is not the released one any more."""
    old, new = job.version, job.version + 1
    return (
        f"{job.name}: its payload is not what version {old} was released with (it differs at {', '.join(found)}).\n"
        f"Messages of version {old} are in flight during every deploy, and workers of before refuse what they do not know,"
        " also a field with a default. So\n"
        f"  1. declare version={new} and upgrades={{{old}: ...}}, a function from the payload of version {old} to that of"
        f" {new} (shared/job.py);\n"
        f"  2. run `make contract`, which writes {job.name}.v{new}.json, and look at the messages there;\n"
        f"  3. leave {job.name}.v{old}.json as it is: its messages show what the upgrade does.\n"
        f"If version {old} was never deployed anywhere, delete its file and run `make contract`."
    )


def release(jobs: Iterable[Job[Any, Any]], folder: Path = FOLDER) -> list[str]:
    """Write the files of versions that have none, and give their names; a released file keeps its schema and its payloads.

    What the messages of earlier versions become is written anew then, since the current version is another.

    Raises:
        ValueError: the schema has no example that it takes: write the file by hand.
    """
    written = []
    for job in jobs:
        released = read_all(folder)
        if (job.name, job.version) in released:
            continue
        schema = schema_of(job.payload)
        try:
            messages = tuple((payload, becomes(job, job.version, payload)) for payload in samples(schema))
        except Malformed as error:
            message = f"{job.name}: an example for its schema is refused ({error}): write its file by hand."
            raise ValueError(message) from error
        Golden(job.name, job.version, schema, messages).write(folder)
        written.append(f"{job.name}.v{job.version}.json")
        for golden in released.values():
            if golden.job_type == job.name and job.oldest <= golden.version and golden.retired is None:
                anew = tuple((payload, becomes(job, golden.version, payload)) for payload, _ in golden.messages)
                Golden(job.name, golden.version, golden.schema, anew).write(folder)
    return written
