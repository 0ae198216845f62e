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
