-- name: insert_submissions(rows, now)
INSERT INTO outbound_mail (seq, id, tenant, domain, username, sender_id, message_class, envelope_sender, kind, subject, state,
    ready, not_before, require_tls, smtputf8, body_8bit, envelope_id, return_full, message_id, asked_at, admitted_at, updated_at)
SELECT (SELECT COALESCE(max(seq), 0) + 1 FROM outbound_mail) + key, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
    value ->> 5, value ->> 6, 'submitted', value ->> 7, 'queued', value ->> 8, value ->> 9,
    value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15, :now, max(value ->> 9, :now), :now
FROM json_each(:rows) WHERE true ORDER BY key
RETURNING id, seq
