-- name: select_labels(account_id)
SELECT provider_label_id, name, kind, description, available_to_classifier FROM labels
WHERE account_id = :account_id ORDER BY name, provider_label_id

-- name: select_provider(account_id)
SELECT provider FROM accounts WHERE id = :account_id

-- name: select_label_words()
SELECT DISTINCT provider_label_id, name FROM labels

-- name: select_all_labels()
SELECT l.account_id, a.email AS account, l.provider_label_id, l.name, l.kind, l.description, l.available_to_classifier
FROM labels l JOIN accounts a ON a.id = l.account_id ORDER BY l.name, a.email, l.provider_label_id

-- name: update_label(account_id, provider_label_id, description, available, now)
UPDATE labels SET description = :description, available_to_classifier = :available, updated_at = :now
WHERE account_id = :account_id AND provider_label_id = :provider_label_id

-- name: select_labels_seen(account_id)
SELECT provider_label_id, name, updated_at FROM labels WHERE account_id = :account_id

-- name: delete_labels(account_id, ids)
DELETE FROM labels WHERE account_id = :account_id AND provider_label_id {= ANY(:ids::text[])}

-- name: delete_lost_labels(account_id, words)
DELETE FROM lost_labels WHERE account_id = :account_id AND word {= ANY(:words::text[])}

-- name: select_lost_label(account_id, words)
SELECT reason, lost_at FROM lost_labels
WHERE account_id = :account_id AND word {= ANY(:words::text[])} ORDER BY lost_at DESC LIMIT 1

-- name: upsert_labels(account_id, rows, now)
INSERT INTO labels (account_id, provider_label_id, name, kind, created_at, updated_at)
SELECT :account_id, value ->> 0, value ->> 1, value ->> 2, :now, :now
FROM {jsonb_array_elements(:rows::jsonb)} AS e ORDER BY 2
ON CONFLICT (account_id, provider_label_id) DO UPDATE
SET name = excluded.name, kind = excluded.kind, updated_at = excluded.updated_at

-- name: select_messages_of(endpoint_identity, ids)
SELECT m.id, m.provider_message_id, m.labels_json, m.deleted_at, m.account_id FROM messages m
JOIN accounts a ON a.id = m.account_id
WHERE a.endpoint_identity = :endpoint_identity AND m.provider_message_id {= ANY(:ids::text[])}
{ORDER BY m.id FOR UPDATE OF m}

-- name: upsert_lost_labels(account_id, rows, now)
INSERT INTO lost_labels (account_id, word, reason, lost_at)
SELECT :account_id, value ->> 0, value ->> 1, :now FROM {jsonb_array_elements(:rows::jsonb)} AS e ORDER BY 2
ON CONFLICT (account_id, word) DO UPDATE SET reason = excluded.reason, lost_at = excluded.lost_at

-- name: select_unknown_labels(account_id, ids)
SELECT value FROM {unnest(:ids::text[])} AS value WHERE value NOT IN (
    SELECT provider_label_id FROM labels WHERE account_id = :account_id
)
