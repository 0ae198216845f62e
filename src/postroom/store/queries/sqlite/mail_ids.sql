-- name: select_messages_of_part(first_end, last_end, low, high, most)
SELECT id, id AS message_id FROM messages WHERE substr(id, -8) >= :first_end AND substr(id, -8) <= :last_end
UNION SELECT id, id AS message_id FROM messages WHERE id >= :low AND id <= :high
LIMIT :most

-- name: select_actions_of_part(first_end, last_end, low, high, most)
SELECT id, message_id FROM actions WHERE substr(id, -8) >= :first_end AND substr(id, -8) <= :last_end
UNION SELECT id, message_id FROM actions WHERE id >= :low AND id <= :high
LIMIT :most
