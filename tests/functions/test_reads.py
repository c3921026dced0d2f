"""What users read of their own things, over moto and the real Valkey: their own alone, never old, cheap to ask again."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver

from functions import users
from functions.http import reads
from functions.http.answers import HEADERS
from functions.http.reads import Reads, add_reads
from functions.inventory import HEAD, INVENTORY, load_inventory, part_name
from functions.orders import ORDERS
from functions.users import USERS
from functions.views.invoices import INVOICES, invoice_tag
from functions.views.orders import MOST_ORDERS, USER_ORDERS, load_summary
from functions.views.shown import ABSENT, Shown
from local.demo.situations import EVENTS
from local.outside.payment_provider import Provider
from shared.backends.dynamodb.item_source import DynamoDBItemSource
from shared.backends.memory.cache import MemoryCache
from shared.backends.memory.database import MemoryDatabase
from shared.backends.redis.connection import Connection
from shared.cache import Cache
from shared.caching.source import Source
from shared.clock import Surroundings, SystemClock
from shared.errors import CacheUnavailable, Refused, StoreUnavailable, Unavailable
from shared.item import Stored
from shared.runtime import cache
from shared.tag import Tag
from shared.telemetry import NO_JOB_TYPE, Silent
from tests.serving import serving
from tests.stack import Stack, new_stack
from tests.world import Context, Counter, FakeClock, World, body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.stack.valkey import Valkey

READ = json.loads((EVENTS.parent / "front_door" / "read.json").read_text(encoding="utf-8"))
Answer = tuple[int, Any, dict[str, str]]
ROUTES = ("/me", "/me/orders/order-1", "/me/order-summary", "/me/inventory", "/me/invoices/inv-1")


class Client:
    """Asks for things as API Gateway passes it on; `user` is the subject of the verified token."""

    def __init__(self, reads: Reads) -> None:
        self.app = APIGatewayHttpResolver()
        add_reads(self.app, reads)

    def get(self, path: str, user: str | None = "ann", *, query: str = "", **headers: str) -> Answer:
        event = copy.deepcopy(READ)
        event["requestContext"]["http"].update(method="GET", path=path)
        event.update(rawPath=path, rawQueryString=query)
        event["headers"] = {name.replace("_", "-"): value for name, value in headers.items()}
        if user is None:
            event["requestContext"].pop("authorizer", None)
        else:
            event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"] = user
        return self.ask(event)

    def ask(self, event: dict[str, Any]) -> Answer:
        answer = self.app.resolve(event, Context())  # type: ignore[arg-type]
        found = json.loads(answer["body"]) if answer.get("body") else None
        return answer["statusCode"], found, answer["headers"]


class Counted:
    """A source that tells how often it was asked."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        def ask(*arguments: Any) -> Any:
            self.asked += 1
            return getattr(self.inner, name)(*arguments)

        return ask


class House:
    """Things in memory, and a client that reads them through a cache in memory."""

    def __init__(self, **options: Any) -> None:
        self.clock = FakeClock()
        self.database = MemoryDatabase(self.clock)
        self.source = Counted(self.database)
        self.telemetry = Silent()
        here = Surroundings(self.clock, Random(5), Counter())  # noqa: S311 - repeatable
        self.entries: Any = MemoryCache(self.clock)
        self.cache = replace(Cache(self.entries, here, self.telemetry, sample=0.0), **options)
        self.client = Client(Reads(self.source, self.cache))
        self.put(USERS, 3, user_id="ann", name="Ann", password_hash="never")
        self.order("order-1")
        self.order("order-2", user="bob", status="paid")
        self.put(INVENTORY, 4, user_id="ann", part=HEAD, snapshot="s", parts=1, lines=1)
        self.put(INVENTORY, 4, user_id="ann", part=part_name(0), snapshot="s", lines=[{"sku": "a", "quantity": 2}])
        self.invoice("inv-1")
        self.invoice("inv-2", user="bob")

    def put(self, table: Any, version: int, **item: Any) -> None:
        key = tuple(item[name] for name in table.key_names)
        self.database.items[table.name, key] = Stored(item, version)

    def order(self, order_id: str, *, user: str = "ann", version: int = 1, **more: Any) -> None:
        item = {"user_id": user, "amount": "30.40", "currency": "EUR", "status": "pending", "payment_intent_id": "pi"}
        self.put(ORDERS, version, order_id=order_id, **{**item, **more})
        self.put(USER_ORDERS, 1, user_id=user, order_id=order_id)

    def invoice(self, invoice_id: str, *, user: str = "ann", version: int = 6, **more: Any) -> None:
        lines = [{"description": "a thing", "unit_price": "30.40", "quantity": 1, "tax_rate": "0.19", "cost": "never"}]
        item = {"user_id": user, "status": "open", "currency": "EUR", "lines": lines, "note": "never"}
        self.put(INVOICES, version, invoice_id=invoice_id, **{**item, **more})

    def drop(self, tag: str) -> None:
        self.entries.finish([Tag(tag)], [])


def test_the_event_file_asks_for_an_order_that_the_client_has_already() -> None:
    house = House()
    house.order("order-17", user="user-1", version=3)
    status, _, headers = house.client.ask(READ)
    assert (status, headers["ETag"]) == (304, '"3"')


def test_r3_7_a_user_reads_what_is_its_own() -> None:
    client = House().client
    assert client.get("/me")[1] == {"user_id": "ann", "name": "Ann"}
    order = {"order_id": "order-1", "status": "pending", "amount": "30.40", "currency": "EUR"}
    assert client.get("/me/orders/order-1")[1] == order
    assert client.get("/me/order-summary")[1] == {"orders": {"pending": 1}, "paid": {}, "complete": True}
    assert client.get("/me/inventory")[1] == {
        "user_id": "ann",
        "snapshot": "s",
        "lines": [{"sku": "a", "quantity": 2}],
    }


def test_r3_7_a_user_reads_an_invoice_before_and_after_its_totals_are_calculated() -> None:
    house = House()
    shown = {
        "invoice_id": "inv-1",
        "status": "open",
        "currency": "EUR",
        "lines": [{"description": "a thing", "unit_price": "30.40", "quantity": "1", "tax_rate": "0.19"}],
        "taxes": [],
    }
    assert house.client.get("/me/invoices/inv-1")[1] == shown
    totals = {"net": "30.40", "tax": "5.78", "gross": "36.18"}
    taxes = [{"rate": "0.19", "net": "30.40", "tax": "5.78"}]
    house.invoice("inv-1", version=7, calculated=7, taxes=taxes, **totals)
    house.drop(invoice_tag("inv-1"))
    _, found, headers = house.client.get("/me/invoices/inv-1")
    assert (found, headers["ETag"]) == ({**shown, **totals, "taxes": taxes}, '"7"')


@pytest.mark.parametrize(
    ("path", "etag"), [(ROUTES[0], '"3"'), (ROUTES[1], '"1"'), (ROUTES[3], '"4"'), (ROUTES[4], '"6"')]
)
def test_r3_7_the_etag_is_the_version(path: str, etag: str) -> None:
    assert House().client.get(path)[2]["ETag"] == etag


@pytest.mark.parametrize("path", ROUTES)
def test_r3_7_what_the_client_has_already_is_not_sent_again(path: str) -> None:
    client = House().client
    status, _, headers = client.get(path)
    assert (status, headers["Cache-Control"]) == (200, "private, no-cache")
    for known in (headers["ETag"], f"W/{headers['ETag']}", f'"other", {headers["ETag"]}', "*"):
        again = client.get(path, If_None_Match=known)
        assert again[:2] == (304, None)
        assert again[2] == {**HEADERS, "Cache-Control": "private, no-cache", "ETag": headers["ETag"]}
    assert client.get(path, If_None_Match='"other"')[0] == 200


@pytest.mark.parametrize("path", ROUTES)
def test_a_read_that_was_made_before_does_not_ask_the_source(path: str) -> None:
    house = House()
    first = house.client.get(path)
    asked = house.source.asked
    assert house.client.get(path) == first
    assert house.source.asked == asked


FOREIGN = {"/me/orders/order-2": "bob", "/me/invoices/inv-2": "bob"}
ABSENT_THINGS = (
    *FOREIGN,
    *(f"/me/{kind}/{name}" for kind in ("orders", "invoices") for name in ("never", "x" * 201, "%00")),
)


@pytest.mark.parametrize("cached", [False, True])
def test_api1_what_is_anothers_is_as_absent_as_what_never_was(cached: bool) -> None:
    house = House()
    if cached:
        assert {house.client.get(path, user)[0] for path, user in FOREIGN.items()} == {200}
    answers = [house.client.get(path) for path in ABSENT_THINGS for _ in range(2)]
    assert all(answer == answers[0] for answer in answers)
    status, found, headers = answers[0]
    assert (status, found["code"], headers["Cache-Control"]) == (404, "not-found", "no-store")
    assert "ETag" not in headers


@pytest.mark.parametrize(("path", "owner"), FOREIGN.items())
def test_i40_what_was_loaded_for_another_is_not_given_to_the_owner(path: str, owner: str) -> None:
    house = House()
    assert house.client.get(path, "ann")[0] == 404
    assert house.client.get(path, owner)[0] == 200


@pytest.mark.parametrize("path", ["/me", "/me/orders/order-1", "/me/inventory", "/me/invoices/inv-1"])
@pytest.mark.parametrize("user", ["bob", "user/ann", "ann/", "x" * 201])
def test_api1_a_user_without_a_thing_is_told_that_it_is_absent(path: str, user: str) -> None:
    assert House().client.get(path, user)[0] == 404


@pytest.mark.parametrize(
    ("path", "user"),
    [(f"/me/orders/{'x' * 201}", "ann"), (f"/me/invoices/{'x' * 201}", "ann"), *((path, "x" * 201) for path in ROUTES)],
)
def test_a_name_that_no_store_takes_is_absent_and_asked_of_nobody(path: str, user: str) -> None:
    house = House()
    assert house.client.get(path, user)[0] == 404
    assert house.source.asked == 0


def test_a_user_without_orders_has_an_empty_summary() -> None:
    assert House().client.get("/me/order-summary", "eve")[1] == {"orders": {}, "paid": {}, "complete": True}


@pytest.mark.parametrize("path", ROUTES)
def test_api2_without_a_verified_identity_nothing_is_read(path: str) -> None:
    house = House()
    status, found, headers = house.client.get(path, None, If_None_Match="*")
    assert (status, found["code"], headers["Cache-Control"]) == (401, "unauthenticated", "no-store")
    assert house.source.asked == 0


def test_a_caller_with_aws_credentials_is_no_user() -> None:
    house, event = House(), copy.deepcopy(READ)
    event["requestContext"]["http"].update(method="GET", path="/me")
    event["rawPath"] = "/me"
    event["requestContext"]["authorizer"] = {"iam": {"userArn": "arn:aws:iam::1:role/ann"}}
    assert house.client.ask(event)[0] == 404
    assert house.source.asked == 0


@pytest.mark.parametrize(
    ("path", "query", "header"),
    [
        ("/me", "verbose=1", "*"),
        ("/me", "min_version=1&min_version=2", "*"),
        ("/me", "min_version=", "*"),
        ("/me", "min_version=-1", "*"),
        ("/me", "min_version=1.0", "*"),
        ("/me", f"min_version={'9' * 100}", "*"),
        ("/me", "min_version=%D9%A3", "*"),
        ("/me/order-summary", "min_version=1", "*"),
        ("/me", "", "3"),
        ("/me", "", '"3'),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_before_anything_is_read(path: str, query: str, header: str) -> None:
    house = House()
    status, found, headers = house.client.get(path, query=query, If_None_Match=header)
    assert (status, headers["Cache-Control"]) == (400, "no-store")
    assert found["code"] in {"invalid-query", "invalid-etag"}
    assert house.source.asked == 0


def test_i37_a_client_that_has_seen_a_version_gets_nothing_older_although_the_invalidation_was_lost() -> None:
    house = House()
    house.client.get("/me/orders/order-1")
    house.order("order-1", version=2, status="paid")
    assert house.client.get("/me/orders/order-1")[1]["status"] == "pending"
    status, found, headers = house.client.get("/me/orders/order-1", query="min_version=2")
    assert (status, found["status"], headers["ETag"]) == (200, "paid", '"2"')
    assert house.client.get("/me/orders/order-1")[1]["status"] == "paid"


def test_i36_after_the_invalidation_a_summary_counts_what_was_committed() -> None:
    house = House()
    before = house.client.get("/me/order-summary")[2]["ETag"]
    house.order("order-1", version=2, status="paid")
    house.order("order-3", amount=Decimal("0.10"), status="paid")
    house.order("order-4", amount="1e2", currency="USD", status="paid")
    house.drop("order-summary/ann")
    _, found, headers = house.client.get("/me/order-summary")
    assert found == {"orders": {"paid": 3}, "paid": {"EUR": "30.50", "USD": "100"}, "complete": True}
    assert headers["ETag"] != before


def test_a_summary_counts_nobody_elses_order_whatever_stands_in_the_list() -> None:
    house = House()
    house.put(USER_ORDERS, 1, user_id="ann", order_id="order-2")
    house.put(USER_ORDERS, 1, user_id="ann", order_id="never")
    assert house.client.get("/me/order-summary")[1]["orders"] == {"pending": 1}


def test_a_summary_says_that_it_does_not_count_all() -> None:
    house = House()
    for number in range(MOST_ORDERS):
        house.order(f"n{number}")
    assert house.client.get("/me/order-summary")[1] == {
        "orders": {"pending": MOST_ORDERS},
        "paid": {},
        "complete": False,
    }


@pytest.mark.parametrize("amount", ["much", "NaN", None, True])
def test_an_amount_that_is_no_number_is_told_and_not_counted_as_nothing(amount: Any) -> None:
    house = House()
    house.order("order-1", status="paid", amount=amount)
    with pytest.raises(Refused, match="order-1"):
        load_summary(house.database, "ann")


def test_i38_an_inventory_that_is_seen_half_is_looked_at_again() -> None:
    house = House()
    looks: list[Any] = []
    whole = house.database.read_all(INVENTORY, "ann", 10)
    half = [whole[0], Stored({**whole[1].attributes, "snapshot": "older"}, 3)]

    class Torn:
        def read_all(self, *arguments: Any) -> Any:
            looks.append(arguments)
            return [half, whole[:1], whole[1:], whole][min(len(looks), 4) - 1]

    with pytest.raises(Unavailable):
        load_inventory(Torn(), "ann")  # type: ignore[arg-type]
    assert len(looks) == 3
    entry = load_inventory(Torn(), "ann")  # type: ignore[arg-type]
    assert Shown.read(entry.value or "").etag == '"4"'
    assert load_inventory(house.database, "eve") == ABSENT


def test_a_source_that_does_not_answer_is_told_with_when_to_come_again() -> None:
    house = House()

    class Gone:
        def __getattr__(self, name: str) -> Any:
            raise StoreUnavailable("gone")

    house.source.inner = Gone()
    status, found, headers = house.client.get("/me")
    assert (status, found["code"], headers["Cache-Control"]) == (503, "try-again", "no-store")
    assert int(headers["Retry-After"]) >= 1


class NoCache:
    """Redis is gone."""

    def __getattr__(self, name: str) -> Any:
        def fail(*arguments: Any) -> Any:
            raise CacheUnavailable("gone")

        return fail


def test_cac_10_without_redis_what_is_read_comes_from_the_source() -> None:
    house = House(entries=NoCache())
    assert [house.client.get(path)[0] for path in ROUTES] == [200] * len(ROUTES)
    assert house.telemetry.counts["cache_bypassed", NO_JOB_TYPE] == len(ROUTES)


def test_i39_without_redis_too_many_reads_are_refused_instead_of_breaking_the_source() -> None:
    full = Source(at_once=1, patience=timedelta(0))
    house = House(entries=NoCache(), source=full)
    seen: list[Answer] = []
    full.load("another", lambda: seen.append(ask_elsewhere(house)) or ABSENT)  # type: ignore[func-returns-value]
    ((status, found, headers),) = seen
    assert (status, found["code"]) == (503, "try-again")
    assert "Retry-After" in headers
    assert house.telemetry.counts["cache_shed", NO_JOB_TYPE] == 1


def ask_elsewhere(house: House) -> Answer:
    """Ask in a thread of its own, as another request does: what a load reads in turn shares its place."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - beside its one use

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(house.client.get, "/me").result()


def test_a_function_without_a_cache_reads_the_source() -> None:
    house = House()
    client = Client(Reads(house.database, None))
    assert [client.get(path)[0] for path in ROUTES] == [200] * len(ROUTES)


@pytest.fixture(scope="module")
def deployed(aws_endpoint: str, valkey: Valkey) -> Iterator[tuple[Stack, Client, Counted]]:
    """The tables, a payments worker, and reads through the real cache."""
    with serving(Provider(0, quiet=True)) as provider:
        stack = new_stack(valkey, provider, tables=[table for table, _ in reads.TABLES])
        items = DynamoDBItemSource(stack.database.items, SystemClock(), Random(1))  # noqa: S311 - repeatable
        source = Counted(items)
        made = cache(stack.settings, Silent())
        patient = Connection(valkey.host, valkey.port, tls=False, cluster=False, wait=timedelta(seconds=20))
        entries = replace(made.entries, connection=patient)  # type: ignore[type-var]
        yield stack, Client(Reads(source, replace(made, entries=entries, sample=0.0))), source


def put(stack: Stack, table: str, version: int, **item: str) -> None:
    wire: dict[str, Any] = {name: {"S": value} for name, value in item.items()}
    item_ = {**wire, "version": {"N": str(version)}}
    stack.database.client.put_item(TableName=stack.settings.tables[table], Item=item_)


def test_i36_a_captured_order_is_seen_paid_in_every_read_that_begins_after_its_job(
    deployed: tuple[Stack, Client, Counted],
) -> None:
    stack, client, source = deployed
    stack.seed(order_id="order-read", user_id="reader", payment_intent_id="pi_ok_read")
    put(stack, "user-orders", 1, user_id="reader", order_id="order-read")
    for _ in range(2):
        assert client.get("/me/orders/order-read", "reader")[1]["status"] == "pending"
        assert client.get("/me/order-summary", "reader")[1]["orders"] == {"pending": 1}
    assert source.asked == 3  # an order, the list of orders, the orders in it
    payload = {"order_id": "order-read", "payment_intent_id": "pi_ok_read"}
    stack.send(body(job_type="capture-payment", idempotency_key="capture-read", payload=payload))
    stack.run()
    status, order, headers = client.get("/me/orders/order-read", "reader")
    assert (status, order["status"], headers["ETag"]) == (200, "paid", '"2"')
    assert client.get("/me/order-summary", "reader")[1] == {
        "orders": {"paid": 1},
        "paid": {"EUR": "30.40"},
        "complete": True,
    }


def test_r1_3_a_refreshed_user_is_read_without_asking_the_source(
    deployed: tuple[Stack, Client, Counted], valkey: Valkey
) -> None:
    from shared.backends.redis.leases import RedisStore  # noqa: PLC0415 - beside its one use

    stack, client, source = deployed
    put(stack, "users", 1, user_id="fresh", name="before")
    assert client.get("/me", "fresh")[1]["name"] == "before"
    put(stack, "users", 2, user_id="fresh", name="after")
    world = World(users.WORKER)
    world.database.items["users", ("fresh",)] = Stored({"user_id": "fresh", "name": "after"}, 2)
    world.cache = RedisStore(Connection(valkey.host, valkey.port, tls=False, cluster=False, wait=timedelta(seconds=20)))
    world.run(body(job_type="refresh-user-cache", payload={"user_id": "fresh", "version": 2}))
    asked = source.asked
    status, found, headers = client.get("/me", "fresh")
    assert (status, found["name"], headers["ETag"]) == (200, "after", '"2"')
    assert source.asked == asked


def test_an_inventory_of_many_parts_is_read_whole(deployed: tuple[Stack, Client, Counted]) -> None:
    stack, client, _ = deployed
    items = stack.database.client
    table = stack.settings.tables["inventory"]
    for number in range(3):
        lines = [{"M": {"sku": {"S": f"{number}-{line}"}, "quantity": {"N": str(line)}}} for line in range(1000)]
        item = {"user_id": {"S": "owner"}, "part": {"S": part_name(number)}, "snapshot": {"S": "s"}}
        items.put_item(TableName=table, Item={**item, "lines": {"L": lines}, "version": {"N": "5"}})
    head = {"user_id": {"S": "owner"}, "part": {"S": HEAD}, "snapshot": {"S": "s"}, "parts": {"N": "3"}}
    items.put_item(TableName=table, Item={**head, "lines": {"N": "3000"}, "version": {"N": "5"}})
    status, found, headers = client.get("/me/inventory", "owner")
    assert (status, len(found["lines"]), headers["ETag"]) == (200, 3000, '"5"')
    assert [found["lines"][0]["sku"], found["lines"][-1]["sku"]] == ["0-0", "2-999"]
