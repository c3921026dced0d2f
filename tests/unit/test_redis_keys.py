"""Keys of one script share a hash slot and differ for each entity, whatever its name."""

from __future__ import annotations

import re
from pathlib import Path

from redis.crc import key_slot

from shared.backends import redis as backend
from shared.backends.redis import lease_key, tag_key

STRANGE = ["a}b", "{}", "x{y}z", "{", "}", "}{", "ünïcode", "\u4e2d", "a%7Db", "\ud83d", " ", "a\nb", "%", "/", ":"]
NAMES = [f"order/{number}" for number in range(1000)] + STRANGE


def test_lck_08_keys_have_one_tag_and_differ_for_each_entity() -> None:
    for make in (lease_key, tag_key):
        keys = [make(name) for name in NAMES]
        assert len(set(keys)) == len(NAMES)
        for key in keys:
            tag = re.findall(r"\{([^{}]*)\}", key)
            assert len(tag) == 1
            assert tag[0]
            assert key_slot(key.encode()) == key_slot(tag[0].encode())


def test_lck_08_lease_and_tag_of_one_entity_share_a_slot() -> None:
    assert {key_slot(lease_key(name).encode()) == key_slot(tag_key(name).encode()) for name in NAMES} == {True}


def test_lck_08_every_script_touches_one_key_and_gets_it_as_a_key() -> None:
    scripts = [getattr(backend, name) for name in ("ACQUIRE", "RENEW", "RELEASE", "FETCH", "STORE")]
    for script in scripts:
        assert set(re.findall(r"KEYS\[(\d+)\]", script)) == {"1"}
        calls = re.findall(r"redis\.call\('\w+', ([^,)]+)", script)
        assert calls
        assert set(calls) == {"KEYS[1]"}


def test_no_other_module_of_the_backend_names_a_key() -> None:
    text = Path(backend.__file__).read_text(encoding="utf-8")
    assert text.count('f"lease:') == text.count('f"cache:') == 1
