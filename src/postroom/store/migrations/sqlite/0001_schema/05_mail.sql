-- Stored mail, and what finds it: the search, the Message-ID, categories. When its time is over, its content is pruned.

CREATE TABLE threads (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    provider_thread_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    last_message_at TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (account_id, provider_thread_id)
) STRICT;

-- Which messages have this Message-ID. Mail of several accounts may share one.
CREATE TABLE message_header_ids (
    header_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    PRIMARY KEY (header_id, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_header_ids_message ON message_header_ids (message_id);

CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    thread_id TEXT NOT NULL REFERENCES threads (id),
    inbox_id TEXT NOT NULL,
    provider_message_id TEXT NOT NULL,
    ingestion_tier TEXT NOT NULL CHECK (ingestion_tier IN ('full', 'metadata')),
    policy_tier TEXT NOT NULL CHECK (policy_tier IN ('high_priority', 'interactive', 'default')),
    sender TEXT NOT NULL,
    subject TEXT NOT NULL,
    headers_json TEXT NOT NULL,
    labels_json TEXT NOT NULL,
    snippet TEXT NOT NULL,
    body_text TEXT NOT NULL,
    has_attachment INTEGER NOT NULL,
    sent_at TEXT NOT NULL,
    deleted_at TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    -- The order of acceptance. Messages with the same number are in the order of their ids, which grow with time.
    accepted_seq INTEGER NOT NULL DEFAULT 0,
    arrival_labels_json TEXT,
    list_id TEXT NOT NULL DEFAULT '',
    -- What stands behind the last @, and all of it without one.
    sender_domain TEXT GENERATED ALWAYS AS (
        substr(sender, length(rtrim(sender, replace(sender, '@', ''))) + 1)
    ) VIRTUAL,
    -- Brought in by a search, and older than live mail: decisions about it are only recorded.
    on_demand INTEGER NOT NULL DEFAULT 0,
    -- When the content of a message was removed because its time was over. The row stays, so that the message is still
    -- known.
    pruned_at TEXT,
    -- Facts for conditions of rules, NULL where they are not known: rules that need them skip the message.
    size_bytes INTEGER,
    -- The name and the MIME type of each attachment.
    attachments_json TEXT,
    -- Whether it answers a message that the user sent.
    reply_to_mine INTEGER,
    -- Why the sender of a message is in doubt: its authentication failed, or it is unclear whom it says it is from.
    -- NULL if it is not in doubt.
    sender_doubt TEXT CHECK (sender_doubt IN ('failed', 'unclear')),
    UNIQUE (account_id, provider_message_id)
) STRICT;
CREATE INDEX messages_thread ON messages (thread_id, sent_at);
CREATE INDEX messages_inbox ON messages (inbox_id);
CREATE INDEX messages_sender ON messages (account_id, sender, sent_at);
CREATE INDEX messages_accepted ON messages (accepted_seq, id);
CREATE INDEX messages_domain ON messages (account_id, sender_domain, sent_at);
CREATE INDEX messages_list ON messages (account_id, list_id, sent_at) WHERE list_id <> '';
CREATE INDEX messages_kept ON messages (created_at, id) WHERE pruned_at IS NULL;
-- Whether the sender had written before.
CREATE INDEX messages_from_sender ON messages (account_id, sender, accepted_seq, id);
-- Ids begin with their time, so mail of one minute has the same beginning; the end is random, and short.
CREATE INDEX messages_short_id ON messages (substr(id, -8));
CREATE INDEX messages_sent ON messages (sent_at, id) WHERE deleted_at IS NULL;

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

-- When the index was changed, stored mail is indexed again, newest first, in small steps; what has an id below this one
-- still waits.
CREATE TABLE search_backlog (
    single INTEGER PRIMARY KEY DEFAULT 1 CHECK (single = 1),
    below TEXT NOT NULL
) STRICT;

-- The categories of each message, written when it is stored.
CREATE TABLE message_categories (
    message_id TEXT NOT NULL REFERENCES messages (id),
    category TEXT NOT NULL,
    PRIMARY KEY (message_id, category)
) STRICT;
CREATE INDEX message_categories_category ON message_categories (category, message_id);

-- The settings under which mail is pruned every day, once somebody has seen what that would prune.
CREATE TABLE retention_approval (
    single INTEGER PRIMARY KEY DEFAULT 1 CHECK (single = 1),
    policy_json TEXT NOT NULL,
    approved_by TEXT NOT NULL,
    approved_at TEXT NOT NULL
) STRICT;

-- Every dry run and every pruning, with counts by tier and category.
CREATE TABLE retention_runs (
    id TEXT PRIMARY KEY,
    is_dry INTEGER NOT NULL,
    policy_json TEXT NOT NULL,
    messages INTEGER NOT NULL,
    held INTEGER NOT NULL,
    counts_json TEXT NOT NULL,
    ran_by TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT NOT NULL
) STRICT;
CREATE INDEX retention_runs_newest ON retention_runs (ended_at, id);
