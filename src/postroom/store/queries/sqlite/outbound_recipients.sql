-- name: mark_leaving(mail_id, positions, now)
UPDATE outbound_recipients SET leaving_at = :now
WHERE mail_id = :mail_id AND state = 'sending' AND position IN (SELECT value FROM json_each(:positions)) RETURNING address

-- name: record_recipients(mail_id, rows, now)
UPDATE outbound_recipients SET state = e.value ->> 1, attempts = attempts - (e.value ->> 2),
    not_before = COALESCE(e.value ->> 3, not_before), last_reply = e.value ->> 4, enhanced = e.value ->> 5,
    bounce_class = e.value ->> 6, delay_reported = delay_reported OR (e.value ->> 7), leaving_at = NULL, updated_at = :now
FROM json_each(:rows) AS e
WHERE outbound_recipients.mail_id = :mail_id AND outbound_recipients.position = e.value ->> 0 AND outbound_recipients.state = 'sending'

-- name: select_suppressed(tenant, addresses)
SELECT address, cause, detail FROM suppressions WHERE tenant = :tenant AND address IN (SELECT value FROM json_each(:addresses))

-- name: lock_reported_mail(mark, message_id, most)
SELECT id, tenant, sender_id, state FROM outbound_mail
WHERE account_id IS NULL AND sender_id IS NOT NULL
    AND (CAST(id AS text) = CAST(:mark AS text) OR (CAST(:mark AS text) IS NULL AND message_id = :message_id))
ORDER BY id LIMIT :most
