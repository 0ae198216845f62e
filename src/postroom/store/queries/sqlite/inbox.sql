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
SELECT 1 WHERE :queue IS NOT NULL
