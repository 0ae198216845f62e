-- name: select_outgoing_mail(ids, longest)
SELECT m.id, m.lease_token, m.tenant, m.sender_id, m.envelope_sender, m.message_class, m.require_tls, m.smtputf8, m.body_8bit, m.envelope_id,
    m.return_full, m.admitted_at, c.content
FROM outbound_mail m JOIN outbound_contents c ON c.mail_id = m.id
WHERE m.id = ANY(:ids::uuid[]) AND m.state = 'sending' AND (:longest::bigint IS NULL OR length(c.content) <= :longest::bigint)

-- name: select_leased_recipients(mail_ids)
SELECT mail_id, position, address, attempts, notify, original, delay_reported, last_reply FROM outbound_recipients
WHERE mail_id = ANY(:mail_ids::uuid[]) AND state = 'sending' ORDER BY mail_id, position

-- name: select_paused_tenants(mail_ids)
-- Mails whose tenant is paused.
SELECT m.id, t.name, t.state_reason FROM outbound_mail m JOIN senders s ON s.id = m.sender_id JOIN sender_domains d ON d.id = s.domain_id
    JOIN tenants t ON t.id = d.tenant_id
WHERE m.id = ANY(:mail_ids::uuid[]) AND t.state = 'paused'

-- name: renew_mail_leases(ids, lease_until, now)
UPDATE outbound_mail SET lease_until = :lease_until, updated_at = :now WHERE id = ANY(:ids::uuid[]) AND state = 'sending'
RETURNING id, lease_token, cancel_requested

-- name: lock_sending_mails(ids, now)
UPDATE outbound_mail SET updated_at = :now WHERE id = ANY(:ids::uuid[]) AND state = 'sending'
RETURNING id, lease_token, action_id, cancel_requested, sender_id, tenant, discipline, admitted_at,
    (SELECT s.queue_lane FROM senders s WHERE s.id = outbound_mail.sender_id) AS lane

-- name: select_states_of_mails(mail_ids)
SELECT mail_id, state, not_before, last_reply FROM outbound_recipients WHERE mail_id = ANY(:mail_ids::uuid[]) ORDER BY mail_id, position

-- name: delete_outbound_contents(mail_ids)
DELETE FROM outbound_contents WHERE mail_id = ANY(:mail_ids::uuid[])

-- name: select_suppressed(tenants, addresses)
SELECT tenant, address, cause, detail FROM suppressions WHERE tenant = ANY(:tenants::text[]) AND address = ANY(:addresses::text[])

-- name: mark_leaving(rows, now)
-- The ids as an array too: a plan made while the table is small must be right when it has grown.
UPDATE outbound_recipients r SET leaving_at = :now FROM jsonb_array_elements(:rows::jsonb) AS e
WHERE r.mail_id = ANY(ARRAY(SELECT (x ->> 0)::uuid FROM jsonb_array_elements(:rows::jsonb) AS x)) AND r.mail_id = (e ->> 0)::uuid AND r.position = (e ->> 1)::bigint AND r.state = 'sending'

-- name: record_recipients(rows, now)
UPDATE outbound_recipients r SET state = e ->> 2, attempts = attempts - (e ->> 3)::bigint,
    not_before = COALESCE((e ->> 4)::timestamptz, r.not_before), last_reply = e ->> 5, enhanced = e ->> 6, bounce_class = e ->> 7,
    delay_reported = r.delay_reported OR (e ->> 8)::boolean, leaving_at = NULL, updated_at = :now
FROM jsonb_array_elements(:rows::jsonb) AS e
WHERE r.mail_id = ANY(ARRAY(SELECT (x ->> 0)::uuid FROM jsonb_array_elements(:rows::jsonb) AS x)) AND r.mail_id = (e ->> 0)::uuid AND r.position = (e ->> 1)::bigint AND r.state = 'sending'

-- name: end_sendings(rows, now)
UPDATE outbound_mail m SET state = e ->> 1, lease_token = NULL, lease_until = NULL,
    not_before = COALESCE((e ->> 2)::timestamptz, m.not_before), sent_message_id = NULL, error = e ->> 3,
    ended_at = (e ->> 4)::timestamptz, updated_at = :now
FROM jsonb_array_elements(:rows::jsonb) AS e
WHERE m.id = ANY(ARRAY(SELECT (x ->> 0)::uuid FROM jsonb_array_elements(:rows::jsonb) AS x)) AND m.id = (e ->> 0)::uuid AND m.state = 'sending'

-- name: lock_marked_mail(id)
SELECT id, tenant, sender_id, state, account_id, envelope_sender FROM outbound_mail
WHERE id = :id AND sender_id IS NOT NULL FOR UPDATE

-- name: lock_mail_of_message(message_id, most)
SELECT id, tenant, sender_id, state, account_id, envelope_sender FROM outbound_mail
WHERE message_id = :message_id AND sender_id IS NOT NULL ORDER BY id LIMIT :most FOR UPDATE
