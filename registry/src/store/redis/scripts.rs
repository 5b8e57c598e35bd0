//! The scripts, one round trip each. A key that holds a foreign value counts as empty and is overwritten, so that breakers work
//! again without a manual clean-up.

use redis::Script;

/// How long the index lives: longer than any record.
pub(super) const INDEX_MILLIS: u64 = 31 * 24 * 3600 * 1000;

pub(super) struct Scripts {
    pub(super) put: Script,
    pub(super) lease: Script,
    pub(super) renew: Script,
    pub(super) take: Script,
    pub(super) sync: Script,
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            put: Script::new(PUT),
            lease: Script::new(LEASE),
            renew: Script::new(RENEW),
            take: Script::new(TAKE),
            sync: Script::new(SYNC),
        }
    }
}

/// KEYS: the index, then one per text. ARGV: the channel, the index's time to live; then four per text: the service, the
/// expected text, the new text, its time to live. Our texts are ASCII: any other text counts as empty. Answers a pair per text: 1 and
/// an empty text, or 0 and the present text.
const PUT: &str = r"
local now = redis.call('TIME')
local millis = now[1] * 1000 + math.floor(now[2] / 1000)
local answers = {}
for i = 2, #KEYS do
    local at = 2 + (i - 2) * 4
    local present = redis.pcall('GET', KEYS[i])
    if type(present) ~= 'string' or string.find(present, '[\128-\255]') then present = '' end
    if present == ARGV[at + 2] then
        redis.call('SET', KEYS[i], ARGV[at + 3], 'PX', ARGV[at + 4])
        local indexed = redis.pcall('ZADD', KEYS[1], string.format('%.0f', millis), ARGV[at + 1])
        if type(indexed) == 'table' and indexed['err'] then redis.call('DEL', KEYS[1]) end
        redis.call('PUBLISH', ARGV[1], ARGV[at + 3])
        answers[i - 1] = { 1, '' }
    else
        answers[i - 1] = { 0, present }
    end
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return answers
";

/// KEYS: the record, the lease. ARGV: the expected record, the process, when the probe is due, the lease's time to live, the
/// channel, the message. A lease without an end is foreign. Answers 1 if granted; 2 and the milliseconds that another process holds it;
/// 3 and the present record; or 4 and the microseconds until the probe is due.
const LEASE: &str = r"
local present = redis.pcall('GET', KEYS[1])
if type(present) ~= 'string' or string.find(present, '[\128-\255]') then present = '' end
if present ~= ARGV[1] then return { 3, 0, present } end
local now = redis.call('TIME')
local early = ARGV[3] - (now[1] * 1000000 + now[2])
if early > 0 then return { 4, early, '' } end
local holder = redis.pcall('GET', KEYS[2])
local left = redis.call('PTTL', KEYS[2])
if type(holder) == 'string' and holder ~= ARGV[2] and left >= 0 then return { 2, left, '' } end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[4])
redis.call('PUBLISH', ARGV[5], ARGV[6])
return { 1, 0, '' }
";

/// KEYS: the lease. ARGV: the process, the time to live, the channel, the message. Answers 1, or 0 if the process no longer holds
/// the lease.
const RENEW: &str = r"
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 1
";

/// The generic cell rate algorithm. KEYS: when the next token is due if all are taken evenly. ARGV: microseconds between tokens,
/// and how far ahead they may be taken. A later time comes from a clock that was set back, or is foreign. Answers 0, or the
/// microseconds until the next token.
const TAKE: &str = r"
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
local due = redis.pcall('GET', KEYS[1])
due = type(due) == 'string' and tonumber(due) or 0
due = math.min(math.max(due, now), now + ARGV[1] + ARGV[2])
local wait = due - ARGV[2] - now
if wait > 0 then return math.ceil(wait) end
due = due + ARGV[1]
redis.call('SET', KEYS[1], string.format('%.0f', due), 'PX', math.ceil((due - now) / 1000) + 1000)
return 0
";

/// KEYS: the index, the processes, the life. ARGV: the process, the time of its last sync (milliseconds), a new life, the most
/// changes to read. Answers the time, the number of processes, the life, and the services that changed.
const SYNC: &str = r"
local now = redis.call('TIME')
local millis = now[1] * 1000 + math.floor(now[2] / 1000)
local score = string.format('%.0f', millis)
local came = redis.pcall('ZADD', KEYS[2], score, ARGV[1])
if type(came) == 'table' and came['err'] then
    redis.call('DEL', KEYS[2])
    redis.call('ZADD', KEYS[2], score, ARGV[1])
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', millis - 15000))
redis.call('PEXPIRE', KEYS[2], 60000)
local life = redis.pcall('GET', KEYS[3])
if type(life) ~= 'string' then
    life = ARGV[3]
    redis.call('SET', KEYS[3], life)
end
redis.call('PEXPIRE', KEYS[3], 86400000)
local changed = redis.pcall('ZRANGEBYSCORE', KEYS[1], ARGV[2], '+inf', 'LIMIT', 0, ARGV[4])
if changed['err'] then changed = {} end
return { now[1], now[2], redis.call('ZCARD', KEYS[2]), life, changed }
";
