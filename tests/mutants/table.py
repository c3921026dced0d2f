"""The table of guards: where each stands, what the product is without it, and the tests that notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """A guard taken out of the product.

    Attributes:
        guard: what is guarded, as a statement.
        file: where it stands.
        guarded: text of the guard, found once in the file.
        without: what stands there in the mutant.
        tests: the tests of which at least one must fail.
    """

    guard: str
    file: str
    guarded: str
    without: str
    tests: str


RECORDS = "tests/conformance/test_job_records.py"
CACHE = "tests/conformance/test_cache.py"
STEPS = "tests/faults/test_every_step.py"
EXECUTION = "tests/unit/test_execution.py"
CONSUMER = "tests/unit/test_consumer.py"
LAYER = "shared/backends/job_record_layer.py"
HELD = '"#token = :token AND #status = :running"'

MUTANTS = (
    Mutant(
        "a commit needs the attempt's token",
        LAYER,
        f"return self._conditional(self.hold.record, update, {HELD}, values)",
        'return self._conditional(self.hold.record, update, "#status = :running OR :token = :token", values)',
        RECORDS,
    ),
    Mutant(
        "giving a claim back needs the attempt's token",
        LAYER,
        f"condition = {HELD}",
        'condition = "#status = :running OR :token = :token"',
        RECORDS,
    ),
    Mutant(
        "marking a dead letter needs the attempt's token",
        LAYER,
        '"#token = :token AND #status IN (:running, :retrying)"',
        '"#status IN (:running, :retrying) OR :token = :token"',
        RECORDS,
    ),
    Mutant(
        "a claim is taken over after its deadline alone",
        LAYER,
        "#status = :running AND #until < :now",
        "#status = :running",
        RECORDS,
    ),
    Mutant(
        "no attempt beyond the last is granted",
        LAYER,
        '"#attempts < :max AND #death = :death"',
        '":max > :none AND #death = :death"',
        RECORDS,
    ),
    Mutant(
        "a copy from before a death is stale",
        LAYER,
        "#attempts < :max AND #death = :death",
        "#attempts < :max",
        f"{RECORDS} {EXECUTION}",
    ),
    Mutant(
        "a key belongs to one payload",
        LAYER,
        '" AND (#fingerprint = :fingerprint OR NOT begins_with(#fingerprint, :schema))"',
        '""',
        RECORDS,
    ),
    Mutant(
        "no attempt begins before its time",
        LAYER,
        "(attribute_not_exists(#not_before) OR #not_before <= :now)",
        "#status <> :running",
        RECORDS,
    ),
    Mutant(
        "an unknown job is settled once",
        LAYER,
        '"#status = :unknown"',
        '"attribute_exists(id) OR :unknown = :unknown"',
        RECORDS,
    ),
    Mutant(
        "what is not final never expires",
        LAYER,
        "if status not in ENDED - {Status.UNKNOWN}:",
        "if status not in ENDED:",
        RECORDS,
    ),
    Mutant(
        "an expired record is absent",
        "shared/claim.py",
        "seen.expires is not None and seen.expires <= now",
        "False",
        f"{RECORDS} {EXECUTION}",
    ),
    Mutant(
        "a claim whose reply was lost is its own", "shared/claim.py", "seen.token == claim.token:", "False:", RECORDS
    ),
    Mutant(
        "a commit whose reply was lost is its own",
        "shared/backends/dynamodb_records.py",
        'item["status"]["S"] == commit.status.value:\n                return True',
        'item["status"]["S"] == commit.status.value:\n                pass',
        RECORDS,
    ),
    Mutant(
        "an item is replaced at the version read",
        "shared/backends/dynamodb.py",
        '"#version = :seen"\n        if seen',
        '"#version <> :seen OR #version = :seen"\n        if seen',
        RECORDS,
    ),
    Mutant(
        "an item is created where none is",
        "shared/backends/dynamodb.py",
        '"attribute_not_exists(#key) OR #deleted = :true"',
        '"attribute_exists(#key) OR attribute_not_exists(#key) OR #deleted = :true"',
        RECORDS,
    ),
    Mutant(
        "what was only read is demanded unchanged",
        "shared/staging.py",
        "slot.staged or Unchanged(slot.table, slot.key, slot.seen) for slot in self._slots.values()",
        "slot.staged for slot in self._slots.values() if slot.staged",
        EXECUTION,
    ),
    Mutant(
        "tags are dropped after the commit",
        "shared/execution.py",
        "            self._invalidate(run, tags, leases)\n            outcome",
        "            outcome",
        STEPS,
    ),
    Mutant(
        "a failed invalidation is not acknowledged",
        "shared/execution.py",
        "            if tags:",
        "            if tags and False:",
        f"{STEPS} {EXECUTION}",
    ),
    Mutant(
        "a redelivery repeats the invalidation",
        "shared/execution.py",
        "                self._invalidate(run, tags, leases)\n                raise",
        "                raise",
        f"{STEPS} {EXECUTION}",
    ),
    Mutant(
        "a job that no longer fits into the time left does not start",
        "shared/execution.py",
        "if self.here.clock.now() + run.job.timeout > run.until - self._reserve:",
        "if False:",
        f"{EXECUTION} {CONSUMER}",
    ),
    Mutant(
        "contention waits",
        "shared/execution.py",
        "            if lease is None:\n                raise",
        "        if False:\n            raise",
        EXECUTION,
    ),
    Mutant(
        "a postponed attempt is given back",
        "shared/attempt.py",
        "Release(now + after, gives_attempt_back=True)",
        "Release(now + after)",
        EXECUTION,
    ),
    Mutant(
        "an attempt that lost its lease is given back",
        "shared/attempt.py",
        "Release(now, gives_attempt_back=True))\n                return self.postponed(run.delivery, Because.LEASE_LOST)",
        "Release(now))\n                return self.postponed(run.delivery, Because.LEASE_LOST)",
        EXECUTION,
    ),
    Mutant(
        "a result that cannot be kept is refused",
        "shared/attempt.py",
        '    check_value(result, "the result")\n',
        "",
        EXECUTION,
    ),
    Mutant(
        "a lost lease stops the next step",
        "shared/unit_of_work.py",
        "            lease.check()",
        "            pass",
        f"{EXECUTION} tests/unit/test_unit_of_work.py",
    ),
    Mutant(
        "an item is changed only by whoever read it",
        "shared/staging.py",
        "        if slot.item is not item:",
        "        if False:",
        "tests/unit/test_unit_of_work.py",
    ),
    Mutant(
        "only declared tables are used",
        "shared/unit_of_work.py",
        "        self._demand(table, Right.READ)\n",
        "",
        "tests/unit/test_unit_of_work.py",
    ),
    Mutant(
        "a dead letter that was not sent is not acknowledged",
        "shared/settlement.py",
        "            return False\n        return True",
        "            return True\n        return True",
        f"{STEPS} tests/unit/test_settlement.py",
    ),
    Mutant(
        "a dead letter's record is marked",
        "shared/settlement.py",
        "if outcome.hold is not None:",
        "if False:",
        f"{EXECUTION} tests/unit/test_settlement.py",
    ),
    Mutant(
        "a lease knows its own token",
        "shared/backends/redis.py",
        "if owner == ARGV[1] then",
        "if owner == false then",
        CACHE,
    ),
    Mutant(
        "only the owner gives a lease back",
        "shared/backends/redis.py",
        "if redis.call('GET', KEYS[1]) == ARGV[1] then\n  return redis.call('DEL', KEYS[1])\nend\nreturn 0",
        "return redis.call('DEL', KEYS[1])",
        CACHE,
    ),
    Mutant(
        "only the owner renews a lease",
        "shared/backends/redis.py",
        "if redis.call('GET', KEYS[1]) == ARGV[1] then\n  return redis.call('PEXPIRE'",
        "if redis.call('EXISTS', KEYS[1]) == 1 then\n  return redis.call('PEXPIRE'",
        CACHE,
    ),
    Mutant(
        "a lease has an expiry from its first moment",
        "shared/backends/redis.py",
        "ARGV[1], 'PX', ARGV[2])",
        "ARGV[1])",
        CACHE,
    ),
    Mutant("a refill needs its token", "shared/backends/redis.py", "~= ARGV[2] then", "== 'x' then", CACHE),
    Mutant(
        "a lease is valid from before its request",
        "shared/lease.py",
        "lease = Lease(key, token, ttl, valid_until(sent, ttl), self._clock)",
        "lease = Lease(key, token, ttl, valid_until(self._clock.monotonic(), ttl), self._clock)",
        "tests/unit/test_lease.py",
    ),
    Mutant(
        "a lease that could not be renewed is lost",
        "shared/lease.py",
        "if not renewed or self._clock.monotonic() >= lease.valid_until:",
        "if False:",
        "tests/unit/test_lease.py",
    ),
    Mutant(
        "nothing of an invocation is held after it",
        "shared/lease.py",
        "                lease.lost.set()\n            self._held.clear()",
        "                pass\n            self._held.clear()",
        "tests/unit/test_lease.py",
    ),
    Mutant(
        "behind a failure a FIFO group stands still",
        "shared/consumer.py",
        "            if not acknowledged:\n",
        "            if not acknowledged and len(lane) == 1:\n",
        CONSUMER,
    ),
    Mutant(
        "the partial response names no stranger", "shared/consumer.py", "if not coming_back <= known or", "if", CONSUMER
    ),
    Mutant(
        "a handler that overruns ends the process",
        "shared/consumer.py",
        "self.end_process(OVERRUN_STATUS)",
        "pass",
        CONSUMER,
    ),
    Mutant(
        "a fault of the pipeline fails one record",
        "shared/consumer.py",
        "            return False, timedelta(0)",
        "            return True, timedelta(0)",
        CONSUMER,
    ),
    Mutant(
        "a record without an id is loud",
        "shared/delivery.py",
        '(not value.strip() and name != "body")',
        "False",
        CONSUMER,
    ),
    Mutant(
        "a batch names each message once",
        "shared/delivery.py",
        "if len(ids) != len(deliveries):",
        "if False:",
        CONSUMER,
    ),
    Mutant(
        "a blank key is refused",
        "shared/message.py",
        "if key is None or (isinstance(key, str) and not key.strip()):",
        "if key is None:",
        "tests/unit/test_message.py " + EXECUTION,
    ),
    Mutant(
        "numbers keep their digits",
        "shared/message.py",
        'if "." in message.payload or "e" in message.payload:',
        "if False:",
        "tests/unit/test_message.py",
    ),
    Mutant(
        "an object names a field once",
        "shared/strict_json.py",
        "if len(seen) != len(pairs):",
        "if False:",
        "tests/unit/test_message.py",
    ),
    Mutant(
        "a payload from the future waits",
        "shared/message.py",
        "if message.version > job.version:",
        "if False:",
        "tests/unit/test_message.py",
    ),
    Mutant(
        "floats are refused",
        "shared/limits.py",
        "        case float():",
        "        case complex():",
        "tests/unit/test_limits.py",
    ),
    Mutant(
        "a message keeps room for its reason",
        "shared/limits.py",
        "if size + reserve > MESSAGE_BYTES:",
        "if size > MESSAGE_BYTES:",
        "tests/unit/test_limits.py",
    ),
    Mutant(
        "characters that SQS refuses are refused",
        "shared/limits.py",
        "if (found := _REFUSED_BY_SQS.search(text)) is not None:",
        "if (found := _REFUSED_BY_SQS.search('')) is not None:",
        "tests/unit/test_limits.py",
    ),
    Mutant(
        "an entry that SQS does not mention is not sent",
        "shared/backends/sqs.py",
        '[NotTaken("NotMentioned", final=False)]',
        '["sent"]',
        "tests/conformance/test_sqs.py",
    ),
    Mutant(
        "what SQS refused for now is sent again",
        "shared/producer.py",
        "[place for place in waiting if place in failed and not failed[place].final]",
        "[]",
        "tests/unit/test_producer.py",
    ),
    Mutant(
        "waits are spread",
        "shared/retry.py",
        "ceiling * (1 - random.random())",
        "ceiling",
        "tests/unit/test_retry.py",
    ),
    Mutant(
        "visibility leaves room for Lambda's retries",
        "shared/worker.py",
        "    if chosen < least:",
        "    if False:",
        "tests/unit/test_worker.py",
    ),
    Mutant(
        "throttled polls never run ahead of the function",
        "shared/worker.py",
        "worker.reserved_concurrency < worker.max_concurrency",
        "False",
        "tests/unit/test_worker.py",
    ),
    Mutant(
        "the provider's key names the intent",
        "functions/payment_provider.py",
        '"Idempotency-Key": intent',
        '"Idempotency-Key": work.token',
        f"tests/functions/test_payments.py {STEPS}",
    ),
    Mutant(
        "an order is paid by its own intent",
        "functions/payments.py",
        'if order["payment_intent_id"] != payment_intent_id:',
        "if False:",
        f"tests/functions/test_payments.py {STEPS}",
    ),
    Mutant(
        "a paid order is left alone",
        "functions/payments.py",
        '    if order["status"] == "paid":\n        return',
        "    if False:\n        return",
        "tests/functions/test_payments.py",
    ),
    Mutant(
        "only what was sent is marked as sent",
        "functions/outbox_relay.py",
        "        for place in report.sent:",
        "        for place in range(len(postings)):",
        "tests/functions/test_outbox_relay.py",
    ),
    Mutant(
        "what could not be relayed fails the batch",
        "functions/outbox_relay.py",
        "        if left:",
        "        if False:",
        "tests/functions/test_outbox_relay.py",
    ),
    Mutant(
        "a dead letter is sent by the attempt that still holds the job",
        "shared/settlement.py",
        "            self._demand_still_held(outcome.hold)\n",
        "",
        "tests/unit/test_settlement.py tests/unit/test_execution.py",
    ),
    Mutant(
        "a job that was dead-lettered meanwhile comes back",
        "shared/settlement.py",
        "            self._hide(delivery, SOON)\n            return False",
        "            self._hide(delivery, SOON)\n            return True",
        "tests/unit/test_settlement.py",
    ),
    Mutant(
        "beginning anew names the attempt that was seen",
        LAYER,
        'stay += " AND #token = :seen_token"',
        'stay += " AND (#token = :seen_token OR attribute_exists(#token))"',
        "tests/conformance/test_job_records.py",
    ),
    Mutant(
        "a settled job takes over the tags of its commit",
        LAYER,
        '":tags": {"L": [{"S": tag} for tag in self.commit.tags]},',
        '":tags": {"L": []},',
        RECORDS,
    ),
    Mutant(
        "a fingerprint leaves out what equals its default",
        "shared/message.py",
        ", exclude_defaults=True",
        "",
        "tests/unit/test_message.py",
    ),
    Mutant(
        "a payload fits into its job record",
        "shared/message.py",
        "    if size > PAYLOAD_BYTES:",
        "    if False:",
        "tests/unit/test_message.py",
    ),
    Mutant(
        "a lock that fails dead-letters its message",
        "shared/run.py",
        "    except Exception as error:\n        raise Malformed",
        "    except KeyboardInterrupt as error:\n        raise Malformed",
        CONSUMER,
    ),
    Mutant(
        "an answer that drips is given up",
        "shared/backends/http.py",
        "                if self.clock.monotonic() > deadline:",
        "                if False:",
        "tests/unit/test_http.py",
    ),
    Mutant(
        "a failure of the other side may have been done",
        "shared/backends/http.py",
        "answer.status >= SERVER_ERRORS",
        "answer.status == SERVER_ERRORS",
        "tests/unit/test_http.py",
    ),
    Mutant(
        "no entry outlives its tag's time-to-live",
        "shared/backends/redis.py",
        "redis.call('PEXPIRE', KEYS[1], ARGV[3], 'NX')",
        "redis.call('PEXPIRE', KEYS[1], ARGV[3])",
        CACHE,
    ),
    Mutant(
        "threads do not wait for each other to find Redis gone",
        "shared/backends/redis_connection.py",
        "if time.monotonic() < self._closed_until:",
        "if False:",
        CACHE,
    ),
    Mutant(
        "an invocation's end does not wait for every renewal",
        "shared/lease.py",
        "            if lease.lost.is_set():  # given up, or the invocation has ended meanwhile\n                continue\n",
        "",
        "tests/unit/test_lease.py",
    ),
    Mutant(
        "two job types with one key are two messages on a FIFO queue",
        "shared/producer.py",
        "record_id(SYSTEM, message.job_type, message.idempotency_key)",
        "message.idempotency_key",
        "tests/unit/test_producer.py",
    ),
    Mutant(
        "an update writes what was changed",
        "shared/backends/dynamodb.py",
        "sorted(changed - set(table.key_names))",
        "sorted(attributes.keys() - set(table.key_names))",
        RECORDS,
    ),
    Mutant(
        "what can never be sent is parked",
        "functions/outbox_relay.py",
        "            if refusal.final:",
        "            if False:",
        "tests/functions/test_outbox_relay.py",
    ),
    Mutant(
        "a commit that nobody answers for keeps its claim",
        "shared/backends/dynamodb_records.py",
        'raise NoAnswer(str(error), dependency="dynamodb") from error',
        "raise",
        "tests/unit/test_dynamodb_errors.py",
    ),
    Mutant(
        "a message that SQS would soon move away is sent anew",
        "shared/settlement.py",
        "return delivery.receive_count >= self.worker.max_receive_count - RECEIVES_LEFT",
        "return False",
        "tests/unit/test_settlement.py",
    ),
    Mutant(
        "on shutdown nothing new starts",
        "shared/execution.py",
        "        if self.here.stopping.is_set():",
        "        if False:",
        CONSUMER,
    ),
    Mutant(
        "on shutdown what runs is handed back",
        "shared/unit_of_work.py",
        "        if self.stopping is not None and self.stopping.is_set():",
        "        if False:",
        CONSUMER,
    ),
    Mutant(
        "a zombie gets no fencing number",
        "shared/backends/fences.py",
        '"ConditionExpression": "attempt_token = :token AND #status = :running"',
        '"ConditionExpression": "attribute_exists(attempt_token) OR :token = :running OR #status = :running"',
        RECORDS,
    ),
)
