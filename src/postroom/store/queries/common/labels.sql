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
