-- name: take_inbox_key(key, inbox_id, channel, provider, endpoint_identity, external_event_id, sender)
INSERT INTO inbox_keys (key, inbox_id, channel, provider, endpoint_identity, external_event_id, sender)
VALUES (:key, :inbox_id, :channel, :provider, :endpoint_identity, :external_event_id, :sender)
ON CONFLICT DO NOTHING RETURNING key

-- name: select_inbox_key(key)
SELECT inbox_id, channel, provider, endpoint_identity, external_event_id, sender FROM inbox_keys WHERE key = :key

-- name: insert_inbox(id, queue, tier, channel, provider, endpoint_identity, external_event_id, sender, policy_tier, ingestion_tier, envelope_json, observed_at, now)
INSERT INTO inbox (id, queue, tier, state, channel, provider, endpoint_identity, external_event_id, sender, policy_tier,
    ingestion_tier, envelope_json, observed_at, accepted_at)
VALUES (:id, :queue, :tier, 'waiting', :channel, :provider, :endpoint_identity, :external_event_id, :sender,
    :policy_tier, :ingestion_tier, :envelope_json, :observed_at, :now)

-- name: select_streaks(queue)
SELECT tier, streak FROM queue_streaks WHERE queue = :queue

-- name: upsert_streak(queue, tier, streak)
INSERT INTO queue_streaks (queue, tier, streak) VALUES (:queue, :tier, :streak)
ON CONFLICT (queue, tier) DO UPDATE SET streak = excluded.streak

-- name: lease_inbox(seq, token, until)
UPDATE inbox SET state = 'leased', lease_token = :token, lease_until = :until, attempts = attempts + 1
WHERE seq = :seq AND state = 'waiting'
RETURNING id, tier, policy_tier, ingestion_tier, endpoint_identity, envelope_json, accepted_at

-- name: end_inbox(id, token, state, reason, now)
UPDATE inbox SET state = :state, reason = :reason, ended_at = :now, lease_token = NULL, lease_until = NULL
WHERE id = :id AND state = 'leased' AND lease_token = :token RETURNING id

-- name: return_expired_inbox(now)
UPDATE inbox SET state = 'waiting', lease_token = NULL, lease_until = NULL
WHERE state = 'leased' AND lease_until < :now RETURNING id

-- name: count_inbox(queue)
SELECT tier, state, count(*) FROM inbox WHERE queue = :queue GROUP BY tier, state

-- name: select_inbox_heads(queue)
-- The oldest waiting seq of each tier: one step into the index per tier, however long the queue is.
WITH RECURSIVE tiers (tier) AS (
    SELECT min(tier) FROM inbox WHERE state = 'waiting' AND queue = :queue
    UNION ALL
    SELECT (SELECT min(tier) FROM inbox WHERE state = 'waiting' AND queue = :queue AND tier > tiers.tier)
    FROM tiers WHERE tiers.tier IS NOT NULL
)
SELECT tier, (SELECT min(seq) FROM inbox WHERE state = 'waiting' AND queue = :queue AND tier = tiers.tier)
FROM tiers WHERE tier IS NOT NULL
