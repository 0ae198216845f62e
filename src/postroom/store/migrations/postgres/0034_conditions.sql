-- More facts for conditions of rules. They are NULL for messages stored before: rules that need them skip those.
ALTER TABLE messages ADD COLUMN size_bytes bigint;
-- The name and the MIME type of each attachment.
ALTER TABLE messages ADD COLUMN attachments_json text;
-- Whether it answers a message that the user sent.
ALTER TABLE messages ADD COLUMN reply_to_mine boolean;
-- Whether the sender had written before.
CREATE INDEX messages_from_sender ON messages (account_id, sender, accepted_seq, id);
