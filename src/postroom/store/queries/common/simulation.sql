-- name: select_past(account_id, since, seq, id, with_body, most)
-- In the order of acceptance. The text of messages is read only when somebody looks at it.
SELECT m.accepted_seq, m.id, m.account_id, m.provider_message_id, m.sender, m.subject, m.headers_json,
    m.arrival_labels_json, CASE WHEN :with_body THEN m.body_text ELSE '' END, m.has_attachment, m.ingestion_tier,
    m.sent_at, m.created_at, a.email
FROM messages m JOIN accounts a ON a.id = m.account_id
WHERE (m.accepted_seq, m.id) > (:seq, :id) AND m.created_at >= :since
    AND (CAST(:account_id AS text) IS NULL OR CAST(m.account_id AS text) = CAST(:account_id AS text))
ORDER BY m.accepted_seq, m.id LIMIT :most

-- name: select_past_start(account_id, since, passed)
-- The newest message that is not among the newest `passed`.
SELECT m.accepted_seq, m.id FROM messages m
WHERE m.created_at >= :since
    AND (CAST(:account_id AS text) IS NULL OR CAST(m.account_id AS text) = CAST(:account_id AS text))
ORDER BY m.accepted_seq DESC, m.id DESC LIMIT 1 OFFSET :passed

-- name: count_past(account_id, since, seq, id)
SELECT count(*) FROM messages m
WHERE (m.accepted_seq, m.id) > (:seq, :id) AND m.created_at >= :since
    AND (CAST(:account_id AS text) IS NULL OR CAST(m.account_id AS text) = CAST(:account_id AS text))

-- name: select_call_cost(most)
SELECT count(*), avg(c.cost_micros) FROM (SELECT cost_micros FROM model_calls WHERE state = 'answered'
    ORDER BY day DESC, started_at DESC LIMIT :most) AS c
