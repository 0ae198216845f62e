-- name: index_backlog(lowest, below)
-- Only by id, and without another indexed condition, so that no plan scans all messages.
INSERT INTO message_header_ids (header_id, message_id)
SELECT DISTINCT left(trim(h ->> 1), 500), m.id FROM messages m, json_array_elements(m.headers_json) AS h
WHERE m.id >= :lowest AND m.id < :below AND lower(h ->> 0) = 'message-id' AND trim(h ->> 1) <> ''
ON CONFLICT DO NOTHING;
UPDATE messages m SET words = words_of_mail(m.sender, m.headers_json, m.subject, m.body_text),
    head_words = words_of_head(m.sender, m.headers_json, m.subject)
WHERE m.id >= :lowest AND m.id < :below AND m.pruned_at IS NULL

-- part: columns
m.id, m.sent_at, m.snippet, substr(m.body_text, 1, 20000) AS text

-- part: chosen
m.account_id = ANY(:accounts::uuid[])
    AND (CAST(:has_attachment AS boolean) IS NULL OR m.has_attachment = CAST(:has_attachment AS boolean))

-- part: within
m.sent_at >= :after AND m.sent_at < :before AND (m.sent_at, m.id) < (:cursor_at, :cursor_id)

-- part: labelled
m.pruned_at IS NULL
    AND (:labels = '[]' OR NOT EXISTS (SELECT 1 FROM json_array_elements(CAST(:labels AS json)) AS wanted WHERE NOT EXISTS (
        SELECT 1 FROM json_array_elements_text(m.labels_json) AS held, json_array_elements_text(wanted) AS key
        WHERE key IN (lower(held), m.account_id::text || '/' || held))))
    AND (:other_labels = '[]' OR NOT EXISTS (SELECT 1 FROM json_array_elements_text(m.labels_json) AS held,
            json_array_elements_text(CAST(:other_labels AS json)) AS key
        WHERE key IN (lower(held), m.account_id::text || '/' || held)))

-- part: matching
-- A query is read once, since it is a query of its own, and not for each message.
(CAST(:words AS text) IS NULL OR m.words @@ (SELECT to_tsquery('simple', :words)))
    AND (CAST(:in_head AS text) IS NULL OR m.head_words @@ (SELECT to_tsquery('simple', :in_head)))

-- name: search_newest(words, in_head, accounts, labels, other_labels, has_attachment, after, before, cursor_at, cursor_id, most, window)
-- Walks back from the newest until the page is full or the window ends. OFFSET 0 keeps the conditions in this order, since
-- reading the words of a message costs most; and without the same order at every step, all of it would be sorted first.
SELECT {columns} FROM (
    SELECT * FROM (
        SELECT * FROM (
            SELECT m.* FROM messages m WHERE m.deleted_at IS NULL AND {within}
            ORDER BY m.sent_at DESC, m.id DESC LIMIT CAST(:window AS bigint)) m
        WHERE {chosen} AND {labelled} ORDER BY m.sent_at DESC, m.id DESC OFFSET 0) m
    WHERE {matching} ORDER BY m.sent_at DESC, m.id DESC LIMIT :most) m
ORDER BY m.sent_at DESC, m.id DESC

-- part: newest_of_candidates
-- What the index cannot tell (phrases, places, labels) is compared from the newest on, until the page is full.
    WHERE {chosen} AND {within} ORDER BY m.sent_at DESC, m.id DESC OFFSET 0) candidate
    CROSS JOIN LATERAL (SELECT * FROM messages m WHERE m.id = candidate.id AND {labelled} OFFSET 0) m
    WHERE {matching} ORDER BY candidate.sent_at DESC, candidate.id DESC LIMIT :most) m
ORDER BY m.sent_at DESC, m.id DESC

-- name: search_by_words(indexed, words, in_head, accounts, labels, other_labels, has_attachment, after, before, cursor_at, cursor_id, most)
SELECT {columns} FROM (SELECT m.* FROM (SELECT m.id, m.sent_at FROM (
        SELECT m.id, m.sent_at, m.account_id, m.has_attachment FROM messages m
        WHERE m.deleted_at IS NULL AND m.words IS NOT NULL AND m.words @@ to_tsquery('simple', :indexed) OFFSET 0) m
{newest_of_candidates}

-- name: search_by_heads(indexed, words, in_head, accounts, labels, other_labels, has_attachment, after, before, cursor_at, cursor_id, most)
SELECT {columns} FROM (SELECT m.* FROM (SELECT m.id, m.sent_at FROM (
        SELECT m.id, m.sent_at, m.account_id, m.has_attachment FROM messages m
        WHERE m.deleted_at IS NULL AND m.head_words IS NOT NULL AND m.head_words @@ to_tsquery('simple', :indexed) OFFSET 0) m
{newest_of_candidates}

-- name: search_by_labels(indexed, words, in_head, accounts, labels, other_labels, has_attachment, after, before, cursor_at, cursor_id, most)
SELECT {columns} FROM (SELECT m.* FROM (SELECT m.id, m.sent_at FROM (
        SELECT m.id, m.sent_at, m.account_id, m.has_attachment FROM messages m
        WHERE m.deleted_at IS NULL AND label_keys(m.labels_json) && CAST(:indexed AS text[]) OFFSET 0) m
{newest_of_candidates}

-- name: estimate_labels(indexed)
EXPLAIN (FORMAT JSON) SELECT 1 FROM messages
WHERE deleted_at IS NULL AND label_keys(labels_json) && CAST(:indexed AS text[])

-- name: estimate_words(indexed)
EXPLAIN (FORMAT JSON) SELECT 1 FROM messages
WHERE deleted_at IS NULL AND words IS NOT NULL AND words @@ to_tsquery('simple', :indexed)

-- name: estimate_heads(indexed)
EXPLAIN (FORMAT JSON) SELECT 1 FROM messages
WHERE deleted_at IS NULL AND head_words IS NOT NULL AND head_words @@ to_tsquery('simple', :indexed)
