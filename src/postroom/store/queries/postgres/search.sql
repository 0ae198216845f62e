-- name: select_search_backlog()
-- A second transaction finds nothing to do.
SELECT below FROM search_backlog FOR UPDATE SKIP LOCKED

-- name: select_backlog(lowest, below)
SELECT id, subject, left(body_text, 200000) FROM messages
WHERE id >= :lowest AND id < :below AND words IS NULL AND pruned_at IS NULL

-- name: index_backlog(lowest, below, rows)
-- Only by id, and without another indexed condition, so that no plan scans all messages.
UPDATE messages m SET words = words_of_message(m.sender, r.kept ->> 1, r.kept ->> 2)
FROM json_array_elements(:rows::json) AS r(kept)
WHERE m.id >= :lowest AND m.id < :below AND m.id = (r.kept ->> 0)::uuid AND m.words IS NULL

-- name: search_words(words, accounts, labels, after, before, cursor_at, cursor_id, most)
SELECT m.id, m.account_id, a.email AS account, m.sender, m.subject, m.sent_at, m.labels_json, m.snippet,
    substr(m.body_text, 1, 20000) AS text
FROM messages m JOIN accounts a ON a.id = m.account_id
WHERE m.deleted_at IS NULL AND m.words IS NOT NULL AND m.words @@ to_tsquery('simple', :words) AND m.account_id = ANY(:accounts::uuid[])
    AND m.sent_at >= :after AND m.sent_at < :before AND (m.sent_at, m.id) < (:cursor_at, :cursor_id)
    AND NOT EXISTS (SELECT 1 FROM json_array_elements(:labels::json) AS wanted WHERE NOT EXISTS (
        SELECT 1 FROM json_array_elements_text(m.labels_json) AS held, json_array_elements_text(wanted) AS key
        WHERE key IN (lower(held), m.account_id::text || '/' || held)))
ORDER BY m.sent_at DESC, m.id DESC LIMIT :most

-- name: search_filters(accounts, labels, after, before, cursor_at, cursor_id, most)
SELECT m.id, m.account_id, a.email AS account, m.sender, m.subject, m.sent_at, m.labels_json, m.snippet,
    substr(m.body_text, 1, 20000) AS text
FROM messages m JOIN accounts a ON a.id = m.account_id
WHERE m.deleted_at IS NULL AND m.pruned_at IS NULL AND m.account_id = ANY(:accounts::uuid[])
    AND m.sent_at >= :after AND m.sent_at < :before AND (m.sent_at, m.id) < (:cursor_at, :cursor_id)
    AND NOT EXISTS (SELECT 1 FROM json_array_elements(:labels::json) AS wanted WHERE NOT EXISTS (
        SELECT 1 FROM json_array_elements_text(m.labels_json) AS held, json_array_elements_text(wanted) AS key
        WHERE key IN (lower(held), m.account_id::text || '/' || held)))
ORDER BY m.sent_at DESC, m.id DESC LIMIT :most
