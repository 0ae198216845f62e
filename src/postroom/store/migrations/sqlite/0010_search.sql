-- The words of stored mail, so that it can be searched; and agents that see one account only.

-- The row ids of messages, whose key is text, are not stable: documents have numbers of their own. What the mailbox has
-- lost has none.
CREATE TABLE message_documents (
    number INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL,
    sent_at TEXT NOT NULL
) STRICT;
CREATE INDEX message_documents_sent ON message_documents (sent_at, message_id);

-- Only the words, not the text once more. A mark is part of the word that it stands in, as scripts of India need it.
CREATE VIRTUAL TABLE message_words USING fts5 (
    subject, sender, body, content = '', contentless_delete = 1, prefix = '3 4',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
);

-- Mail that is here already is indexed afterwards, in small steps; what has an id below this one still waits.
CREATE TABLE search_backlog (
    single INTEGER PRIMARY KEY DEFAULT 1 CHECK (single = 1),
    below TEXT NOT NULL
) STRICT;
INSERT INTO search_backlog (below)
SELECT 'ffffffff-ffff-ffff-ffff-ffffffffffff' WHERE EXISTS (SELECT 1 FROM messages);

CREATE TRIGGER message_is_indexed AFTER INSERT ON messages WHEN new.deleted_at IS NULL
BEGIN
    INSERT INTO message_documents (message_id, account_id, sent_at) VALUES (new.id, new.account_id, new.sent_at);
    INSERT INTO message_words (rowid, subject, sender, body)
    SELECT number, new.subject, new.sender, substr(new.body_text, 1, 200000)
    FROM message_documents WHERE message_id = new.id;
END;
CREATE TRIGGER message_is_indexed_anew AFTER UPDATE OF subject, sender, body_text, sent_at ON messages
WHEN new.deleted_at IS NULL
BEGIN
    UPDATE message_documents SET sent_at = new.sent_at WHERE message_id = new.id;
    UPDATE message_words SET subject = new.subject, sender = new.sender, body = substr(new.body_text, 1, 200000)
    WHERE rowid = (SELECT number FROM message_documents WHERE message_id = new.id);
END;
CREATE TRIGGER message_is_lost AFTER UPDATE OF deleted_at ON messages WHEN new.deleted_at IS NOT NULL
BEGIN
    DELETE FROM message_words WHERE rowid = (SELECT number FROM message_documents WHERE message_id = new.id);
    DELETE FROM message_documents WHERE message_id = new.id;
END;
CREATE TRIGGER message_is_removed AFTER DELETE ON messages
BEGIN
    DELETE FROM message_words WHERE rowid = (SELECT number FROM message_documents WHERE message_id = old.id);
    DELETE FROM message_documents WHERE message_id = old.id;
END;

-- What an agent's token is bound to, if to anything: it sees, and proposes for, the mail of this account only.
ALTER TABLE tokens ADD COLUMN account_id TEXT REFERENCES accounts (id) CHECK (account_id IS NULL OR role = 'agent');

-- What an agent has asked for and nobody has ended yet.
CREATE INDEX actions_asked ON actions (asked_by) WHERE state IN ('queued', 'approved_pending', 'executing');
