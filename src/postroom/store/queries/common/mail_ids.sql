-- name: select_messages_of_part(first_end, last_end, low, high, most)
SELECT id, id AS message_id FROM messages WHERE {ends_within}
UNION SELECT id, id AS message_id FROM messages WHERE id >= :low AND id <= :high
LIMIT :most

-- name: select_actions_of_part(first_end, last_end, low, high, most)
SELECT id, message_id FROM actions WHERE {ends_within}
UNION SELECT id, message_id FROM actions WHERE id >= :low AND id <= :high
LIMIT :most
