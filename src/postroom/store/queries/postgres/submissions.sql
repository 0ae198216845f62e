-- name: insert_submissions(rows, now)
INSERT INTO outbound_mail (id, tenant, domain, username, sender_id, message_class, envelope_sender, kind, subject, state,
    ready, not_before, asked_at, admitted_at, updated_at)
SELECT (e ->> 0)::uuid, e ->> 1, e ->> 2, e ->> 3, (e ->> 4)::bigint, e ->> 5, e ->> 6, 'submitted', e ->> 7, 'queued',
    (e ->> 8)::boolean, (e ->> 9)::timestamptz, :now, :now, :now
FROM jsonb_array_elements(:rows::jsonb) WITH ORDINALITY AS r (e, place) ORDER BY place
RETURNING id, seq

-- name: insert_submitted_recipients(rows, now)
INSERT INTO outbound_recipients (mail_id, position, address, state, not_before, updated_at)
SELECT (e ->> 0)::uuid, (e ->> 1)::integer, e ->> 2, 'queued', (e ->> 3)::timestamptz, :now
FROM jsonb_array_elements(:rows::jsonb) AS e

-- name: insert_submitted_contents(rows, contents)
-- `contents` is all of them, one after another; each row says where its own begins, and how long it is.
INSERT INTO outbound_contents (mail_id, content)
SELECT (e ->> 0)::uuid, substr(:contents::bytea, (e ->> 1)::integer, (e ->> 2)::integer) FROM jsonb_array_elements(:rows::jsonb) AS e
