"""Records the metrics of a running local stack: what CloudWatch would be told of it.

Queues and the cache are looked at every second; what the functions write of themselves is read from their logs at the end. What
the stand-in does not tell is made out of that: messages sent and deleted, and the age of the oldest message as the time for which
a queue has not been empty. Of tables and of the API nothing is recorded.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

import redis

from functions.registry import WORKERS
from local.stack.running import STACK
from shared.naming import camel
from watch.logs import said
from watch.recording import Recording
from watch.series import Metrics, Name
from watch.template import resources

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from local.stack.running import Stack
    from watch.template import Template

LOOK_EVERY = 1.0  # seconds
VISIBLE: Final = "ApproximateNumberOfMessages"
IN_FLIGHT: Final = "ApproximateNumberOfMessagesNotVisible"
CACHE = {"clusterId": "<cache>"}


@dataclass(slots=True)
class Recorder:
    """Looks at a stack while its block lasts."""

    stack: Stack
    template: Template
    minute_seconds: float
    _begun: float = field(default_factory=time.time)
    _looks: list[tuple[float, Name, float]] = field(default_factory=list)
    _waiting_since: dict[str, float] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Begin to look."""
        self._thread = threading.Thread(target=self._look_on, name="recorder", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Look no more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(10 * LOOK_EVERY)

    def recording(self) -> Recording:
        """All that was seen, once the block is over."""
        metrics = Metrics(self._minute(time.time()) + 1)
        for moment, name, value in self._looks:
            metrics.put(name, self._minute(moment), [value])
        for told in said(self.stack.standin.endpoint, self.template, self._physical(None)):
            if told.at >= self._begun:
                metrics.put(told.name, self._minute(told.at), told.samples)
        self._messages(metrics)
        return Recording(metrics, self.minute_seconds)

    def _look_on(self) -> None:
        queues = self._physical("AWS::SQS::Queue")
        counters: dict[str, float] = {}
        while not self._over.wait(LOOK_EVERY):
            now = time.time()
            for logical, url in queues.items():
                self._look_at_queue(now, logical, url)
            try:
                self._look_at_cache(now, counters)
            except redis.RedisError:
                continue  # the demo stops it for a while

    def _look_at_queue(self, now: float, logical: str, url: str) -> None:
        attributes = self.stack.clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        depth, hidden = int(attributes[VISIBLE]), int(attributes[IN_FLIGHT])
        since = self._waiting_since.setdefault(logical, now) if depth else now
        if not depth:
            self._waiting_since.pop(logical, None)
        seen = {f"{VISIBLE}Visible": depth, IN_FLIGHT: hidden, "ApproximateAgeOfOldestMessage": now - since}
        dimensions = {"QueueName": f"<{logical}>"}
        self._looks += [(now, Name.of("AWS/SQS", name, dimensions), value) for name, value in seen.items()]

    def _look_at_cache(self, now: float, counters: dict[str, float]) -> None:
        with redis.Redis(self.stack.valkey.host, self.stack.valkey.port, socket_timeout=1) as client:
            told: Any = client.info()
        counted = {"ElastiCacheProcessingUnits": told["total_commands_processed"], "Evictions": told["evicted_keys"]}
        for name, value in counted.items():
            if (rise := value - counters.get(name, value)) >= 0:  # it may have been started anew
                self._looks.append((now, Name.of("AWS/ElastiCache", name, CACHE), rise))
            counters[name] = value
        self._looks.append((now, Name.of("AWS/ElastiCache", "BytesUsedForCache", CACHE), told["used_memory"]))
        self._looks.append((now, Name.of("AWS/ElastiCache", "ThrottledCmds", CACHE), 0))

    def _physical(self, kind: str | None) -> Mapping[str, str]:
        """What the resources of a type, or all, are called, by their logical names; a queue by its URL."""
        return {
            resource["LogicalResourceId"]: resource["PhysicalResourceId"]
            for resource in self.stack.clients.resources(STACK)
            if kind in {None, resource["ResourceType"]}
        }

    def _messages(self, metrics: Metrics) -> None:
        """A message that was delivered for the first time was sent; a record that was acknowledged is deleted."""
        sources = {
            worker.name: {"QueueName": f"<{logical}>"}
            for logical in resources(self.template, "AWS::SQS::Queue")
            for worker in WORKERS
            if logical.startswith(f"Worker{camel(worker.name)}QueuesSource")
        }
        counted: defaultdict[Name, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
        for service, dimensions in sources.items():
            sent = metrics.samples(Name.of("Tahan", "wait", {"service": service}))
            deleted = metrics.samples(Name.of("Tahan", "records_succeeded", {"service": service}))
            for minute, values in sent.items():
                counted[Name.of("AWS/SQS", "NumberOfMessagesSent", dimensions)][minute] += len(values)
            for minute, values in deleted.items():
                counted[Name.of("AWS/SQS", "NumberOfMessagesDeleted", dimensions)][minute] += sum(values)
        for name, by_minute in counted.items():
            for minute, value in by_minute.items():
                metrics.put(name, minute, [value])

    def _minute(self, moment: float) -> int:
        return int((moment - self._begun) // self.minute_seconds)
