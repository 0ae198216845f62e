-- name: mark_message_returned(id, now)
UPDATE messages SET deleted_at = NULL, updated_at = :now WHERE id = :id
