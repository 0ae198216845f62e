-- name: mark_leaving(mail_id, positions, now)
UPDATE outbound_recipients SET leaving_at = :now
WHERE mail_id = :mail_id AND state = 'sending' AND position = ANY(:positions::bigint[]) RETURNING address

-- name: record_recipients(mail_id, rows, now)
UPDATE outbound_recipients r SET state = e ->> 1, attempts = attempts - (e ->> 2)::bigint,
    not_before = COALESCE((e ->> 3)::timestamptz, r.not_before), last_reply = e ->> 4, enhanced = e ->> 5, bounce_class = e ->> 6,
    delay_reported = r.delay_reported OR (e ->> 7)::boolean, leaving_at = NULL, updated_at = :now
FROM jsonb_array_elements(:rows::jsonb) AS e
WHERE r.mail_id = :mail_id AND r.position = (e ->> 0)::bigint AND r.state = 'sending'

-- name: select_suppressed(tenant, addresses)
SELECT address, cause, detail FROM suppressions WHERE tenant = :tenant AND address = ANY(:addresses::text[])

-- name: lock_reported_mail(mark, message_id, most)
SELECT id, tenant, sender_id, state FROM outbound_mail
WHERE account_id IS NULL AND sender_id IS NOT NULL
    AND (CAST(id AS text) = CAST(:mark AS text) OR (CAST(:mark AS text) IS NULL AND message_id = :message_id))
ORDER BY id LIMIT :most FOR UPDATE
