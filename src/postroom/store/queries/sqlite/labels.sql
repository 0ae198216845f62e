-- name: upsert_labels(account_id, rows, now)
INSERT INTO labels (account_id, provider_label_id, name, kind, created_at, updated_at)
SELECT :account_id, value ->> 0, value ->> 1, value ->> 2, :now, :now FROM json_each(:rows) WHERE true
ON CONFLICT (account_id, provider_label_id) DO UPDATE
SET name = excluded.name, kind = excluded.kind, updated_at = excluded.updated_at

-- name: delete_labels(account_id, ids)
DELETE FROM labels WHERE account_id = :account_id AND provider_label_id IN (SELECT value FROM json_each(:ids))

-- name: select_messages_of(endpoint_identity, ids)
SELECT m.id, m.provider_message_id, m.labels_json, m.deleted_at FROM messages m
JOIN accounts a ON a.id = m.account_id
WHERE a.endpoint_identity = :endpoint_identity
    AND m.provider_message_id IN (SELECT value FROM json_each(:ids))
