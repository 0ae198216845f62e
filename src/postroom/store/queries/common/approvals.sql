-- name: select_account_state(id)
SELECT state FROM accounts WHERE id = :id

-- name: approve_action(id, job_id, approved_by, now)
UPDATE actions SET state = 'queued', job_id = :job_id, approved_by = :approved_by, approved_at = :now, updated_at = :now
WHERE id = :id AND state = 'approved_pending'

-- name: end_approval(id, state, error, now)
UPDATE actions SET state = :state, error = :error, updated_at = :now WHERE id = :id AND state = 'approved_pending'

-- name: take_back_rejection(id, now)
UPDATE actions SET state = 'approved_pending', error = NULL, updated_at = :now WHERE id = :id AND state = 'rejected'

-- name: select_asked_since(message_id, action_hash, since)
-- Whether the same was asked for again since then, or the message was decided about again.
SELECT 1 WHERE EXISTS (SELECT 1 FROM actions
        WHERE message_id = :message_id AND action_hash = :action_hash AND created_at > :since)
    OR EXISTS (SELECT 1 FROM decisions WHERE message_id = :message_id AND created_at > :since)

-- name: expire_approvals(error, now)
UPDATE actions SET state = 'expired', error = :error, updated_at = :now
WHERE state = 'approved_pending' AND expires_at <= :now RETURNING id

-- name: insert_notice(action_id, channel, reference, now)
INSERT INTO approval_notices (action_id, channel, reference, sent_at) VALUES (:action_id, :channel, :reference, :now)
ON CONFLICT (action_id, channel) DO NOTHING RETURNING channel

-- name: select_notices(action_id)
SELECT channel, reference, closed_at IS NULL AS is_open FROM approval_notices WHERE action_id = :action_id ORDER BY channel

-- name: close_notice(action_id, channel, now)
UPDATE approval_notices SET closed_at = :now
WHERE action_id = :action_id AND channel = :channel AND closed_at IS NULL RETURNING channel

-- name: select_answered(most)
-- Open notices of actions that no longer wait, oldest first, and since when.
SELECT a.id, a.account_id, a.state, a.updated_at FROM approval_notices n JOIN actions a ON a.id = n.action_id
WHERE n.closed_at IS NULL AND a.state <> 'approved_pending'
GROUP BY a.id, a.account_id, a.state, a.updated_at ORDER BY min(n.sent_at), a.id LIMIT :most

-- name: delete_old_slots(before)
DELETE FROM approval_slots WHERE taken_at <= :before

-- name: insert_slot(action_id, most, now)
-- A retry of the same job has its slot already.
INSERT INTO approval_slots (action_id, taken_at)
SELECT :action_id, :now WHERE (SELECT count(*) FROM approval_slots) < :most
ON CONFLICT (action_id) DO NOTHING

-- name: select_slot(action_id)
SELECT 1 FROM approval_slots WHERE action_id = :action_id

-- name: count_without_notice()
-- Actions that wait for an answer without a notice, by what is done and who asked for it.
SELECT a.action_type, a.actor, t.name AS agent, CAST(count(*) AS bigint) AS number,
    CAST(count(DISTINCT m.sender) AS bigint) AS senders
FROM actions a JOIN messages m ON m.id = a.message_id
    LEFT JOIN tokens t ON a.actor = 'agent' AND a.asked_by = 'token:' || CAST(t.id AS text)
WHERE a.state = 'approved_pending' AND NOT EXISTS (SELECT 1 FROM approval_notices n WHERE n.action_id = a.id)
GROUP BY a.action_type, a.actor, t.name ORDER BY number DESC, a.action_type, a.actor, t.name
