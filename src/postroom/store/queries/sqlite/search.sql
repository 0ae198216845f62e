-- name: index_backlog(lowest, below)
INSERT INTO message_documents (message_id, account_id, sent_at, has_attachment)
SELECT id, account_id, sent_at, has_attachment FROM messages
WHERE id >= :lowest AND id < :below AND deleted_at IS NULL AND pruned_at IS NULL
ON CONFLICT (message_id) DO NOTHING;
INSERT OR REPLACE INTO message_words (rowid, subject, sender, recipients, body)
SELECT d.number, t.subject, t.sender, t.recipients, t.body
FROM searched_text t JOIN message_documents d ON d.message_id = t.message_id
WHERE t.message_id >= :lowest AND t.message_id < :below;
INSERT OR IGNORE INTO message_header_ids
SELECT header_id, message_id FROM named_header_ids WHERE message_id >= :lowest AND message_id < :below

-- part: found
-- Matches are sorted by columns of the small table; only the page is looked up in the large one.
SELECT m.id, m.sent_at, m.snippet, substr(m.body_text, 1, 20000) AS text
FROM (SELECT d.message_id, d.sent_at

-- part: chosen
d.account_id IN (SELECT value FROM json_each(:accounts))
        AND (:has_attachment IS NULL OR d.has_attachment = :has_attachment)
        AND d.sent_at >= :after AND d.sent_at < :before AND (d.sent_at, d.message_id) < (:cursor_at, :cursor_id)
        AND NOT EXISTS (SELECT 1 FROM json_each(:labels) wanted WHERE NOT EXISTS (
            SELECT 1 FROM messages o, json_each(o.labels_json) held, json_each(wanted.value) key
            WHERE o.id = d.message_id AND key.value IN (lower(held.value), d.account_id || '/' || held.value)))
        AND (:other_labels = '[]' OR NOT EXISTS (
            SELECT 1 FROM messages o, json_each(o.labels_json) held, json_each(:other_labels) key
            WHERE o.id = d.message_id AND key.value IN (lower(held.value), d.account_id || '/' || held.value)))
    ORDER BY d.sent_at DESC, d.message_id DESC LIMIT :most) found
JOIN messages m ON m.id = found.message_id
ORDER BY found.sent_at DESC, found.message_id DESC

-- name: search_words(words, accounts, labels, other_labels, has_attachment, after, before, cursor_at, cursor_id, most)
{found} FROM message_words w JOIN message_documents d ON d.number = w.rowid
    WHERE w.message_words MATCH :words AND {chosen}

-- name: select_search_window(after, before, cursor_at, cursor_id, size)
-- From when on there are that many documents, and the lowest of their numbers; nothing if there are fewer.
SELECT w.start, min(d.number) FROM message_documents d, (SELECT sent_at AS start FROM message_documents
    WHERE sent_at >= :after AND sent_at < :before AND (sent_at, message_id) < (:cursor_at, :cursor_id)
    ORDER BY sent_at DESC, message_id DESC LIMIT 1 OFFSET :size) w
WHERE d.sent_at >= w.start AND d.sent_at <= :cursor_at GROUP BY w.start

-- name: search_recent_words(words, first_number, accounts, labels, other_labels, has_attachment, after, before, cursor_at, cursor_id, most)
{found} FROM message_words w JOIN message_documents d ON d.number = w.rowid
    WHERE w.message_words MATCH :words AND w.rowid >= :first_number AND {chosen}

-- name: search_filters(accounts, labels, other_labels, has_attachment, after, before, cursor_at, cursor_id, most)
{found} FROM message_documents d WHERE {chosen}

-- name: search_without(excluded, accounts, labels, other_labels, has_attachment, after, before, cursor_at, cursor_id, most)
{found} FROM message_documents d
    WHERE d.number NOT IN (SELECT rowid FROM message_words WHERE message_words MATCH :excluded) AND {chosen}
