-- name: select_outgoing_mail(ids, longest)
SELECT m.id, m.lease_token, m.tenant, m.sender_id, m.envelope_sender, m.message_class, m.require_tls, m.smtputf8, m.body_8bit, m.envelope_id,
    m.return_full, m.admitted_at, c.content
FROM outbound_mail m JOIN outbound_contents c ON c.mail_id = m.id
WHERE m.id IN (SELECT value FROM json_each(:ids)) AND m.state = 'sending' AND (:longest IS NULL OR length(c.content) <= :longest)

-- name: select_leased_recipients(mail_ids)
SELECT mail_id, position, address, attempts, notify, original, delay_reported, last_reply FROM outbound_recipients
WHERE mail_id IN (SELECT value FROM json_each(:mail_ids)) AND state = 'sending' ORDER BY mail_id, position

-- name: select_paused_tenants(mail_ids)
-- Mails whose tenant is paused.
SELECT m.id, t.name, t.state_reason FROM outbound_mail m JOIN senders s ON s.id = m.sender_id JOIN sender_domains d ON d.id = s.domain_id
    JOIN tenants t ON t.id = d.tenant_id
WHERE m.id IN (SELECT value FROM json_each(:mail_ids)) AND t.state = 'paused'

-- name: renew_mail_leases(ids, lease_until, now)
UPDATE outbound_mail SET lease_until = :lease_until, updated_at = :now WHERE id IN (SELECT value FROM json_each(:ids)) AND state = 'sending'
RETURNING id, lease_token, cancel_requested

-- name: lock_sending_mails(ids, now)
UPDATE outbound_mail SET updated_at = :now WHERE id IN (SELECT value FROM json_each(:ids)) AND state = 'sending'
RETURNING id, lease_token, action_id, cancel_requested, sender_id, tenant, discipline, admitted_at,
    (SELECT s.queue_lane FROM senders s WHERE s.id = outbound_mail.sender_id) AS lane

-- name: select_states_of_mails(mail_ids)
SELECT mail_id, state, not_before, last_reply FROM outbound_recipients WHERE mail_id IN (SELECT value FROM json_each(:mail_ids)) ORDER BY mail_id, position

-- name: delete_outbound_contents(mail_ids)
DELETE FROM outbound_contents WHERE mail_id IN (SELECT value FROM json_each(:mail_ids))

-- name: select_suppressed(tenants, addresses, now)
SELECT tenant, address, cause, detail FROM suppressions
WHERE tenant IN (SELECT value FROM json_each(:tenants)) AND address IN (SELECT value FROM json_each(:addresses))
    AND (expires_at IS NULL OR expires_at > :now)

-- name: select_struck(tenants, addresses)
SELECT DISTINCT tenant, address FROM strikes
WHERE tenant IN (SELECT value FROM json_each(:tenants)) AND address IN (SELECT value FROM json_each(:addresses))

-- name: mark_leaving(rows, now)
UPDATE outbound_recipients SET leaving_at = :now FROM json_each(:rows) AS e
WHERE outbound_recipients.mail_id = e.value ->> 0 AND outbound_recipients.position = e.value ->> 1 AND outbound_recipients.state = 'sending'

-- name: record_recipients(rows, now)
UPDATE outbound_recipients SET state = e.value ->> 2, attempts = attempts - (e.value ->> 3),
    not_before = COALESCE(e.value ->> 4, not_before), last_reply = e.value ->> 5, enhanced = e.value ->> 6,
    bounce_class = e.value ->> 7, delay_reported = delay_reported OR (e.value ->> 8), leaving_at = NULL, updated_at = :now
FROM json_each(:rows) AS e
WHERE outbound_recipients.mail_id = e.value ->> 0 AND outbound_recipients.position = e.value ->> 1 AND outbound_recipients.state = 'sending'

-- name: insert_attempts(rows, now)
INSERT INTO outbound_attempts (mail_id, position, number, outcome, started_at, ended_at, host, tls, reply)
SELECT r.mail_id, r.position, r.attempts + (e.value ->> 2), e.value ->> 3, COALESCE(m.leased_at, :now), :now,
    e.value ->> 4, e.value ->> 5, e.value ->> 6
FROM json_each(:rows) AS e JOIN outbound_recipients r ON r.mail_id = e.value ->> 0 AND r.position = e.value ->> 1
    JOIN outbound_mail m ON m.id = r.mail_id WHERE true
ON CONFLICT (mail_id, position, number, outcome)
DO UPDATE SET times = outbound_attempts.times + 1, ended_at = excluded.ended_at, reply = excluded.reply

-- name: end_sendings(rows, now)
UPDATE outbound_mail SET state = e.value ->> 1, lease_token = NULL, lease_until = NULL,
    not_before = COALESCE(e.value ->> 2, not_before), sent_message_id = NULL, error = e.value ->> 3,
    ended_at = e.value ->> 4, updated_at = :now
FROM json_each(:rows) AS e WHERE outbound_mail.id = e.value ->> 0 AND outbound_mail.state = 'sending'

-- name: lock_marked_mail(id)
SELECT id, tenant, sender_id, state, account_id, envelope_sender FROM outbound_mail
WHERE id = :id AND sender_id IS NOT NULL

-- name: lock_mail_of_message(message_id, most)
SELECT id, tenant, sender_id, state, account_id, envelope_sender FROM outbound_mail
WHERE message_id = :message_id AND sender_id IS NOT NULL ORDER BY id LIMIT :most

-- name: select_mail_ids(states, tenant, domain, since, until, most)
-- Mail that people settle together: of a tenant, with a recipient at a domain, asked for in a span of time.
SELECT m.id FROM outbound_mail m
WHERE m.state IN (SELECT value FROM json_each(:states)) AND (:tenant IS NULL OR m.tenant = :tenant)
    AND (:since IS NULL OR m.asked_at >= :since) AND (:until IS NULL OR m.asked_at < :until)
    AND (:domain IS NULL OR EXISTS (
        SELECT 1 FROM outbound_recipients r WHERE r.mail_id = m.id AND lower(r.address) LIKE '%@' || :domain ESCAPE '\'))
ORDER BY m.seq LIMIT :most
