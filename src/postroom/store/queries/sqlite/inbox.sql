-- name: lock_queue(queue)
SELECT 1 WHERE :queue IS NOT NULL
