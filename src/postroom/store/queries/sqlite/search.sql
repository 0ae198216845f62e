-- name: search_words(words, accounts, labels, after, before, cursor_at, cursor_id, most)
-- What is found is put in order by what stands in the small table; only the page is looked up in the large one.
SELECT m.id, m.account_id, a.email, m.sender, m.subject, m.sent_at, m.labels_json, m.snippet, substr(m.body_text, 1, 20000)
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
SELECT m.id, m.account_id, a.email, m.sender, m.subject, m.sent_at, m.labels_json, m.snippet, substr(m.body_text, 1, 20000)
FROM (SELECT d.message_id, d.sent_at FROM message_documents d
    WHERE d.account_id IN (SELECT value FROM json_each(:accounts))
        AND d.sent_at >= :after AND d.sent_at < :before AND (d.sent_at, d.message_id) < (:cursor_at, :cursor_id)
        AND NOT EXISTS (SELECT 1 FROM json_each(:labels) wanted WHERE NOT EXISTS (
            SELECT 1 FROM messages o, json_each(o.labels_json) held, json_each(wanted.value) key
            WHERE o.id = d.message_id AND key.value IN (lower(held.value), d.account_id || '/' || held.value)))
    ORDER BY d.sent_at DESC, d.message_id DESC LIMIT :most) found
JOIN messages m ON m.id = found.message_id JOIN accounts a ON a.id = m.account_id
ORDER BY found.sent_at DESC, found.message_id DESC
