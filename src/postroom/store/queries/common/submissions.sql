-- name: insert_submission_key(sender_id, idempotency_key, request_sha256, mail_id)
INSERT INTO submission_keys (sender_id, idempotency_key, request_sha256, mail_id)
VALUES (:sender_id, :idempotency_key, :request_sha256, :mail_id)
ON CONFLICT (sender_id, idempotency_key) DO NOTHING RETURNING sender_id

-- name: select_submission_key(sender_id, idempotency_key)
SELECT mail_id, request_sha256 FROM submission_keys WHERE sender_id = :sender_id AND idempotency_key = :idempotency_key

-- name: delete_submission_key(mail_id)
DELETE FROM submission_keys WHERE mail_id = :mail_id

-- name: select_submission(sender_id, id)
SELECT id, state, subject, message_class, not_before, error, asked_at AS created_at, ended_at FROM outbound_mail
WHERE id = :id AND sender_id = :sender_id AND kind = 'submitted'

-- name: insert_submitted_recipients(rows, now)
INSERT INTO outbound_recipients (mail_id, position, address, state, not_before, notify, original, updated_at)
SELECT (value ->> 0){::uuid}, (value ->> 1){::integer}, value ->> 2, 'queued', (value ->> 3){::timestamptz}, value ->> 4, value ->> 5, :now
FROM {jsonb_array_elements(:rows::jsonb)} AS e

-- name: insert_submitted_contents(rows, contents)
-- `contents` is all of them, one after another; each row says where its own begins, and how long it is.
INSERT INTO outbound_contents (mail_id, content)
SELECT (value ->> 0){::uuid}, substr(:contents{::bytea}, (value ->> 1){::integer}, (value ->> 2){::integer}) FROM {jsonb_array_elements(:rows::jsonb)} AS e
