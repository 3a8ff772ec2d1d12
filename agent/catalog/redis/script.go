package redis

import "github.com/redis/rueidis"

// savedValue stands before the value of a record that is saved for a snapshot; of one that was not there nothing is saved but the key.
const savedValue = "="

// update evaluates checks, then makes writes, and saves for the snapshots that are read what they change first. What would fail in the
// middle is looked for first: a script that stops keeps what it wrote. KEYS: hash, index, channel, set of snapshots. ARGV: number of
// checks; key, "present" or "absent", value of each; number of writes; kind, key, value of each; the keys that the channel is told of.
// It returns the indices of the checks that failed.
var update = rueidis.NewLuaScript(`
local records, index, snapshots = KEYS[1], KEYS[2], KEYS[4]
local at, failed = 2, {}
for i = 0, tonumber(ARGV[1]) - 1 do
  local want = false
  if ARGV[at + 1] == 'present' then want = ARGV[at + 2] end
  if redis.call('HGET', records, ARGV[at]) ~= want then failed[#failed + 1] = i end
  at = at + 3
end
if #failed > 0 then return failed end
local first, last = at + 1, at + 3 * tonumber(ARGV[at])
for i = first, last, 3 do
  if ARGV[i] == 'increment' then
    local value = redis.call('HGET', records, ARGV[i + 1])
    if value and not string.match(value, '^-?%d+$') then
      return redis.error_reply('ERR record to increment is not a decimal integer')
    end
  end
end
for _, name in ipairs(redis.call('SMEMBERS', snapshots)) do
  local saved = snapshots .. ':' .. name
  if redis.call('EXISTS', saved) == 0 then
    redis.call('SREM', snapshots, name)
  else
    for i = first, last, 3 do
      local key = ARGV[i + 1]
      if redis.call('HEXISTS', saved, key) == 0 then
        local was = redis.call('HGET', records, key)
        redis.call('HSET', saved, key, was and '` + savedValue + `' .. was or '')
        redis.call('ZADD', saved .. ':index', 0, key)
      end
    end
  end
end
for i = first, last, 3 do
  local kind, key, value = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if kind == 'remove' then
    redis.call('HDEL', records, key)
    redis.call('ZREM', index, key)
  else
    if kind == 'increment' then
      redis.call('HINCRBY', records, key, value)
    else
      redis.call('HSET', records, key, value)
    end
    redis.call('ZADD', index, 0, key)
  end
end
for i = last + 1, #ARGV do redis.call('PUBLISH', KEYS[3], ARGV[i]) end
return failed
`)

// scan lists records in order. KEYS: hash, index. ARGV: first and last key as ZRANGEBYLEX wants them, limit. It returns
// keys and values by turns.
var scan = rueidis.NewLuaScript(`
local answer = {}
for i, key in ipairs(redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])) do
  answer[2 * i - 1], answer[2 * i] = key, redis.call('HGET', KEYS[1], key)
end
return answer
`)
