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

-- name: lock_queue(queue)
-- Picks of one queue are made one after another, since each depends on the streaks that the last one left.
SELECT pg_advisory_xact_lock(hashtextextended('postroom.queue:' || :queue::text, 0))
