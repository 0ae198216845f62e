-- name: mark_message_returned(id, now)
UPDATE messages SET deleted_at = NULL, updated_at = :now WHERE id = :id;
INSERT INTO message_documents (message_id, account_id, sent_at, has_attachment)
SELECT id, account_id, sent_at, has_attachment FROM messages WHERE id = :id AND pruned_at IS NULL
ON CONFLICT (message_id) DO NOTHING;
INSERT OR REPLACE INTO message_words (rowid, subject, sender, recipients, body)
SELECT d.number, t.subject, t.sender, t.recipients, t.body
FROM searched_text t JOIN message_documents d ON d.message_id = t.message_id WHERE t.message_id = :id
