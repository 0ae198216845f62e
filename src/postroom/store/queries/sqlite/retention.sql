-- name: lock_kept(ids)
-- One transaction writes at a time, so no lock is needed.
SELECT m.id, m.inbox_id, m.thread_id FROM messages m WHERE m.id IN (SELECT value FROM json_each(:ids)) AND m.pruned_at IS NULL

-- name: select_busy(ids)
-- Messages with an open action, an outgoing mail that has not ended, or a decision still to be made.
SELECT a.message_id FROM actions a
WHERE a.message_id IN (SELECT value FROM json_each(:ids)) AND a.state IN ('queued', 'approved_pending', 'executing')
UNION SELECT a.message_id FROM actions a JOIN outbound_mail o ON o.action_id = a.id
WHERE a.message_id IN (SELECT value FROM json_each(:ids)) AND o.ended_at IS NULL
UNION SELECT m.id FROM messages m
JOIN job_keys k ON k.key IN ('classify:' || m.account_id || ':' || m.id,
    'classify:' || m.account_id || ':' || m.id || ':' || 'metadata')
JOIN job_rows j ON j.id = k.job_id AND j.state IN ('queued', 'running')
WHERE m.id IN (SELECT value FROM json_each(:ids))

-- name: merge_words(pages)
-- Words of deleted documents stay in the index until its parts are merged; a negative number begins with all of them.
INSERT INTO message_words (message_words, rank) VALUES ('merge', :pages)

-- name: count_changes()
SELECT total_changes()
