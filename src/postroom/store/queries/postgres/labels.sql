-- name: upsert_labels(account_id, rows, now)
INSERT INTO labels (account_id, provider_label_id, name, kind, created_at, updated_at)
SELECT :account_id, e ->> 0, e ->> 1, e ->> 2, :now, :now FROM jsonb_array_elements(:rows::jsonb) AS e ORDER BY 2
ON CONFLICT (account_id, provider_label_id) DO UPDATE
SET name = excluded.name, kind = excluded.kind, updated_at = excluded.updated_at

-- name: select_messages_of(endpoint_identity, ids)
SELECT m.id, m.provider_message_id, m.labels_json, m.deleted_at, m.account_id FROM messages m
JOIN accounts a ON a.id = m.account_id
WHERE a.endpoint_identity = :endpoint_identity AND m.provider_message_id = ANY(:ids::text[])
ORDER BY m.id FOR UPDATE OF m

-- name: mark_message_returned(id, now)
UPDATE messages SET deleted_at = NULL, updated_at = :now WHERE id = :id

-- name: upsert_lost_labels(account_id, rows, now)
INSERT INTO lost_labels (account_id, word, reason, lost_at)
SELECT :account_id, e ->> 0, e ->> 1, :now FROM jsonb_array_elements(:rows::jsonb) AS e ORDER BY 2
ON CONFLICT (account_id, word) DO UPDATE SET reason = excluded.reason, lost_at = excluded.lost_at

-- name: select_unknown_labels(account_id, ids)
SELECT e FROM unnest(:ids::text[]) AS e WHERE e NOT IN (
    SELECT provider_label_id FROM labels WHERE account_id = :account_id
)
