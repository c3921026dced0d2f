"""The scripts of a dependency's gate in Valkey or Redis: a hash of its state and a sorted set of its calls, in one hash slot.

Fields of the hash: `open`, until when nobody is let in, there while the breaker is not closed; `down`, since when; `times`, how
often in a row it opened; `probe` and `until`, who looks whether it may close, and for how long at the most; `ramp`, when it
closed; `failures` in a row; `served`, when the youngest call that was served began; `due`, the rate's one number (see shared/rate.py); `tokens` and
`filled`, the retry budget and when it was last filled. The set holds each call under way with its latest end.

Microseconds throughout, by the server's clock. What a clock that was set back left in the future counts as the longest it
could be. Both keys are gone a day after the last call.
"""

from __future__ import annotations

_NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function text(number)
  return string.format('%.0f', number)
end
local function number(name)
  return tonumber(redis.call('HGET', KEYS[1], name) or nil)
end
local function kept()
  redis.call('PEXPIRE', KEYS[1], 86400000)
  redis.call('PEXPIRE', KEYS[2], 86400000)
end
"""
# Nothing is written before everything lets the call in. One for which there is room soon has its place, and waits for it.
ENTER = f"""{_NOW}
local token, held, retry = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local longest, ramp, least = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local interval, burst, most = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local share, refill, budget = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local patience = tonumber(ARGV[13])
local known = redis.call('ZSCORE', KEYS[2], token)
if known then
  return {{'in', math.max(0, math.ceil(known - held - now))}}
end
local open = number('open')
if longest > 0 and open then
  open = math.min(open, now + longest)
  if now < open then
    return {{'open', math.ceil(open - now)}}
  end
  local till = number('until')
  if till and now < till and till <= now + held then
    return {{'open', math.ceil(till - now)}}
  end
  redis.call('HSET', KEYS[1], 'probe', token, 'until', text(now + held))
  redis.call('ZADD', KEYS[2], text(now + held), token)
  kept()
  return {{'in', 0}}
end
local began = number('ramp')
if began then
  local grown = (now - began) / ramp
  if grown >= 1 or grown < 0 then
    redis.call('HDEL', KEYS[1], 'ramp', 'times')
  else
    interval, burst = interval / math.max(grown, least), 1
  end
end
local due, wait = now, 0
if interval > 0 then
  due = math.min(math.max(number('due') or now, now), now + interval * burst + patience)
  wait = math.max(0, due + interval - interval * burst - now)
  if wait > patience then
    return {{'rate', math.ceil(wait)}}
  end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', text(now))
redis.call('ZREMRANGEBYSCORE', KEYS[2], '(' .. text(now + patience + held), '+inf')
if most > 0 and redis.call('ZCARD', KEYS[2]) >= most then
  return {{'concurrency', math.ceil(held / 10)}}
end
if budget > 0 then
  local filled = number('filled') or now
  local tokens = math.min(budget, (number('tokens') or budget) + math.max(0, now - filled) * refill)
  if retry and tokens < 1 then
    return {{'retries', math.ceil((1 - tokens) / refill)}}
  end
  tokens = retry and tokens - 1 or math.min(budget, tokens + share)
  redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'filled', text(now))
end
if interval > 0 then
  redis.call('HSET', KEYS[1], 'due', text(due + interval))
end
redis.call('ZADD', KEYS[2], text(now + wait + held), token)
kept()
return {{'in', math.ceil(wait)}}
"""
LEAVE = f"""{_NOW}
local token, went, failures = ARGV[1], ARGV[2], tonumber(ARGV[3])
local pause, longest, held = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local mine = 0
local function opened()
  local times = number('times') or 0
  redis.call('HSET', KEYS[1], 'open', text(now + math.min(longest, pause * 2 ^ times)), 'times', text(times + 1))
  redis.call('HDEL', KEYS[1], 'failures', 'ramp', 'probe', 'until')
end
local ends = redis.call('ZSCORE', KEYS[2], token)
if ends then
  redis.call('ZREM', KEYS[2], token)
  local looks = redis.call('HGET', KEYS[1], 'probe') == token
  if went == 'served' then
    redis.call('HSET', KEYS[1], 'served', text(math.max(number('served') or 0, math.min(now, ends - held))))
    redis.call('HDEL', KEYS[1], 'failures')
    if looks then
      redis.call('HDEL', KEYS[1], 'open', 'down', 'probe', 'until')
      redis.call('HSET', KEYS[1], 'ramp', text(now))
    end
  elseif went == 'failed' and failures > 0 then
    if looks then
      opened()
    elseif not number('open') then
      local row = (number('failures') or 0) + 1
      redis.call('HSET', KEYS[1], 'failures', text(row))
      if row >= failures then
        redis.call('HSET', KEYS[1], 'down', text(now))
        opened()
        mine = 1
      end
    end
  elseif looks then
    redis.call('HDEL', KEYS[1], 'probe', 'until')
  end
  kept()
end
local open, served = number('open'), number('served')
if failures == 0 then
  open = nil
end
return {{
  open and math.max(1, math.ceil(math.min(open - now, longest))) or 0,
  served and math.max(0, now - served) or -1,
  mine
}}
"""
LOOK = f"""{_NOW}
local open, down = number('open'), number('down')
return {{
  open and math.max(0, math.ceil(math.min(open - now, tonumber(ARGV[1])))) or 0,
  down and math.max(0, now - down) or -1,
  redis.call('ZCOUNT', KEYS[2], '(' .. text(now), '+inf'),
  number('failures') or 0,
  number('ramp') and now - number('ramp') < tonumber(ARGV[2]) and 1 or 0
}}
"""
