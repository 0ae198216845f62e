-- name: insert_outbound(id, account_id, action_id, kind, recipients_json, subject, mime, thread_id, source_key, now)
INSERT INTO outbound (id, account_id, action_id, kind, recipients_json, subject, mime, thread_id, source_key, state,
    not_before, created_at, updated_at)
VALUES (:id, :account_id, :action_id, :kind, :recipients_json, :subject, :mime, :thread_id, :source_key, 'queued',
    :now, :now, :now)

-- name: select_auto_reply(account_id, sender)
SELECT action_id, replied_at FROM auto_replies WHERE account_id = :account_id AND sender = :sender

-- name: upsert_auto_reply(account_id, sender, action_id, now)
INSERT INTO auto_replies (account_id, sender, action_id, replied_at)
VALUES (:account_id, :sender, :action_id, :now)
ON CONFLICT (account_id, sender) DO UPDATE SET action_id = excluded.action_id, replied_at = excluded.replied_at

-- name: select_due_delivery(now)
SELECT 1 FROM outbound o JOIN accounts a ON a.id = o.account_id
WHERE ((o.state IN ('queued', 'deferred') AND o.not_before <= :now) OR (o.state = 'sending' AND o.lease_until <= :now))
    AND a.state IN ('active', 'removed')
    AND NOT EXISTS (SELECT 1 FROM pauses p WHERE p.scope IN ('all', CAST(o.account_id AS text)))
    AND (a.state = 'removed'
        OR NOT EXISTS (SELECT 1 FROM restore_checks r WHERE r.account_id = o.account_id AND r.checked_at IS NULL))
LIMIT 1

-- name: return_deliveries(now)
-- Their holder has died, or is presumed dead.
UPDATE outbound SET state = 'queued', lease_token = NULL, lease_until = NULL, updated_at = :now
WHERE state = 'sending' AND lease_until <= :now

-- name: select_leased_deliveries(lease_token, lease_until)
SELECT o.id, o.account_id, o.action_id, o.thread_id, o.attempts, o.draft_id, o.draft_message_id,
    o.created_at AS admitted_at, x.created_at AS asked_at, a.state AS account_state
FROM outbound o JOIN accounts a ON a.id = o.account_id JOIN actions x ON x.id = o.action_id
WHERE o.state = 'sending' AND o.lease_until = :lease_until AND o.lease_token = :lease_token ORDER BY o.not_before, o.id

-- name: select_mime(id)
SELECT mime FROM outbound WHERE id = :id

-- name: hold_delivery(id, lease_token, draft_id, draft_message_id, lease_until, now)
UPDATE outbound SET draft_id = COALESCE(:draft_id, draft_id),
    draft_message_id = COALESCE(:draft_message_id, draft_message_id), lease_until = :lease_until, updated_at = :now
WHERE id = :id AND lease_token = :lease_token AND state = 'sending' RETURNING account_id, action_id

-- name: return_delivery(id, lease_token, now)
UPDATE outbound SET state = 'queued', lease_token = NULL, lease_until = NULL, updated_at = :now
WHERE id = :id AND lease_token = :lease_token AND state = 'sending' RETURNING action_id

-- name: defer_delivery(id, lease_token, not_before, error, now)
UPDATE outbound SET state = 'deferred', lease_token = NULL, lease_until = NULL, not_before = :not_before,
    error = :error, updated_at = :now
WHERE id = :id AND lease_token = :lease_token AND state = 'sending' RETURNING action_id

-- name: doubt_delivery(id, lease_token, error, now)
UPDATE outbound SET state = 'unknown', lease_token = NULL, lease_until = NULL, error = :error, updated_at = :now
WHERE id = :id AND lease_token = :lease_token AND state = 'sending' RETURNING action_id

-- name: end_delivery(id, lease_token, state, sent_message_id, error, now)
-- The text is private mail, so it is not kept longer than needed.
UPDATE outbound SET state = :state, lease_token = NULL, lease_until = NULL, mime = '', error = :error,
    sent_message_id = :sent_message_id, updated_at = :now, ended_at = :now
WHERE id = :id AND lease_token = :lease_token AND state = 'sending' RETURNING action_id

-- name: withdraw_delivery(id, state, error, now)
UPDATE outbound SET state = :state, mime = '', error = :error, updated_at = :now, ended_at = :now
WHERE id = :id AND state IN ('queued', 'deferred', 'unknown')

-- name: settle_unknown_delivery(id, now)
UPDATE outbound SET state = 'delivered', mime = '', error = NULL, updated_at = :now, ended_at = :now
WHERE id = :id AND state = 'unknown'

-- name: queue_unknown_delivery(id, now)
-- Its draft is gone, and its time begins again. It was tried before, and that is not forgotten: the next attempt looks
-- through drafts and sent mail, back to when the action was decided on, before it makes a new draft.
UPDATE outbound SET state = 'queued', draft_id = NULL, draft_message_id = NULL, attempts = 1, error = NULL,
    not_before = :now, created_at = :now, updated_at = :now
WHERE id = :id AND state = 'unknown'

-- name: hasten_delivery(id, now)
UPDATE outbound SET not_before = :now, updated_at = :now WHERE id = :id AND state IN ('queued', 'deferred')

-- name: hasten_deliveries(account_id, now)
-- Deliveries that waited while the account could not be used.
UPDATE outbound SET not_before = :now, updated_at = :now
WHERE state IN ('queued', 'deferred') AND not_before > :now AND account_id = :account_id

-- name: note_on_action(id, note, now)
UPDATE actions SET error = :note, updated_at = :now WHERE id = :id AND state = 'executing'

-- name: select_deliveries(id, state, most)
SELECT o.id, o.account_id, a.email AS account, a.state AS account_state, o.action_id, o.kind, o.recipients_json,
    o.subject, o.state, o.attempts, o.not_before, o.draft_id, o.sent_message_id, o.error, o.created_at, o.updated_at,
    o.ended_at, (SELECT p.reason FROM pauses p WHERE p.scope IN ('all', CAST(o.account_id AS text))
        ORDER BY p.scope DESC LIMIT 1) AS paused
FROM outbound o JOIN accounts a ON a.id = o.account_id
WHERE (CAST(:id AS text) IS NULL OR CAST(o.id AS text) = CAST(:id AS text))
    AND (CAST(:state AS text) IS NULL OR o.state = :state)
ORDER BY o.created_at DESC, o.id DESC LIMIT :most
