-- name: select_content_length(id)
SELECT m.tenant, length(c.content) FROM outbound_mail m JOIN outbound_contents c ON c.mail_id = m.id WHERE m.id = :id

-- name: select_recipient_states(mail_id)
SELECT state, not_before, last_reply FROM outbound_recipients WHERE mail_id = :mail_id ORDER BY position

-- name: select_destination_pauses()
SELECT destination, reason, paused_by, created_at FROM destination_pauses ORDER BY destination

-- name: upsert_destination_pause(destination, reason, paused_by, now)
INSERT INTO destination_pauses (destination, reason, paused_by, created_at) VALUES (:destination, :reason, :paused_by, :now)
ON CONFLICT (destination) DO UPDATE SET reason = excluded.reason, paused_by = excluded.paused_by

-- name: delete_destination_pause(destination)
DELETE FROM destination_pauses WHERE destination = :destination RETURNING reason

-- name: doubt_leaving(mail_id, reason, now)
-- Its content was leaving when its holder died, or was stopped.
UPDATE outbound_recipients SET state = 'unknown', leaving_at = NULL, last_reply = :reason, enhanced = NULL, bounce_class = NULL,
    updated_at = :now
WHERE mail_id = :mail_id AND state = 'sending' AND leaving_at IS NOT NULL RETURNING position

-- name: return_recipients(mail_id, now)
UPDATE outbound_recipients SET state = 'queued', updated_at = :now WHERE mail_id = :mail_id AND state = 'sending'

-- name: doubt_returned_mail(id, error, now)
UPDATE outbound_mail SET state = 'unknown', error = :error, updated_at = :now WHERE id = :id AND state = 'queued'

-- name: correct_mail_state(id, state)
UPDATE outbound_mail SET state = :state WHERE id = :id AND ended_at IS NOT NULL

-- name: select_unknown_mail(since, most)
SELECT m.id, m.admitted_at, max(r.attempts) AS attempts FROM outbound_recipients r JOIN outbound_mail m ON m.id = r.mail_id
WHERE r.state = 'unknown' AND m.account_id IS NULL AND m.state IN ('unknown', 'queued', 'deferred') AND m.admitted_at > :since
GROUP BY m.id, m.admitted_at ORDER BY m.id LIMIT :most

-- name: queue_unknown_recipients(id, note, not_before, now)
UPDATE outbound_recipients SET state = 'queued', last_reply = :note, not_before = :not_before, updated_at = :now
WHERE mail_id = :id AND state = 'unknown';
UPDATE outbound_mail SET state = 'queued', error = NULL, not_before = :not_before, updated_at = :now WHERE id = :id AND state = 'unknown';
UPDATE outbound_mail SET not_before = :not_before
WHERE id = :id AND state IN ('queued', 'deferred') AND NOT ready AND not_before > :not_before

-- name: settle_unknown_recipients(id, state, now)
UPDATE outbound_recipients SET state = :state, updated_at = :now WHERE mail_id = :id AND state = 'unknown' RETURNING position

-- name: select_open_smtp_mail()
SELECT id FROM outbound_mail WHERE account_id IS NULL AND state IN ('queued', 'sending', 'deferred', 'unknown')

-- name: doubt_restored_mail(id, reason, now)
UPDATE outbound_mail SET state = 'unknown', lease_token = NULL, lease_until = NULL, error = :reason, updated_at = :now
WHERE id = :id AND state IN ('queued', 'sending', 'deferred');
UPDATE outbound_recipients SET state = 'unknown', leaving_at = NULL, last_reply = :reason, updated_at = :now
WHERE mail_id = :id AND state IN ('queued', 'sending', 'deferred')

-- name: select_recipient_results(mail_id)
SELECT position, address, state, attempts, not_before, last_reply, enhanced, bounce_class FROM outbound_recipients
WHERE mail_id = :mail_id ORDER BY position

-- name: select_unknown_recipients(mail_id)
SELECT position FROM outbound_recipients WHERE mail_id = :mail_id AND state = 'unknown'

-- name: correct_recipient(mail_id, position, state, last_reply, enhanced, bounce_class, now)
UPDATE outbound_recipients SET state = :state, last_reply = :last_reply, enhanced = :enhanced, bounce_class = :bounce_class,
    updated_at = :now
WHERE mail_id = :mail_id AND position = :position AND state IN ('sent', 'unknown')

-- name: note_complaint(mail_id, position, now)
UPDATE outbound_recipients SET complained_at = :now
WHERE mail_id = :mail_id AND position = :position AND complained_at IS NULL RETURNING position

-- name: select_mail_action(id)
SELECT action_id FROM outbound_mail WHERE id = :id

-- name: select_attempts(mail_id, most)
SELECT r.address, a.number, a.outcome, a.started_at, a.ended_at, a.times, a.host, a.tls, a.reply
FROM outbound_attempts a JOIN outbound_recipients r ON r.mail_id = a.mail_id AND r.position = a.position
WHERE a.mail_id = :mail_id ORDER BY a.ended_at DESC, a.position DESC, a.number DESC LIMIT :most

-- name: insert_doubtful_attempts(mail_id, reply, now)
INSERT INTO outbound_attempts (mail_id, position, number, outcome, started_at, ended_at, reply)
SELECT r.mail_id, r.position, r.attempts, 'unknown', COALESCE(m.leased_at, m.updated_at), :now, :reply
FROM outbound_recipients r JOIN outbound_mail m ON m.id = r.mail_id
WHERE r.mail_id = :mail_id AND r.state = 'sending' AND r.leaving_at IS NOT NULL
ON CONFLICT (mail_id, position, number, outcome)
DO UPDATE SET times = outbound_attempts.times + 1, ended_at = excluded.ended_at, reply = excluded.reply

-- name: insert_mailbox_attempts(mail_id, outcome, reply, now)
-- A mailbox sends to all recipients at once.
INSERT INTO outbound_attempts (mail_id, position, number, outcome, started_at, ended_at, reply)
SELECT r.mail_id, r.position, r.attempts, :outcome, COALESCE(m.leased_at, m.updated_at), :now, :reply
FROM outbound_recipients r JOIN outbound_mail m ON m.id = r.mail_id WHERE r.mail_id = :mail_id AND r.state = 'sending'
ON CONFLICT (mail_id, position, number, outcome)
DO UPDATE SET times = outbound_attempts.times + 1, ended_at = excluded.ended_at, reply = excluded.reply

