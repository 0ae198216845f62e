-- name: select_past(account_id, since, seq, id, with_body, with_sender, most, most_text)
-- In the order of acceptance. The text of messages is read only when needed, and measured before that.
WITH page AS (
    SELECT m.accepted_seq AS seq, m.id, CASE WHEN :with_body THEN length(m.body_text) ELSE 0 END AS size FROM messages m
    WHERE (m.accepted_seq, m.id) > (:seq, :id) AND m.created_at >= :since AND m.pruned_at IS NULL
        AND (CAST(:account_id AS text) IS NULL OR CAST(m.account_id AS text) = CAST(:account_id AS text))
    ORDER BY m.accepted_seq, m.id LIMIT :most
), fitting AS (SELECT p.id, sum(p.size) OVER (ORDER BY p.seq, p.id) - p.size AS before FROM page p)
SELECT m.accepted_seq AS seq, m.id, m.account_id, m.provider_message_id, m.sender, m.subject, m.headers_json,
    COALESCE(m.arrival_labels_json, (SELECT r.labels_json FROM arrivals r WHERE r.message_id = m.id)) AS labels_json,
    CASE WHEN :with_body THEN m.body_text ELSE '' END AS body_text, m.has_attachment, m.ingestion_tier, m.sent_at,
    m.created_at AS at, a.email AS account_email, m.sender_doubt, m.size_bytes AS size, m.attachments_json, m.reply_to_mine,
    (SELECT COALESCE('["' || string_agg(c.category, '","') || '"]', '[]') FROM message_categories c
        WHERE c.message_id = m.id) AS categories_json,
    CASE WHEN :with_sender THEN m.sender_doubt IS NULL AND EXISTS (SELECT 1 FROM contacts k
        WHERE k.address = m.sender AND k.endpoint_identity IN ('', a.endpoint_identity)) END AS sender_in_contacts,
    CASE WHEN :with_sender THEN EXISTS (SELECT 1 FROM messages o WHERE o.account_id = m.account_id
        AND o.sender = m.sender AND (o.accepted_seq, o.id) < (m.accepted_seq, m.id)) END AS sender_seen_before
FROM fitting f JOIN messages m ON m.id = f.id JOIN accounts a ON a.id = m.account_id
WHERE f.before < :most_text ORDER BY m.accepted_seq, m.id

-- name: select_back(account_id, since, seq, id, most)
WITH passed AS (
    SELECT m.accepted_seq AS seq, m.id FROM messages m
    WHERE (m.accepted_seq, m.id) < (:seq, :id) AND m.created_at >= :since AND m.pruned_at IS NULL
        AND (CAST(:account_id AS text) IS NULL OR CAST(m.account_id AS text) = CAST(:account_id AS text))
    ORDER BY m.accepted_seq DESC, m.id DESC LIMIT :most
)
SELECT (SELECT count(*) FROM passed) AS count, p.seq, p.id FROM passed p ORDER BY p.seq, p.id LIMIT 1

-- name: select_call_cost(most)
SELECT count(*) AS calls, CAST(avg(c.cost_micros) AS double precision) AS micros FROM (SELECT cost_micros FROM model_calls WHERE state = 'answered'
    ORDER BY day DESC, started_at DESC LIMIT :most) AS c
