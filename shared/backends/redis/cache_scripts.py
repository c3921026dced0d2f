"""The scripts of cache entries in Valkey or Redis: a tag is one hash, so one key, one hash slot and one atomic drop.

Its fields: `m` + name, when an entry was kept, its hard and soft end, its version and the token it was stored with;
`v` + name, its value, missing for an absence; `t` + name, when a refill lease was lent, its end and its token; `n`, the
newest version ever stored here; `f`, a floor's end and version. Value and rest are two fields, so that a script that
decides about an entry does not copy its value. Versions are compared as text (see shared/tag.py), times are the
server's, in milliseconds.
"""

from __future__ import annotations

_NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function moment(millis)
  return string.format('%.0f', now + millis)
end
"""
_FLOOR = """
local function floor()
  local till, version = string.match(redis.call('HGET', KEYS[1], 'f') or '', '^(%d+) (%d+)$')
  return till and now < tonumber(till) and version or ''
end
"""
# An entry past its hard end is missing for every script, whether or not a sweep has come by. What was written in the
# future was written before the clock was set back: nobody knows how old it is, and it would outlive its time by the step.
_KEPT = """
local function kept(name)
  local from, hard, soft, version, token =
    string.match(redis.call('HGET', KEYS[1], 'm' .. name) or '', '^(%d+) (%d+) (%d+) (%d*) (.*)$')
  if hard and now < tonumber(hard) and tonumber(from) <= now then
    return version, tonumber(soft), tonumber(hard), token
  end
end
local function refill(name)
  local from, till, token = string.match(redis.call('HGET', KEYS[1], 't' .. name) or '', '^(%d+) (%d+) (.*)$')
  if till and now < tonumber(till) + tonumber(ARGV[2]) and now >= tonumber(from) then
    return token, tonumber(till)
  end
end
local function lend(name, lease, token)
  redis.call('HSET', KEYS[1], 't' .. name, moment(0) .. ' ' .. moment(lease) .. ' ' .. token)
end
"""
# The hash lives as long as the longest-lived thing in it. A tag that is always in use never expires as a whole: each
# write looks at some fields by chance and removes what has passed, so that what is dead stays in proportion.
_WRITTEN = """
local function written(millis)
  if redis.call('PTTL', KEYS[1]) < millis then
    redis.call('PEXPIRE', KEYS[1], millis)
  end
  for _, field in ipairs(redis.call('HRANDFIELD', KEYS[1], 4)) do
    local kind, name = string.sub(field, 1, 1), string.sub(field, 2)
    if kind == 'm' and not kept(name) then
      redis.call('HDEL', KEYS[1], 'm' .. name, 'v' .. name)
    elseif kind == 't' and not refill(name) then
      redis.call('HDEL', KEYS[1], field)
    end
  end
end
"""
_KEEP = """
local function keep(name, token, version, soft, hard, value)
  redis.call('HDEL', KEYS[1], 't' .. name, 'v' .. name)
  local meta = {moment(0), moment(hard), moment(soft), version, token}
  redis.call('HSET', KEYS[1], 'm' .. name, table.concat(meta, ' '))
  if value then
    redis.call('HSET', KEYS[1], 'v' .. name, value)
  end
  if version > (redis.call('HGET', KEYS[1], 'n') or '') then
    redis.call('HSET', KEYS[1], 'n', version)
  end
  written(tonumber(hard))
  return 1
end
"""
_PREFACE = _NOW + _FLOOR + _KEPT + _WRITTEN
# Of every script but the last: ARGV[1] is the name, ARGV[2] for how long a token outlives its lease.
# Most fetches find a value that is fresh: it is asked for first, by as little as tells so, and answered as one string. All
# else, a remembered absence among it, goes the long way.
FETCH = f"""
local meta = redis.call('HGET', KEYS[1], 'm' .. ARGV[1])
if meta then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local from, hard, soft, version = string.match(meta, '^(%d+) (%d+) (%d+) (%d*) ')
  if from and now < tonumber(soft) and now < tonumber(hard) and tonumber(from) <= now and version >= ARGV[5] then
    local value = redis.call('HGET', KEYS[1], 'v' .. ARGV[1])
    if value then
      return version .. ' ' .. value
    end
  end
end
{_PREFACE}
local name, token, lease, at_least = ARGV[1], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local version, soft, hard = kept(name)
if version and version < at_least then
  version = nil
end
local value = version and redis.call('HGET', KEYS[1], 'v' .. name)
if version and now < soft then
  return {{'hit', value, version}}
end
local holder, till = refill(name)
if holder and holder ~= token and now < till then
  if version then
    return {{'refreshing', value, version}}
  end
  return {{'busy'}}
end
lend(name, lease, token)
written(lease + tonumber(ARGV[2]))
if version then
  return {{'stale', value, version, hard - now}}
end
return {{'miss'}}
"""
STORE = f"""{_PREFACE}{_KEEP}
local name, version = ARGV[1], ARGV[4]
local _, _, _, stored = kept(name)
if refill(name) ~= ARGV[3] then
  return stored == ARGV[3] and 1 or 0
end
if version ~= '' and (version < floor() or version < (kept(name) or '')) then
  redis.call('HDEL', KEYS[1], 't' .. name)
  return 0
end
return keep(name, ARGV[3], version, ARGV[5], ARGV[6], ARGV[7])
"""
PUT = f"""{_PREFACE}{_KEEP}
local name, version = ARGV[1], ARGV[3]
local known = kept(name) or ''
if known == '' then
  redis.call('HDEL', KEYS[1], 'm' .. name, 'v' .. name, 't' .. name)
  return 0
end
if version < known then
  return 0
end
return keep(name, '', version, ARGV[4], ARGV[5], ARGV[6])
"""
PROLONG = f"""{_PREFACE}
local name, lease = ARGV[1], tonumber(ARGV[4])
if refill(name) ~= ARGV[3] then
  return 0
end
lend(name, lease, ARGV[3])
written(lease + tonumber(ARGV[2]))
return 1
"""
ABANDON = f"""{_NOW}{_KEPT}
if refill(ARGV[1]) == ARGV[3] then
  return redis.call('HDEL', KEYS[1], 't' .. ARGV[1])
end
return 0
"""
DISCARD = """
return redis.call('HDEL', KEYS[1], 'm' .. ARGV[1], 'v' .. ARGV[1], 't' .. ARGV[1])
"""
# All goes but the floor: the highest of the one there was, the one given, and what was ever stored here. A server without
# memory refuses a script's first write if it may need some, and UNLINK needs none: an invalidation goes through. Unlike
# DEL it frees a tag of thousands of entries beside the other callers' commands, not before them.
_DROPPED = """
local function dropped(given, afterlife)
  local version = floor()
  for _, other in ipairs({given, redis.call('HGET', KEYS[1], 'n') or ''}) do
    if version < other then
      version = other
    end
  end
  redis.call('UNLINK', KEYS[1])
  if version ~= '' then
    redis.call('HSET', KEYS[1], 'f', moment(tonumber(afterlife)) .. ' ' .. version)
    redis.call('PEXPIRE', KEYS[1], afterlife)
  end
  return version
end
"""
DROP = f"""{_NOW}{_FLOOR}{_DROPPED}
dropped(ARGV[1], ARGV[2])
return 1
"""
# An invalidation first. What comes after it was already asked for, and nothing newer was ever seen: it moves forward.
REFRESH = f"""{_PREFACE}{_KEEP}{_DROPPED}
local name, version = ARGV[1], ARGV[3]
local before = kept(name) or ''
if dropped(version, ARGV[2]) == version and before ~= '' then
  return keep(name, '', version, ARGV[4], ARGV[5], ARGV[6])
end
return 0
"""
