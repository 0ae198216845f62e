-- name: select_origins(ids)
-- Of a message whose sender is in doubt, the origin is unknown: nothing is learned from it.
SELECT id, account_id, CASE WHEN sender_doubt IS NULL THEN sender ELSE '' END AS sender,
    CASE WHEN sender_doubt IS NULL THEN sender_domain ELSE '' END AS domain,
    CASE WHEN sender_doubt IS NULL THEN list_id ELSE '' END AS list_id
FROM messages WHERE id IN (SELECT value FROM json_each(:ids))

-- name: select_same_origin(account_id, senders, domains, lists, since, most)
-- Recent mail from any of these, and whether we have acted on it.
SELECT m.id, m.sender, m.sender_domain AS domain, m.list_id,
    COALESCE(m.arrival_labels_json, (SELECT r.labels_json FROM arrivals r WHERE r.message_id = m.id)) AS arrived, m.labels_json,
    m.deleted_at IS NOT NULL AS deleted,
    EXISTS (SELECT 1 FROM actions a WHERE a.message_id = m.id AND a.state IN ('executing', 'completed')) AS touched
FROM messages m WHERE m.sender_doubt IS NULL AND m.id IN (
    SELECT id FROM (SELECT id FROM messages WHERE account_id = :account_id AND sender IN (SELECT value FROM json_each(:senders))
        AND sent_at >= :since ORDER BY sent_at DESC LIMIT :most) AS s
    UNION SELECT id FROM (SELECT id FROM messages WHERE account_id = :account_id AND sender_domain IN (SELECT value FROM json_each(:domains))
        AND sent_at >= :since ORDER BY sent_at DESC LIMIT :most) AS d
    UNION SELECT id FROM (SELECT id FROM messages WHERE account_id = :account_id AND list_id IN (SELECT value FROM json_each(:lists))
        AND list_id <> '' AND sent_at >= :since ORDER BY sent_at DESC LIMIT :most) AS l)
