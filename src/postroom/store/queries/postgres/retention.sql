-- name: lock_kept(ids)
-- Whoever adds an action to one of them waits until these are pruned.
SELECT m.id, m.inbox_id, m.thread_id FROM messages m WHERE m.id = ANY(:ids::uuid[]) AND m.pruned_at IS NULL
ORDER BY m.id FOR UPDATE

-- name: select_busy(ids)
-- Messages with an open action, an outgoing mail that has not ended, or a decision still to be made.
SELECT a.message_id FROM actions a
WHERE a.message_id = ANY(:ids::uuid[]) AND a.state IN ('queued', 'approved_pending', 'executing')
UNION SELECT a.message_id FROM actions a JOIN outbound_mail o ON o.action_id = a.id
WHERE a.message_id = ANY(:ids::uuid[]) AND o.ended_at IS NULL
UNION SELECT m.id FROM messages m
JOIN job_keys k ON k.key IN ('classify:' || m.account_id::text || ':' || m.id::text,
    'classify:' || m.account_id::text || ':' || m.id::text || ':' || 'metadata')
JOIN jobs j ON j.id = k.job_id AND j.state IN ('queued', 'running')
WHERE m.id = ANY(:ids::uuid[])

-- name: merge_words(pages)
-- The words of a message go with its row.
SELECT 1 WHERE :pages::integer IS NULL

-- name: count_changes()
SELECT 0
