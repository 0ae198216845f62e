-- What a replay of history begins with, and what is learned by: the order of acceptance, the labels on arrival, and by
-- what mail of the same origin is told.

ALTER TABLE messages ADD COLUMN accepted_seq bigint NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN arrival_labels_json json NOT NULL DEFAULT '[]';
ALTER TABLE messages ADD COLUMN sender_domain text NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN list_id text NOT NULL DEFAULT '';

-- Of messages that are here already, the oldest pre-image of an action tells the labels on arrival best.
UPDATE messages SET
    accepted_seq = COALESCE((SELECT e.seq FROM envelopes e WHERE e.id = messages.inbox_id), 0),
    arrival_labels_json = COALESCE((SELECT a.pre_image_json -> 'labels' FROM actions a
        WHERE a.message_id = messages.id AND a.pre_image_json ->> 'labels' IS NOT NULL
        ORDER BY a.created_at, a.id LIMIT 1), labels_json),
    sender_domain = split_part(sender, '@', 2);

CREATE INDEX messages_accepted ON messages (accepted_seq, id);
CREATE INDEX messages_domain ON messages (account_id, sender_domain, sent_at);
CREATE INDEX messages_list ON messages (account_id, list_id, sent_at) WHERE list_id <> '';
CREATE INDEX decisions_shadow ON decisions (source, rule_id, created_at) WHERE shadow;
CREATE INDEX decisions_message ON decisions (message_id, generation);
