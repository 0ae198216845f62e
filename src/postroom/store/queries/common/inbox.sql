-- name: upgrade_event(event_key)
-- Of several full copies of a message known by its metadata, one is the upgrade.
UPDATE inbox_events SET ingestion_tier = 'full' WHERE event_key = :event_key AND ingestion_tier = 'metadata'
RETURNING inbox_id

-- name: link_event(event_key, inbox_id)
UPDATE inbox_events SET inbox_id = :inbox_id WHERE event_key = :event_key

-- name: retake_event(event_key, failed_id, inbox_id, ingestion_tier)
UPDATE inbox_events SET inbox_id = :inbox_id, ingestion_tier = :ingestion_tier
WHERE event_key = :event_key AND inbox_id = :failed_id
RETURNING event_key

-- name: forget_key(key)
DELETE FROM inbox_keys WHERE key = :key

-- name: forget_texts(now)
DELETE FROM inbox_texts WHERE expires_at <= :now

-- name: insert_queue_state(queue, streaks_json)
INSERT INTO queue_state (queue, streaks_json) VALUES (:queue, :streaks_json) ON CONFLICT DO NOTHING

-- name: keep_ledger(queue, streaks_json, turns_json)
UPDATE queue_state SET streaks_json = :streaks_json, turns_json = :turns_json WHERE queue = :queue

-- name: select_turns(queue)
-- Consumers hold few messages, however many wait.
SELECT seq, turn_json FROM inbox_queue WHERE state = 'leased' AND queue = :queue AND turn_json IS NOT NULL

-- name: keep_turn(seq, turn_json)
UPDATE inbox_queue SET turn_json = :turn_json WHERE seq = :seq AND state = 'leased'

-- name: select_expired_queues(now)
SELECT DISTINCT queue FROM inbox_queue WHERE state = 'leased' AND lease_until < :now

-- name: select_streaks()
SELECT queue, streaks_json FROM queue_state

-- name: insert_summary(id, queue, tier, channel, provider, endpoint_identity, external_event_id, sender, kind, envelope_json, members, now)
INSERT INTO envelopes (id, queue, tier, channel, provider, endpoint_identity, external_event_id, sender, kind,
    policy_tier, ingestion_tier, envelope_json, members, observed_at, accepted_at)
VALUES (:id, :queue, :tier, :channel, :provider, :endpoint_identity, :external_event_id, :sender, :kind,
    'default', 'full', :envelope_json, :members, :now, :now)
RETURNING seq

-- name: queue_summary(seq, id, queue, tier, now)
INSERT INTO inbox_queue (seq, id, queue, tier, state, accepted_at)
VALUES (:seq, :id, :queue, :tier, 'waiting', :now)

-- name: select_members(id, most)
SELECT e.id FROM inbox_ends x JOIN envelopes e ON e.seq = x.seq WHERE x.linked_to = :id ORDER BY x.seq LIMIT :most

-- name: select_live_queues()
-- The names of the queues with waiting messages: one index lookup for each.
WITH RECURSIVE queues (queue) AS (
    SELECT min(queue) FROM inbox_queue WHERE state = 'waiting'
    UNION ALL
    SELECT (SELECT min(queue) FROM inbox_queue WHERE state = 'waiting' AND queue > queues.queue)
    FROM queues WHERE queues.queue IS NOT NULL
)
SELECT queue FROM queues WHERE queue IS NOT NULL

-- name: any_waiting(queue)
SELECT 1 FROM inbox_queue WHERE state = 'waiting' AND queue = :queue LIMIT 1

-- name: count_live()
SELECT queue, tier, state, count(*) AS count, min(accepted_at) AS oldest FROM inbox_queue GROUP BY queue, tier, state

-- name: peek_line(queue, tier, most)
SELECT e.id AS message_id, q.tier, q.state, q.attempts, q.accepted_at, e.kind, e.channel, e.envelope_json
FROM inbox_queue q JOIN envelopes e ON e.seq = q.seq
WHERE q.seq IN (
    SELECT seq FROM inbox_queue WHERE state = 'waiting' AND queue = :queue AND tier = :tier ORDER BY seq LIMIT :most
)
ORDER BY q.seq

-- name: select_strays(queue, most)
-- Messages in tiers that the queue no longer has are found by looking at each tier.
WITH RECURSIVE tiers (tier) AS (
    SELECT min(tier) FROM inbox_queue WHERE state = 'waiting' AND queue = :queue
    UNION ALL
    SELECT (SELECT min(tier) FROM inbox_queue WHERE state = 'waiting' AND queue = :queue AND tier > tiers.tier)
    FROM tiers WHERE tiers.tier IS NOT NULL
)
SELECT tier FROM tiers WHERE tier IS NOT NULL
UNION SELECT tier FROM inbox_queue WHERE state = 'leased' AND queue = :queue
LIMIT :most

-- name: move_tier(queue, tier, target, most)
UPDATE inbox_queue SET tier = :target WHERE seq IN (
    SELECT seq FROM inbox_queue WHERE queue = :queue AND tier = :tier AND state = 'waiting'
    UNION ALL SELECT seq FROM inbox_queue WHERE queue = :queue AND tier = :tier AND state = 'leased'
    LIMIT :most
) RETURNING seq

-- name: sum_rollups(measure, since, until)
SELECT hour, queue, name, endpoint_identity, bucket, CAST(sum(count) AS bigint) AS count,
    CAST(sum(total_ms) AS bigint) AS total_ms
FROM rollups
WHERE measure = :measure AND hour >= :since AND hour < :until
GROUP BY hour, queue, name, endpoint_identity, bucket
ORDER BY hour, queue, name, endpoint_identity, bucket

-- name: prune_rollups(before)
DELETE FROM rollup_spans WHERE start < :before;
DELETE FROM rollups WHERE hour < :before RETURNING hour

-- name: select_prunable(queue, before, most)
SELECT e.seq FROM envelopes e
WHERE e.queue = :queue AND e.accepted_at < :before
    AND EXISTS (SELECT 1 FROM inbox_ends x WHERE x.seq = e.seq AND x.ended_at < :before)
ORDER BY e.accepted_at, e.seq LIMIT :most

-- name: count_states(queue)
SELECT tier, state, count(*) FROM inbox WHERE queue = :queue GROUP BY tier, state

-- name: select_any_message()
SELECT 1 FROM inbox_queue LIMIT 1

-- name: select_inbox_keys(keys)
SELECT k.key, k.event_key, v.inbox_id, v.sender
FROM inbox_keys k LEFT JOIN inbox_events v ON v.event_key = k.event_key WHERE k.key {= ANY(:keys::text[])}

-- name: select_events(event_keys)
-- With whether its message has failed; false if the full message came after its metadata, as a separate message.
SELECT v.event_key, v.inbox_id, v.sender, v.ingestion_tier,
    x.state IS NOT NULL AND x.state = 'failed' AND e.ingestion_tier = v.ingestion_tier
FROM inbox_events v LEFT JOIN envelopes e ON e.id = v.inbox_id LEFT JOIN inbox_ends x ON x.seq = e.seq
WHERE v.event_key {= ANY(:event_keys::text[])}

-- name: select_texts(hashes)
SELECT queue, text_hash, inbox_id FROM inbox_texts WHERE text_hash {= ANY(:hashes::text[])}

-- name: lock_queue(queue)
-- Picks of one queue run one after another, since each depends on the streaks left by the last one.
SELECT streaks_json, turns_json FROM queue_state WHERE queue = :queue {FOR UPDATE}

-- name: return_inbox(seqs, reason, undone)
-- A lease that nobody saw was not a delivery: `undone` subtracts that many. A summary stays a summary.
UPDATE inbox_queue
SET state = 'waiting', lease_token = NULL, lease_until = NULL, turn_json = NULL, reason = COALESCE(:reason{::text}, reason),
    attempts = attempts - CASE WHEN EXISTS (
        SELECT 1 FROM envelopes e WHERE e.seq = inbox_queue.seq AND e.members IS NOT NULL
    ) THEN 0 ELSE :undone{::bigint} END
WHERE seq {= ANY(:seqs::bigint[])} AND state = 'leased'

-- name: count_kinds(seqs)
SELECT kind, count(*) FROM envelopes WHERE seq {= ANY(:seqs::bigint[])} GROUP BY kind ORDER BY 2 DESC, 1

-- name: select_texts_of(seqs)
SELECT envelope_json FROM envelopes WHERE seq {= ANY(:seqs::bigint[])} ORDER BY seq

-- name: delete_inbox(seqs)
DELETE FROM inbox_ends WHERE seq {= ANY(:seqs::bigint[])};
DELETE FROM envelopes WHERE seq {= ANY(:seqs::bigint[])};

-- name: select_fresh(queue, tier, since, most)
SELECT seq FROM inbox_queue
WHERE state = 'waiting' AND queue = :queue AND tier = :tier AND attempts = 0 AND accepted_at >= :since
ORDER BY queue, tier, seq LIMIT :most

-- name: share_accounts(identities)
-- Removing an account locks it first, and so waits until what was accepted for it is visible.
SELECT endpoint_identity, state FROM accounts WHERE endpoint_identity {= ANY(:identities::text[])}
{ORDER BY endpoint_identity FOR KEY SHARE}

-- name: take_inbox_keys(rows)
-- In the order of the keys, so that two writers of the same keys cannot deadlock.
INSERT INTO inbox_keys (key, event_key)
SELECT value ->> 0, value ->> 1 FROM {jsonb_array_elements(:rows::jsonb)} AS e ORDER BY 1
ON CONFLICT DO NOTHING RETURNING key

-- name: take_events(rows)
INSERT INTO inbox_events (event_key, inbox_id, sender, ingestion_tier)
SELECT value ->> 0, (value ->> 1){::uuid}, value ->> 2, value ->> 3 FROM {jsonb_array_elements(:rows::jsonb)} AS e ORDER BY 1
ON CONFLICT DO NOTHING RETURNING event_key

-- name: take_texts(rows, now)
-- A content whose time is over, or whose first message ended as failed, counts as new.
INSERT INTO inbox_texts (queue, text_hash, inbox_id, expires_at)
SELECT value ->> 0, value ->> 1, (value ->> 2){::uuid}, (value ->> 3){::timestamptz}
FROM {jsonb_array_elements(:rows::jsonb)} AS e ORDER BY 1, 2
ON CONFLICT (queue, text_hash) DO UPDATE SET inbox_id = excluded.inbox_id, expires_at = excluded.expires_at
WHERE inbox_texts.expires_at <= :now OR EXISTS (
    SELECT 1 FROM envelopes e JOIN inbox_ends x ON x.seq = e.seq WHERE e.id = inbox_texts.inbox_id AND x.state = 'failed'
)
RETURNING queue, text_hash

-- name: lock_expired(now, most)
SELECT seq, queue, tier, attempts FROM inbox_queue WHERE state = 'leased' AND lease_until < :now
ORDER BY lease_until LIMIT :most {FOR UPDATE SKIP LOCKED}

-- name: add_rollups(rows, hour, shard)
INSERT INTO rollups (hour, measure, queue, name, endpoint_identity, bucket, shard, count, total_ms)
SELECT :hour, value ->> 0, value ->> 1, value ->> 2, value ->> 3, (value ->> 4){::bigint}, :shard, (value ->> 5){::bigint},
    (value ->> 6){::bigint}
FROM {jsonb_array_elements(:rows::jsonb)} AS e ORDER BY 2, 3, 4, 5, 6
ON CONFLICT (hour, measure, queue, name, endpoint_identity, bucket, shard)
DO UPDATE SET count = rollups.count + excluded.count, total_ms = rollups.total_ms + excluded.total_ms

-- name: select_history(queue, since, until, kinds, most)
-- Messages that ended, excluding duplicates and copies made by a replay.
SELECT e.id FROM envelopes e JOIN inbox_ends x ON x.seq = e.seq
WHERE e.queue = :queue AND e.accepted_at >= :since AND e.accepted_at < :until AND e.members IS NULL
    AND x.state <> 'duplicate' AND (e.kind {= ANY(:kinds::text[])} OR :kinds IS NULL)
    AND NOT EXISTS (SELECT 1 FROM envelopes o WHERE o.id = e.copy_of AND o.ingestion_tier = e.ingestion_tier)
ORDER BY e.accepted_at, e.seq LIMIT :most

-- name: select_named(queue, since, until, kinds, ids, most)
-- Selected by id, a dropped duplicate is replayed too.
SELECT e.id FROM envelopes e JOIN inbox_ends x ON x.seq = e.seq
WHERE e.id {= ANY(:ids::uuid[])} AND e.queue = :queue AND e.accepted_at >= :since AND e.accepted_at < :until
    AND e.members IS NULL AND (e.kind {= ANY(:kinds::text[])} OR :kinds IS NULL)
ORDER BY e.accepted_at, e.seq LIMIT :most

-- name: lock_leased(rows, now)
SELECT q.seq, q.id, q.lease_token, q.queue, q.tier, q.attempts, q.accepted_at
FROM inbox_queue q WHERE {held} {ORDER BY q.seq FOR UPDATE}

-- name: select_leased_queues(rows, now)
SELECT DISTINCT q.queue FROM inbox_queue q WHERE {leased}
