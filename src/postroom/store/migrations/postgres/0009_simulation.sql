-- What a replay of history begins with, and what is learned by: the order of acceptance, the labels on arrival, and by
-- what mail of the same origin is told. No message that is here already is written anew, however many there are.

-- What is here already comes first in the order of acceptance, by its ids, which grow with time.
ALTER TABLE messages ADD COLUMN accepted_seq bigint NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN arrival_labels_json json;
ALTER TABLE messages ADD COLUMN list_id text NOT NULL DEFAULT '';

-- The labels on arrival. Of messages that are here already they are kept when they first change; until then the oldest
-- pre-image of an action tells them best. (The sum keeps the planner from looking for it among all actions, by time.)
CREATE VIEW arrivals AS
SELECT m.id AS message_id, COALESCE(m.arrival_labels_json,
    (SELECT a.pre_image_json -> 'labels' FROM actions a
        WHERE a.message_id = m.id AND a.pre_image_json ->> 'labels' IS NOT NULL
        ORDER BY a.created_at + interval '0', a.id LIMIT 1), m.labels_json) AS labels_json
FROM messages m;

CREATE INDEX messages_accepted ON messages (accepted_seq, id);
CREATE INDEX messages_domain ON messages (account_id, substring(sender FROM '[^@]*$'), sent_at);
CREATE INDEX messages_list ON messages (account_id, list_id, sent_at) WHERE list_id <> '';
CREATE INDEX decisions_shadow ON decisions (source, rule_id, created_at) WHERE shadow;
CREATE INDEX decisions_message ON decisions (message_id, generation);
