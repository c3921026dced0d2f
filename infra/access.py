"""What the functions may do in the cache, as ElastiCache is told it: the keys they use and each command by its name.

ElastiCache hands the string to the server as the rules of an ACL user; the tests give it to a real Valkey.
"""

from __future__ import annotations

PREFIXES = ("cache:", "gate:", "lease:", "rate:")
SCRIPTS = (
    "del",
    "get",
    "hdel",
    "hget",
    "hrandfield",
    "hset",
    "pexpire",
    "pttl",
    "set",
    "time",
    "unlink",
    "zadd",
    "zcard",
    "zcount",
    "zrem",
    "zremrangebyscore",
    "zscore",
)
SENT = ("eval", "evalsha", "scan")  # an ACL checks what is sent, and then each call of a script
# A cluster client asks once which node has which slots and where each command has its keys, and says ASKING to the node
# that a slot is moving to. AUTH needs no permission.
DISCOVERY = ("asking", "cluster|slots", "command")


def access_string() -> str:
    """The rules of the one user: nothing but these commands, on nothing but these keys, and no channel."""
    keys = [f"~{prefix}*" for prefix in PREFIXES]
    commands = [f"+{command}" for command in sorted({*SCRIPTS, *SENT, *DISCOVERY})]
    return " ".join(["on", "resetchannels", *keys, "-@all", *commands])
