-- name: select_kept_page(before, at, id, most)
-- Mail whose content is kept and that was stored before, oldest first, after a position.
SELECT m.id, m.ingestion_tier, m.sender, m.subject, m.headers_json, m.created_at AS stored_at, a.email AS account_email,
    a.endpoint_identity, substr(m.body_text, 1, 1400) AS text_start,
    (SELECT COALESCE('["' || string_agg(c.category, '","') || '"]', '[]') FROM message_categories c
        WHERE c.message_id = m.id) AS stored_categories_json
FROM messages m JOIN accounts a ON a.id = m.account_id
WHERE m.pruned_at IS NULL AND m.created_at <= :before AND (m.created_at, m.id) > (:at, :id)
ORDER BY m.created_at, m.id LIMIT :most

-- name: insert_retention_run(id, is_dry, policy_json, messages, held, counts_json, ran_by, started_at, ended_at)
INSERT INTO retention_runs (id, is_dry, policy_json, messages, held, counts_json, ran_by, started_at, ended_at)
VALUES (:id, :is_dry, :policy_json, :messages, :held, :counts_json, :ran_by, :started_at, :ended_at)

-- name: prune_retention_runs(before)
DELETE FROM retention_runs WHERE ended_at < :before

-- name: select_retention_runs(most)
SELECT id, is_dry, policy_json, messages, held, counts_json, ran_by, started_at, ended_at FROM retention_runs
ORDER BY ended_at DESC, id DESC LIMIT :most

-- name: select_retention_approval()
SELECT policy_json, approved_by, approved_at FROM retention_approval

-- name: insert_retention_approval(policy_json, approved_by, now)
INSERT INTO retention_approval (policy_json, approved_by, approved_at) VALUES (:policy_json, :approved_by, :now)

-- name: delete_retention_approval()
DELETE FROM retention_approval RETURNING policy_json

-- name: select_snoozed(ids)
SELECT a.message_id, a.pre_image_json ->> 'snooze_until' FROM actions a
WHERE a.message_id {= ANY(:ids::uuid[])} AND a.state IN ('executing', 'completed')
    AND a.pre_image_json ->> 'snooze_until' IS NOT NULL

-- name: prune_messages(ids, now)
UPDATE messages SET subject = '', headers_json = '[]', snippet = '', body_text = '', list_id = '',
    attachments_json = NULL, pruned_at = :now, updated_at = :now
WHERE id {= ANY(:ids::uuid[])}

-- name: select_envelopes_of(inbox_ids)
SELECT e.seq FROM envelopes e
WHERE (e.id {= ANY(:inbox_ids::uuid[])} OR e.copy_of {= ANY(:inbox_ids::uuid[])})
    AND EXISTS (SELECT 1 FROM inbox_ends x WHERE x.seq = e.seq)

-- name: prune_threads(ids)
UPDATE threads SET subject = '' WHERE id {= ANY(:ids::uuid[])}
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.thread_id = threads.id AND m.pruned_at IS NULL)

-- name: prune_reasons(ids)
-- What a model or an agent wrote about a message may quote it.
UPDATE decisions SET rationale = '' WHERE message_id {= ANY(:ids::uuid[])} AND source = 'llm';
UPDATE actions SET rationale = '' WHERE message_id {= ANY(:ids::uuid[])} AND actor IN ('model', 'agent')

-- name: lock_kept(ids)
-- Whoever adds an action to one of them waits until these are pruned.
SELECT m.id, m.inbox_id, m.thread_id FROM messages m WHERE m.id {= ANY(:ids::uuid[])} AND m.pruned_at IS NULL
{ORDER BY m.id FOR UPDATE}

-- name: select_busy(ids)
-- Messages with an open action, an outgoing mail that has not ended, or a decision still to be made.
SELECT a.message_id FROM actions a
WHERE a.message_id {= ANY(:ids::uuid[])} AND a.state IN ('queued', 'approved_pending', 'executing')
UNION SELECT a.message_id FROM actions a JOIN outbound_mail o ON o.action_id = a.id
WHERE a.message_id {= ANY(:ids::uuid[])} AND o.ended_at IS NULL
UNION SELECT m.id FROM messages m
JOIN job_keys k ON k.key IN ('classify:' || m.account_id{::text} || ':' || m.id{::text},
    'classify:' || m.account_id{::text} || ':' || m.id{::text} || ':' || 'metadata')
JOIN jobs j ON j.id = k.job_id AND j.state IN ('queued', 'running')
WHERE m.id {= ANY(:ids::uuid[])}
