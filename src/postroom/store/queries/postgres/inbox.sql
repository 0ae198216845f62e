-- name: lock_queue(queue)
-- Picks of one queue are made one after another, since each depends on the streaks that the last one left.
SELECT pg_advisory_xact_lock(hashtextextended('postroom.queue:' || :queue::text, 0))
