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

-- name: select_suppressed(tenants, addresses)
SELECT tenant, address, cause, detail FROM suppressions
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
