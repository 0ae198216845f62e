-- name: select_labels(account_id)
SELECT provider_label_id, name, kind, description, available_to_classifier FROM labels
WHERE account_id = :account_id ORDER BY name, provider_label_id

-- name: select_label_names()
SELECT DISTINCT name FROM labels
