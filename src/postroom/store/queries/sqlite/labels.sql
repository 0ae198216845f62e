-- name: upsert_labels(account_id, rows, now)
INSERT INTO labels (account_id, provider_label_id, name, kind, created_at, updated_at)
SELECT :account_id, value ->> 0, value ->> 1, value ->> 2, :now, :now FROM json_each(:rows) WHERE true
ON CONFLICT (account_id, provider_label_id) DO UPDATE
SET name = excluded.name, kind = excluded.kind, updated_at = excluded.updated_at

-- name: select_messages_of(endpoint_identity, ids)
SELECT m.id, m.provider_message_id, m.labels_json, m.deleted_at, m.account_id FROM messages m
JOIN accounts a ON a.id = m.account_id
WHERE a.endpoint_identity = :endpoint_identity
    AND m.provider_message_id IN (SELECT value FROM json_each(:ids))

-- name: mark_message_returned(id, now)
UPDATE messages SET deleted_at = NULL, updated_at = :now WHERE id = :id;
INSERT INTO message_documents (message_id, account_id, sent_at, has_attachment)
SELECT id, account_id, sent_at, has_attachment FROM messages WHERE id = :id AND pruned_at IS NULL
ON CONFLICT (message_id) DO NOTHING;
INSERT OR REPLACE INTO message_words (rowid, subject, sender, recipients, body)
SELECT d.number, t.subject, t.sender, t.recipients, t.body
FROM searched_text t JOIN message_documents d ON d.message_id = t.message_id WHERE t.message_id = :id

-- name: upsert_lost_labels(account_id, rows, now)
INSERT INTO lost_labels (account_id, word, reason, lost_at)
SELECT :account_id, value ->> 0, value ->> 1, :now FROM json_each(:rows) WHERE true
ON CONFLICT (account_id, word) DO UPDATE SET reason = excluded.reason, lost_at = excluded.lost_at

-- name: select_unknown_labels(account_id, ids)
SELECT value FROM json_each(:ids) WHERE value NOT IN (
    SELECT provider_label_id FROM labels WHERE account_id = :account_id
)
