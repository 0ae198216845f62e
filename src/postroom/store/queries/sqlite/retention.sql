-- name: select_categories_of(message_ids)
SELECT message_id, category FROM message_categories WHERE message_id IN (SELECT value FROM json_each(:message_ids))
ORDER BY category

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

-- name: select_snoozed(ids)
SELECT a.message_id, a.pre_image_json ->> 'snooze_until' FROM actions a
WHERE a.message_id IN (SELECT value FROM json_each(:ids)) AND a.state IN ('executing', 'completed')
    AND a.pre_image_json ->> 'snooze_until' IS NOT NULL

-- name: prune_messages(ids, now)
UPDATE messages SET subject = '', headers_json = '[]', snippet = '', body_text = '', list_id = '',
    attachments_json = NULL, pruned_at = :now, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids))

-- name: select_envelopes_of(inbox_ids)
SELECT e.seq FROM envelopes e
WHERE (e.id IN (SELECT value FROM json_each(:inbox_ids)) OR e.copy_of IN (SELECT value FROM json_each(:inbox_ids)))
    AND EXISTS (SELECT 1 FROM inbox_ends x WHERE x.seq = e.seq)

-- name: prune_threads(ids)
UPDATE threads SET subject = '' WHERE id IN (SELECT value FROM json_each(:ids))
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.thread_id = threads.id AND m.pruned_at IS NULL)

-- name: prune_reasons(ids)
-- What a model or an agent wrote about a message may quote it.
UPDATE decisions SET rationale = '' WHERE message_id IN (SELECT value FROM json_each(:ids)) AND source = 'llm';
UPDATE actions SET rationale = '' WHERE message_id IN (SELECT value FROM json_each(:ids)) AND actor IN ('model', 'agent')

-- name: merge_words(pages)
-- Words of deleted documents stay in the index until its parts are merged; a negative number begins with all of them.
INSERT INTO message_words (message_words, rank) VALUES ('merge', :pages)

-- name: count_changes()
SELECT total_changes()
