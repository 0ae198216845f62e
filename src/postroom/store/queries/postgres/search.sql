-- name: select_search_backlog()
-- A second transaction finds nothing to do.
SELECT below FROM search_backlog FOR UPDATE SKIP LOCKED

-- name: index_backlog(lowest, below)
-- Only by id, and without another indexed condition, so that no plan scans all messages.
INSERT INTO message_header_ids (header_id, message_id)
SELECT DISTINCT left(trim(h ->> 1), 500), m.id FROM messages m, json_array_elements(m.headers_json) AS h
WHERE m.id >= :lowest AND m.id < :below AND lower(h ->> 0) = 'message-id' AND trim(h ->> 1) <> ''
ON CONFLICT DO NOTHING;
UPDATE messages m SET words = words_of_mail(m.sender, m.headers_json, m.subject, m.body_text),
    head_words = words_of_head(m.sender, m.headers_json, m.subject)
WHERE m.id >= :lowest AND m.id < :below AND m.pruned_at IS NULL

-- name: select_search_window(after, before, cursor_at, cursor_id, size)
-- From when on there are that many messages; nothing if there are fewer.
SELECT sent_at, 0 FROM messages
WHERE deleted_at IS NULL AND sent_at >= :after AND sent_at < :before AND (sent_at, id) < (:cursor_at, :cursor_id)
ORDER BY sent_at DESC, id DESC LIMIT 1 OFFSET :size

-- name: search_words(words, accounts, labels, other_labels, has_attachment, after, before, cursor_at, cursor_id, most)
SELECT m.id, m.account_id, a.email AS account, m.sender, m.subject, m.sent_at, m.labels_json, m.snippet,
    substr(m.body_text, 1, 20000) AS text
FROM messages m JOIN accounts a ON a.id = m.account_id
WHERE m.deleted_at IS NULL AND m.words IS NOT NULL AND m.words @@ to_tsquery('simple', :words) AND m.account_id = ANY(:accounts::uuid[])
    AND (CAST(:has_attachment AS boolean) IS NULL OR m.has_attachment = CAST(:has_attachment AS boolean))
    AND m.sent_at >= :after AND m.sent_at < :before AND (m.sent_at, m.id) < (:cursor_at, :cursor_id)
    AND NOT EXISTS (SELECT 1 FROM json_array_elements(:labels::json) AS wanted WHERE NOT EXISTS (
        SELECT 1 FROM json_array_elements_text(m.labels_json) AS held, json_array_elements_text(wanted) AS key
        WHERE key IN (lower(held), m.account_id::text || '/' || held)))
    AND NOT EXISTS (SELECT 1 FROM json_array_elements_text(m.labels_json) AS held,
            json_array_elements_text(:other_labels::json) AS key
        WHERE key IN (lower(held), m.account_id::text || '/' || held))
ORDER BY m.sent_at DESC, m.id DESC LIMIT :most

-- name: search_heads(in_head, accounts, labels, other_labels, has_attachment, after, before, cursor_at, cursor_id, most)
SELECT m.id, m.account_id, a.email AS account, m.sender, m.subject, m.sent_at, m.labels_json, m.snippet,
    substr(m.body_text, 1, 20000) AS text
FROM messages m JOIN accounts a ON a.id = m.account_id
WHERE m.deleted_at IS NULL AND m.head_words IS NOT NULL AND m.head_words @@ to_tsquery('simple', :in_head) AND m.account_id = ANY(:accounts::uuid[])
    AND (CAST(:has_attachment AS boolean) IS NULL OR m.has_attachment = CAST(:has_attachment AS boolean))
    AND m.sent_at >= :after AND m.sent_at < :before AND (m.sent_at, m.id) < (:cursor_at, :cursor_id)
    AND NOT EXISTS (SELECT 1 FROM json_array_elements(:labels::json) AS wanted WHERE NOT EXISTS (
        SELECT 1 FROM json_array_elements_text(m.labels_json) AS held, json_array_elements_text(wanted) AS key
        WHERE key IN (lower(held), m.account_id::text || '/' || held)))
    AND NOT EXISTS (SELECT 1 FROM json_array_elements_text(m.labels_json) AS held,
            json_array_elements_text(:other_labels::json) AS key
        WHERE key IN (lower(held), m.account_id::text || '/' || held))
ORDER BY m.sent_at DESC, m.id DESC LIMIT :most

-- name: search_both(words, in_head, accounts, labels, other_labels, has_attachment, after, before, cursor_at, cursor_id, most)
SELECT m.id, m.account_id, a.email AS account, m.sender, m.subject, m.sent_at, m.labels_json, m.snippet,
    substr(m.body_text, 1, 20000) AS text
FROM messages m JOIN accounts a ON a.id = m.account_id
WHERE m.deleted_at IS NULL AND m.words IS NOT NULL AND m.words @@ to_tsquery('simple', :words)
    AND m.head_words IS NOT NULL AND m.head_words @@ to_tsquery('simple', :in_head) AND m.account_id = ANY(:accounts::uuid[])
    AND (CAST(:has_attachment AS boolean) IS NULL OR m.has_attachment = CAST(:has_attachment AS boolean))
    AND m.sent_at >= :after AND m.sent_at < :before AND (m.sent_at, m.id) < (:cursor_at, :cursor_id)
    AND NOT EXISTS (SELECT 1 FROM json_array_elements(:labels::json) AS wanted WHERE NOT EXISTS (
        SELECT 1 FROM json_array_elements_text(m.labels_json) AS held, json_array_elements_text(wanted) AS key
        WHERE key IN (lower(held), m.account_id::text || '/' || held)))
    AND NOT EXISTS (SELECT 1 FROM json_array_elements_text(m.labels_json) AS held,
            json_array_elements_text(:other_labels::json) AS key
        WHERE key IN (lower(held), m.account_id::text || '/' || held))
ORDER BY m.sent_at DESC, m.id DESC LIMIT :most

-- name: search_filters(accounts, labels, other_labels, has_attachment, after, before, cursor_at, cursor_id, most)
SELECT m.id, m.account_id, a.email AS account, m.sender, m.subject, m.sent_at, m.labels_json, m.snippet,
    substr(m.body_text, 1, 20000) AS text
FROM messages m JOIN accounts a ON a.id = m.account_id
WHERE m.deleted_at IS NULL AND m.pruned_at IS NULL AND m.account_id = ANY(:accounts::uuid[])
    AND (CAST(:has_attachment AS boolean) IS NULL OR m.has_attachment = CAST(:has_attachment AS boolean))
    AND m.sent_at >= :after AND m.sent_at < :before AND (m.sent_at, m.id) < (:cursor_at, :cursor_id)
    AND NOT EXISTS (SELECT 1 FROM json_array_elements(:labels::json) AS wanted WHERE NOT EXISTS (
        SELECT 1 FROM json_array_elements_text(m.labels_json) AS held, json_array_elements_text(wanted) AS key
        WHERE key IN (lower(held), m.account_id::text || '/' || held)))
    AND NOT EXISTS (SELECT 1 FROM json_array_elements_text(m.labels_json) AS held,
            json_array_elements_text(:other_labels::json) AS key
        WHERE key IN (lower(held), m.account_id::text || '/' || held))
ORDER BY m.sent_at DESC, m.id DESC LIMIT :most
