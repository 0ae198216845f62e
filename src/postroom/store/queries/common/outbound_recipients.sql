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

-- part: again
ON CONFLICT (mail_id, position, number, outcome)
DO UPDATE SET times = outbound_attempts.times + 1, ended_at = excluded.ended_at, reply = excluded.reply

-- name: insert_doubtful_attempts(mail_id, reply, now)
INSERT INTO outbound_attempts (mail_id, position, number, outcome, started_at, ended_at, reply)
SELECT r.mail_id, r.position, r.attempts, 'unknown', COALESCE(m.leased_at, m.updated_at), :now, :reply
FROM outbound_recipients r JOIN outbound_mail m ON m.id = r.mail_id
WHERE r.mail_id = :mail_id AND r.state = 'sending' AND r.leaving_at IS NOT NULL
{again}

-- name: insert_mailbox_attempts(mail_id, outcome, reply, now)
-- A mailbox sends to all recipients at once.
INSERT INTO outbound_attempts (mail_id, position, number, outcome, started_at, ended_at, reply)
SELECT r.mail_id, r.position, r.attempts, :outcome, COALESCE(m.leased_at, m.updated_at), :now, :reply
FROM outbound_recipients r JOIN outbound_mail m ON m.id = r.mail_id WHERE r.mail_id = :mail_id AND r.state = 'sending'
{again}

-- name: select_outgoing_mail(ids, longest)
SELECT m.id, m.lease_token, m.tenant, m.sender_id, m.envelope_sender, m.message_class, m.require_tls, m.smtputf8, m.body_8bit, m.envelope_id,
    m.return_full, m.admitted_at, c.content
FROM outbound_mail m JOIN outbound_contents c ON c.mail_id = m.id
WHERE m.id {= ANY(:ids::uuid[])} AND m.state = 'sending' AND (:longest{::bigint} IS NULL OR length(c.content) <= :longest{::bigint})

-- name: select_leased_recipients(mail_ids)
SELECT mail_id, position, address, attempts, notify, original, delay_reported, last_reply FROM outbound_recipients
WHERE mail_id {= ANY(:mail_ids::uuid[])} AND state = 'sending' ORDER BY mail_id, position

-- name: select_paused_tenants(mail_ids)
-- Mails whose tenant is paused.
SELECT m.id, t.name, t.state_reason FROM outbound_mail m JOIN senders s ON s.id = m.sender_id JOIN sender_domains d ON d.id = s.domain_id
    JOIN tenants t ON t.id = d.tenant_id
WHERE m.id {= ANY(:mail_ids::uuid[])} AND t.state = 'paused'

-- name: renew_mail_leases(ids, lease_until, now)
-- In the order of their ids, whatever the plan is, so that two writers cannot deadlock.
UPDATE outbound_mail SET lease_until = :lease_until, updated_at = :now WHERE id IN (
    SELECT id FROM outbound_mail WHERE id {= ANY(:ids::uuid[])} AND state = 'sending' {ORDER BY id FOR NO KEY UPDATE}
)
RETURNING id, lease_token, cancel_requested

-- name: lock_sending_mails(ids, now)
UPDATE outbound_mail SET updated_at = :now WHERE id IN (
    SELECT id FROM outbound_mail WHERE id {= ANY(:ids::uuid[])} AND state = 'sending' {ORDER BY id FOR NO KEY UPDATE}
)
RETURNING id, lease_token, action_id, cancel_requested, sender_id, tenant, discipline, admitted_at,
    (SELECT s.queue_lane FROM senders s WHERE s.id = outbound_mail.sender_id) AS lane

-- name: select_states_of_mails(mail_ids)
SELECT mail_id, state, not_before, last_reply FROM outbound_recipients WHERE mail_id {= ANY(:mail_ids::uuid[])} ORDER BY mail_id, position

-- name: delete_outbound_contents(mail_ids)
DELETE FROM outbound_contents WHERE mail_id {= ANY(:mail_ids::uuid[])}

-- name: select_suppressed(tenants, addresses, now)
SELECT tenant, address, cause, detail FROM suppressions WHERE tenant {= ANY(:tenants::text[])} AND address {= ANY(:addresses::text[])}
    AND (expires_at IS NULL OR expires_at > :now)

-- name: select_struck(tenants, addresses)
SELECT DISTINCT tenant, address FROM strikes WHERE tenant {= ANY(:tenants::text[])} AND address {= ANY(:addresses::text[])}

-- name: insert_attempts(rows, now)
INSERT INTO outbound_attempts (mail_id, position, number, outcome, started_at, ended_at, host, tls, reply)
SELECT r.mail_id, r.position, r.attempts + (value ->> 2){::bigint}, value ->> 3, COALESCE(m.leased_at, :now{::timestamptz}), :now{::timestamptz},
    value ->> 4, value ->> 5, value ->> 6
FROM {jsonb_array_elements(:rows::jsonb)} AS e
    JOIN outbound_recipients r ON r.mail_id = (value ->> 0){::uuid} AND r.position = (value ->> 1){::bigint}
    JOIN outbound_mail m ON m.id = r.mail_id WHERE true
{again}

-- part: marked_mail
SELECT id, tenant, sender_id, state, account_id, envelope_sender FROM outbound_mail

-- name: lock_marked_mail(id)
{marked_mail} WHERE id = :id AND sender_id IS NOT NULL {FOR UPDATE}

-- name: lock_mail_of_message(message_id, most)
{marked_mail} WHERE message_id = :message_id AND sender_id IS NOT NULL ORDER BY id LIMIT :most {FOR UPDATE}

-- name: select_mail_ids(states, tenant, domain, since, until, most)
-- Mail that people settle together: of a tenant, with a recipient at a domain, asked for in a span of time.
SELECT m.id FROM outbound_mail m
WHERE m.state {= ANY(:states::text[])} AND (:tenant{::text} IS NULL OR m.tenant = :tenant)
    AND (:since{::timestamptz} IS NULL OR m.asked_at >= :since) AND (:until{::timestamptz} IS NULL OR m.asked_at < :until)
    AND (:domain{::text} IS NULL OR EXISTS (
        SELECT 1 FROM outbound_recipients r WHERE r.mail_id = m.id AND lower(r.address) LIKE '%@' || :domain{::text} ESCAPE '\'))
ORDER BY m.seq LIMIT :most

-- name: mark_leaving(rows, now)
UPDATE outbound_recipients AS r SET leaving_at = :now FROM {jsonb_array_elements(:rows::jsonb)} AS e
WHERE {of_recipients} AND r.position = (value ->> 1){::bigint} AND r.state = 'sending'

-- name: record_recipients(rows, now)
UPDATE outbound_recipients AS r SET state = value ->> 2, attempts = r.attempts - (value ->> 3){::bigint},
    not_before = COALESCE((value ->> 4){::timestamptz}, r.not_before), last_reply = value ->> 5, enhanced = value ->> 6,
    bounce_class = value ->> 7, delay_reported = r.delay_reported OR (value ->> 8){::boolean}, leaving_at = NULL, updated_at = :now
FROM {jsonb_array_elements(:rows::jsonb)} AS e
WHERE {of_recipients} AND r.position = (value ->> 1){::bigint} AND r.state = 'sending'

-- name: end_sendings(rows, now)
UPDATE outbound_mail AS m SET state = value ->> 1, lease_token = NULL, lease_until = NULL,
    not_before = COALESCE((value ->> 2){::timestamptz}, m.not_before), sent_message_id = NULL, error = value ->> 3,
    ended_at = (value ->> 4){::timestamptz}, updated_at = :now
FROM {jsonb_array_elements(:rows::jsonb)} AS e WHERE {of_mails} AND m.state = 'sending'
