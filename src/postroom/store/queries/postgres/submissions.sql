-- name: insert_submissions(rows, now)
INSERT INTO outbound_mail (id, tenant, domain, username, sender_id, message_class, envelope_sender, kind, subject, state,
    ready, not_before, require_tls, smtputf8, body_8bit, envelope_id, return_full, message_id, asked_at, admitted_at, updated_at)
SELECT (e ->> 0)::uuid, e ->> 1, e ->> 2, e ->> 3, (e ->> 4)::bigint, e ->> 5, e ->> 6, 'submitted', e ->> 7, 'queued',
    (e ->> 8)::boolean, (e ->> 9)::timestamptz, (e ->> 10)::boolean, (e ->> 11)::boolean, (e ->> 12)::boolean, e ->> 13,
    (e ->> 14)::boolean, e ->> 15, :now, GREATEST((e ->> 9)::timestamptz, :now), :now
FROM jsonb_array_elements(:rows::jsonb) WITH ORDINALITY AS r (e, place) ORDER BY place
RETURNING id, seq
