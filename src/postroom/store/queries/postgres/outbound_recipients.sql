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
