-- The words of mail, as they are indexed and searched.

-- The row ids of messages, whose key is text, are not stable: documents have numbers of their own. What the mailbox has
-- lost has none.
CREATE TABLE message_documents (
    number INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL,
    sent_at TEXT NOT NULL,
    has_attachment INTEGER NOT NULL
) STRICT;
CREATE INDEX message_documents_sent ON message_documents (sent_at, message_id);

-- Only the words, not the text once more: accents are folded, names stand beside addresses, recipients have a column of
-- their own. A mark is part of the word that it stands in, as scripts of India need it.
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
