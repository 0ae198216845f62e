-- Mail that people look for: by names, recipients and attachments, without accents, by a short id or the Message-ID.

-- Ids begin with their time, so mail of one minute has the same beginning; the end is random, and short.
CREATE INDEX messages_short_id ON messages (substr(id, -8));
CREATE INDEX actions_short_id ON actions (substr(id, -8));

CREATE INDEX messages_sent ON messages (sent_at, id) WHERE deleted_at IS NULL;

-- Which messages have this Message-ID. Mail of several accounts may share one.
CREATE TABLE message_header_ids (
    header_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    PRIMARY KEY (header_id, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_header_ids_message ON message_header_ids (message_id);

-- The index is built anew: accents are folded, names stand beside addresses, recipients have a column of their own.
DROP TRIGGER message_is_indexed;
DROP TRIGGER message_is_indexed_anew;
DROP TRIGGER message_is_lost;
DROP TRIGGER message_is_removed;
DROP TRIGGER message_is_pruned;
DROP TABLE message_words;
DROP TABLE message_documents;
CREATE TABLE message_documents (
    number INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL,
    sent_at TEXT NOT NULL,
    has_attachment INTEGER NOT NULL
) STRICT;
CREATE INDEX message_documents_sent ON message_documents (sent_at, message_id);
CREATE VIRTUAL TABLE message_words USING fts5 (
    subject, sender, recipients, body, content = '', contentless_delete = 1, prefix = '3 4',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
);

-- The words of a message, as they are indexed.
CREATE VIEW searched_text AS
SELECT m.id AS message_id, folded(m.subject) AS subject,
    folded(m.sender || ' ' || COALESCE((SELECT group_concat(value ->> 1, ' ') FROM json_each(m.headers_json)
        WHERE lower(value ->> 0) = 'from'), '')) AS sender,
    folded(COALESCE((SELECT group_concat(value ->> 1, ' ') FROM json_each(m.headers_json)
        WHERE lower(value ->> 0) IN ('to', 'cc', 'bcc')), '')) AS recipients,
    folded(substr(m.body_text, 1, 200000)) AS body
FROM messages m;
CREATE VIEW named_header_ids AS
SELECT substr(trim(h.value ->> 1), 1, 500) AS header_id, m.id AS message_id
FROM messages m, json_each(m.headers_json) h WHERE lower(h.value ->> 0) = 'message-id' AND trim(h.value ->> 1) <> '';

CREATE TRIGGER message_is_indexed AFTER INSERT ON messages WHEN new.deleted_at IS NULL
BEGIN
    INSERT INTO message_documents (message_id, account_id, sent_at, has_attachment)
    VALUES (new.id, new.account_id, new.sent_at, new.has_attachment);
    INSERT INTO message_words (rowid, subject, sender, recipients, body)
    SELECT d.number, t.subject, t.sender, t.recipients, t.body
    FROM message_documents d, searched_text t WHERE d.message_id = new.id AND t.message_id = new.id;
    INSERT OR IGNORE INTO message_header_ids SELECT header_id, message_id FROM named_header_ids WHERE message_id = new.id;
END;
CREATE TRIGGER message_is_indexed_anew
AFTER UPDATE OF subject, sender, headers_json, body_text, has_attachment, sent_at ON messages
WHEN new.deleted_at IS NULL AND new.pruned_at IS NULL
BEGIN
    UPDATE message_documents SET sent_at = new.sent_at, has_attachment = new.has_attachment WHERE message_id = new.id;
    UPDATE message_words SET (subject, sender, recipients, body) =
        (SELECT t.subject, t.sender, t.recipients, t.body FROM searched_text t WHERE t.message_id = new.id)
    WHERE rowid = (SELECT number FROM message_documents WHERE message_id = new.id);
    INSERT OR IGNORE INTO message_header_ids SELECT header_id, message_id FROM named_header_ids WHERE message_id = new.id;
END;
CREATE TRIGGER message_is_lost AFTER UPDATE OF deleted_at ON messages WHEN new.deleted_at IS NOT NULL
BEGIN
    DELETE FROM message_words WHERE rowid = (SELECT number FROM message_documents WHERE message_id = new.id);
    DELETE FROM message_documents WHERE message_id = new.id;
END;
CREATE TRIGGER message_is_pruned AFTER UPDATE OF pruned_at ON messages WHEN new.pruned_at IS NOT NULL
BEGIN
    DELETE FROM message_words WHERE rowid = (SELECT number FROM message_documents WHERE message_id = new.id);
    DELETE FROM message_documents WHERE message_id = new.id;
    DELETE FROM message_header_ids WHERE message_id = new.id;
END;
CREATE TRIGGER message_is_removed AFTER DELETE ON messages
BEGIN
    DELETE FROM message_words WHERE rowid = (SELECT number FROM message_documents WHERE message_id = old.id);
    DELETE FROM message_documents WHERE message_id = old.id;
    DELETE FROM message_header_ids WHERE message_id = old.id;
END;

-- Stored mail is indexed again afterwards, newest first, in small steps.
DELETE FROM search_backlog;
INSERT INTO search_backlog (below)
SELECT 'ffffffff-ffff-ffff-ffff-ffffffffffff' WHERE EXISTS (SELECT 1 FROM messages);
