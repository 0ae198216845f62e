-- name: select_search_backlog()
SELECT below FROM search_backlog

-- name: select_backlog(lowest, below)
SELECT id, subject, substr(body_text, 1, 200000) FROM messages
WHERE id >= :lowest AND id < :below AND deleted_at IS NULL AND pruned_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM message_documents d WHERE d.message_id = messages.id)

-- name: index_backlog(lowest, below, rows)
INSERT INTO message_documents (message_id, account_id, sent_at)
SELECT m.id, m.account_id, m.sent_at FROM json_each(:rows) r JOIN messages m ON m.id = r.value ->> 0
WHERE m.id >= :lowest AND m.id < :below;
INSERT INTO message_words (rowid, subject, sender, body)
SELECT d.number, r.value ->> 1, m.sender, r.value ->> 2 FROM json_each(:rows) r
JOIN messages m ON m.id = r.value ->> 0 JOIN message_documents d ON d.message_id = m.id

-- name: search_words(words, accounts, labels, after, before, cursor_at, cursor_id, most)
-- Matches are sorted by columns of the small table; only the page is looked up in the large one.
SELECT m.id, m.account_id, a.email AS account, m.sender, m.subject, m.sent_at, m.labels_json, m.snippet,
    substr(m.body_text, 1, 20000) AS text
FROM (SELECT d.message_id, d.sent_at FROM message_words w JOIN message_documents d ON d.number = w.rowid
    WHERE w.message_words MATCH :words AND d.account_id IN (SELECT value FROM json_each(:accounts))
        AND d.sent_at >= :after AND d.sent_at < :before AND (d.sent_at, d.message_id) < (:cursor_at, :cursor_id)
        AND NOT EXISTS (SELECT 1 FROM json_each(:labels) wanted WHERE NOT EXISTS (
            SELECT 1 FROM messages o, json_each(o.labels_json) held, json_each(wanted.value) key
            WHERE o.id = d.message_id AND key.value IN (lower(held.value), d.account_id || '/' || held.value)))
    ORDER BY d.sent_at DESC, d.message_id DESC LIMIT :most) found
JOIN messages m ON m.id = found.message_id JOIN accounts a ON a.id = m.account_id
ORDER BY found.sent_at DESC, found.message_id DESC

-- name: search_filters(accounts, labels, after, before, cursor_at, cursor_id, most)
SELECT m.id, m.account_id, a.email AS account, m.sender, m.subject, m.sent_at, m.labels_json, m.snippet,
    substr(m.body_text, 1, 20000) AS text
FROM (SELECT d.message_id, d.sent_at FROM message_documents d
    WHERE d.account_id IN (SELECT value FROM json_each(:accounts))
        AND d.sent_at >= :after AND d.sent_at < :before AND (d.sent_at, d.message_id) < (:cursor_at, :cursor_id)
        AND NOT EXISTS (SELECT 1 FROM json_each(:labels) wanted WHERE NOT EXISTS (
            SELECT 1 FROM messages o, json_each(o.labels_json) held, json_each(wanted.value) key
            WHERE o.id = d.message_id AND key.value IN (lower(held.value), d.account_id || '/' || held.value)))
    ORDER BY d.sent_at DESC, d.message_id DESC LIMIT :most) found
JOIN messages m ON m.id = found.message_id JOIN accounts a ON a.id = m.account_id
ORDER BY found.sent_at DESC, found.message_id DESC
