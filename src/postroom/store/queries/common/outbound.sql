-- name: insert_outbound_recipient(mail_id, position, address, notify, original, not_before, now)
INSERT INTO outbound_recipients (mail_id, position, address, notify, original, state, not_before, updated_at)
VALUES (:mail_id, :position, :address, :notify, :original, 'queued', :not_before, :now)

-- name: select_outbound_recipients(mail_id)
SELECT address, state, attempts, not_before, last_reply FROM outbound_recipients WHERE mail_id = :mail_id ORDER BY position

-- name: insert_outbound_content(mail_id, content)
INSERT INTO outbound_contents (mail_id, content) VALUES (:mail_id, :content)

-- name: select_outbound_content(mail_id)
SELECT content FROM outbound_contents WHERE mail_id = :mail_id

-- name: delete_outbound_content(mail_id)
DELETE FROM outbound_contents WHERE mail_id = :mail_id

-- name: upsert_outbound_draft(mail_id, draft_id, provider_message_id)
INSERT INTO outbound_drafts (mail_id, draft_id, provider_message_id) VALUES (:mail_id, :draft_id, :provider_message_id)
ON CONFLICT (mail_id) DO UPDATE SET draft_id = excluded.draft_id, provider_message_id = excluded.provider_message_id

-- name: select_outbound_draft(mail_id)
SELECT draft_id FROM outbound_drafts WHERE mail_id = :mail_id

-- name: select_auto_reply(account_id, sender)
SELECT action_id, replied_at FROM auto_replies WHERE account_id = :account_id AND sender = :sender

-- name: upsert_auto_reply(account_id, sender, action_id, now)
INSERT INTO auto_replies (account_id, sender, action_id, replied_at)
VALUES (:account_id, :sender, :action_id, :now)
ON CONFLICT (account_id, sender) DO UPDATE SET action_id = excluded.action_id, replied_at = excluded.replied_at

-- name: delete_auto_reply(action_id)
-- The answer was not sent after all: the next message may be answered. The first recipient is the one who was answered.
DELETE FROM auto_replies WHERE action_id = :action_id AND (account_id, sender) IN (
    SELECT m.account_id, r.address FROM outbound_mail m JOIN outbound_recipients r ON r.mail_id = m.id AND r.position = 0
    WHERE m.action_id = :action_id
)

-- name: select_due_mail(now)
SELECT 1 FROM outbound_mail
WHERE (state IN ('queued', 'deferred') AND NOT ready AND not_before <= :now) OR (state = 'sending' AND lease_until <= :now) LIMIT 1

-- name: return_expired_mail(now)
-- Its holder has died, or is presumed dead.
UPDATE outbound_mail SET state = 'queued', lease_token = NULL, lease_until = NULL, updated_at = :now
WHERE state = 'sending' AND lease_until <= :now RETURNING id

-- name: select_in_delivery(slow_since)
-- Mail that all processes have in delivery, by lane and tenant, and how much of it its destinations keep waiting.
SELECT COALESCE(m.leased_lane, s.queue_lane) AS lane, d.tenant_id, count(*) AS mails,
    sum(CASE WHEN m.account_id IS NULL AND m.leased_at <= :slow_since THEN 1 ELSE 0 END) AS slow
FROM outbound_mail m JOIN senders s ON s.id = m.sender_id JOIN sender_domains d ON d.id = s.domain_id
WHERE m.state = 'sending' AND m.lease_until IS NOT NULL GROUP BY 1, 2

-- name: lease_recipients(lease_token, lease_until, now)
UPDATE outbound_recipients SET state = 'sending', attempts = attempts + 1, updated_at = :now
WHERE state IN ('queued', 'deferred') AND not_before <= :now AND mail_id IN (
    SELECT id FROM outbound_mail
    WHERE state = 'sending' AND lease_until = :lease_until AND lease_token = :lease_token
)

-- name: select_leased_mail(lease_token, lease_until)
SELECT m.id, m.seq, sd.tenant_id, m.sender_id, s.queue_lane AS sender_lane, m.leases, m.account_id, m.action_id, m.thread_id, d.draft_id, d.provider_message_id AS draft_message_id,
    (SELECT max(r.attempts) FROM outbound_recipients r WHERE r.mail_id = m.id) AS attempts,
    m.admitted_at, m.asked_at, a.state AS account_state
FROM outbound_mail m LEFT JOIN accounts a ON a.id = m.account_id LEFT JOIN outbound_drafts d ON d.mail_id = m.id
    JOIN senders s ON s.id = m.sender_id JOIN sender_domains sd ON sd.id = s.domain_id
WHERE m.state = 'sending' AND m.lease_until = :lease_until AND m.lease_token = :lease_token ORDER BY m.not_before, m.id

-- name: renew_mail_lease(id, lease_token, lease_until, now)
UPDATE outbound_mail SET lease_until = :lease_until, updated_at = :now
WHERE id = :id AND lease_token = :lease_token AND state = 'sending' RETURNING account_id, action_id, cancel_requested

-- name: return_mail(id, lease_token, now)
UPDATE outbound_mail SET state = 'queued', lease_token = NULL, lease_until = NULL, updated_at = :now
WHERE id = :id AND lease_token = :lease_token AND state = 'sending' RETURNING action_id

-- name: end_sending(id, lease_token, state, not_before, sent_message_id, error, ended_at, now)
UPDATE outbound_mail SET state = :state, lease_token = NULL, lease_until = NULL,
    not_before = COALESCE(:not_before, not_before), sent_message_id = :sent_message_id, error = :error,
    ended_at = :ended_at, updated_at = :now
WHERE id = :id AND lease_token = :lease_token AND state = 'sending' RETURNING action_id

-- name: end_waiting_mail(id, state, sent_message_id, error, now)
UPDATE outbound_mail SET state = :state, sent_message_id = :sent_message_id, error = :error, ended_at = :now,
    updated_at = :now
WHERE id = :id AND state IN ('queued', 'deferred', 'unknown')

-- name: move_recipients(mail_id, state, not_before, last_reply, now)
-- A mailbox sends to all recipients at once: those that have not ended share what becomes of their mail.
UPDATE outbound_recipients SET state = :state, not_before = COALESCE(:not_before, not_before),
    last_reply = CASE WHEN :state <> 'sent' THEN COALESCE(:last_reply, last_reply) END, updated_at = :now
WHERE mail_id = :mail_id AND state IN ('queued', 'sending', 'deferred', 'unknown')

-- name: queue_unknown_mail(id, now)
-- Its draft is gone, and its time begins again. It was tried before, and that is not forgotten: the next attempt looks
-- through drafts and sent mail, back to when it was asked for, before it makes a new draft.
UPDATE outbound_mail SET state = 'queued', error = NULL, not_before = :now, admitted_at = :now, updated_at = :now
WHERE id = :id AND state = 'unknown';
UPDATE outbound_recipients SET state = 'queued', attempts = 1, last_reply = NULL, not_before = :now, updated_at = :now
WHERE mail_id = :id AND state = 'unknown';
DELETE FROM outbound_drafts WHERE mail_id = :id

-- name: request_mail_cancel(id)
UPDATE outbound_mail SET cancel_requested = true WHERE id = :id

-- name: hasten_mail(id, now)
-- Mail that was to leave later: the time within which it is tried begins now.
UPDATE outbound_mail SET not_before = :now, admitted_at = CASE WHEN admitted_at > :now THEN :now ELSE admitted_at END, updated_at = :now
WHERE id = :id AND state IN ('queued', 'deferred');
UPDATE outbound_recipients SET not_before = :now, updated_at = :now
WHERE mail_id = :id AND state IN ('queued', 'deferred')

-- name: hasten_mail_of_account(account_id, now)
-- What waited while the account could not be used.
UPDATE outbound_mail SET not_before = :now, updated_at = :now
WHERE account_id = :account_id AND state IN ('queued', 'sending', 'deferred', 'unknown')
    AND state IN ('queued', 'deferred') AND not_before > :now;
UPDATE outbound_recipients SET not_before = :now, updated_at = :now
WHERE state IN ('queued', 'deferred') AND not_before > :now AND mail_id IN (
    SELECT id FROM outbound_mail
    WHERE account_id = :account_id AND state IN ('queued', 'sending', 'deferred', 'unknown')
)

-- name: note_on_action(id, note, now)
UPDATE actions SET error = :note, updated_at = :now WHERE id = :id AND state = 'executing'

-- name: select_sent_mail(since, after, most)
SELECT m.seq, m.asked_at, d.tenant_id, s.domain_id, s.id, t.weight, d.weight, s.weight, s.queue_lane,
    (SELECT count(*) FROM outbound_recipients r WHERE r.mail_id = m.id) AS recipients, m.message_class
FROM outbound_mail m JOIN senders s ON s.id = m.sender_id JOIN sender_domains d ON d.id = s.domain_id
    JOIN tenants t ON t.id = d.tenant_id
WHERE m.seq > :after AND m.asked_at >= :since ORDER BY m.seq LIMIT :most

-- name: select_next_mail()
SELECT min(due) FROM (
    SELECT min(not_before) AS due FROM outbound_mail WHERE state IN ('queued', 'deferred') AND NOT ready
    UNION ALL SELECT min(lease_until) FROM outbound_mail WHERE state = 'sending'
    UNION ALL SELECT min(throttled_until) FROM senders WHERE throttled_until IS NOT NULL AND queue_held AND state = 'active'
) AS times

-- name: lock_mail(id)
SELECT state, action_id FROM outbound_mail WHERE id = :id {FOR UPDATE}

-- name: select_outbound_mail(id, state, most)
SELECT m.id, m.account_id, m.username, a.email AS account, a.state AS account_state, m.action_id, m.kind, m.subject, m.state,
    m.not_before, d.draft_id, m.sent_message_id, m.error, m.asked_at AS created_at, m.updated_at, m.ended_at,
    (SELECT {addresses} FROM outbound_recipients r WHERE r.mail_id = m.id) AS recipients_json,
    (SELECT max(r.attempts) FROM outbound_recipients r WHERE r.mail_id = m.id) AS attempts,
    (SELECT p.reason FROM pauses p WHERE p.scope IN ('all', CAST(m.account_id AS text)) ORDER BY p.scope DESC LIMIT 1) AS paused
FROM outbound_mail m LEFT JOIN accounts a ON a.id = m.account_id LEFT JOIN outbound_drafts d ON d.mail_id = m.id
WHERE (CAST(:id AS text) IS NULL OR CAST(m.id AS text) = CAST(:id AS text))
    AND (CAST(:state AS text) IS NULL OR m.state = :state)
ORDER BY m.asked_at DESC, m.id DESC LIMIT :most

-- name: insert_outbound_mail(id, tenant, domain, username, sender_id, message_class, envelope_sender, kind, subject, account_id, thread_id, source_key, action_id, require_tls, smtputf8, body_8bit, envelope_id, return_full, message_id, ready, not_before, now)
INSERT INTO outbound_mail (seq, id, tenant, domain, username, sender_id, message_class, envelope_sender, kind, subject, account_id,
    thread_id, source_key, action_id, require_tls, smtputf8, body_8bit, envelope_id, return_full, message_id, state, ready, not_before, asked_at, admitted_at, updated_at)
VALUES ({next_seq}, :id, :tenant, :domain, :username, :sender_id, :message_class, :envelope_sender, :kind, :subject, :account_id,
    :thread_id, :source_key, :action_id, :require_tls, :smtputf8, :body_8bit, :envelope_id, :return_full, :message_id, 'queued', :ready, :not_before,
    COALESCE((SELECT created_at FROM actions WHERE id = :action_id), :now), {admitted_at}, :now)
RETURNING seq
