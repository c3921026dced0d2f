"""Keys of one script share a hash slot and differ for each entity, whatever its name."""

from __future__ import annotations

import re
from pathlib import Path

from redis.crc import key_slot

from shared.backends.redis import cache_scripts, gate_scripts, leases, rates
from shared.backends.redis.keys import calls_key, gate_key, lease_key, locked_by, rate_key, tag_key

STRANGE = ["a}b", "{}", "x{y}z", "{", "}", "}{", "ünïcode", "\u4e2d", "a%7Db", "\ud83d", " ", "a\nb", "%", "/", ":"]
NAMES = [f"order/{number}" for number in range(1000)] + STRANGE


def test_lck_08_keys_have_one_tag_and_differ_for_each_entity() -> None:
    for make in (lease_key, tag_key, rate_key, gate_key, calls_key):
        keys = [make(name) for name in NAMES]
        assert len(set(keys)) == len(NAMES)
        for key in keys:
            tag = re.findall(r"\{([^{}]*)\}", key)
            assert len(tag) == 1
            assert tag[0]
            assert key_slot(key.encode()) == key_slot(tag[0].encode())


def test_lck_08_lease_and_tag_of_one_entity_share_a_slot() -> None:
    assert {key_slot(lease_key(name).encode()) == key_slot(tag_key(name).encode()) for name in NAMES} == {True}


def scripts() -> dict[str, str]:
    """Every Lua script of the product, by its name."""
    return {
        name: value
        for module in (leases, cache_scripts, rates)
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, str)
    }


def test_lck_08_every_script_touches_one_key_and_gets_it_as_a_key() -> None:
    assert set(scripts()) == {
        *("ACQUIRE", "RENEW", "RELEASE"),
        "TAKE",
        *("FETCH", "STORE", "PUT", "PROLONG", "ABANDON", "DISCARD", "DROP", "REFRESH"),
    }
    for script in scripts().values():
        assert set(re.findall(r"KEYS\[(\d+)\]", script)) == {"1"}
        calls = [call for call in re.findall(r"redis\.call\(([^)]+)\)", script) if call != "'TIME'"]
        assert calls
        assert {call.split(", ")[1] for call in calls} == {"KEYS[1]"}


def test_lck_08_the_two_keys_of_a_gate_are_in_one_hash_slot_and_no_script_touches_others() -> None:
    tags = {re.fullmatch(r"[^{]*(\{[^}]*\}).*", key)[1] for key in (gate_key("a b"), calls_key("a b"))}  # type: ignore[index]
    assert len(tags) == 1
    for script in (gate_scripts.ENTER, gate_scripts.LEAVE, gate_scripts.LOOK):
        assert set(re.findall(r"KEYS\[(\d+)\]", script)) == {"1", "2"}
        calls = [call for call in re.findall(r"redis\.call\(([^)]+)\)", script) if call != "'TIME'"]
        assert {call.split(", ")[1] for call in calls} == {"KEYS[1]", "KEYS[2]"}


def test_a_lock_key_is_read_back_from_the_key_of_its_lease() -> None:
    for key in ("order/1", "a{b}c", "é %7B", "x:y"):
        assert locked_by(lease_key(key)) == key


def test_no_other_module_of_the_backend_names_a_key() -> None:
    folder = Path(leases.__file__).parent
    for prefix in ('"lease:', '"cache:', '"rate:', '"gate:'):
        assert [path.name for path in folder.glob("*.py") if prefix in path.read_text(encoding="utf-8")] == ["keys.py"]
