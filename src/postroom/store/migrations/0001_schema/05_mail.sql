-- Stored mail, and what finds it: the search, the Message-ID, categories. When its time is over, its content is pruned.

CREATE TABLE threads (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    provider_thread_id text NOT NULL,
    subject text NOT NULL,
    last_message_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (account_id, provider_thread_id)
);

-- Which messages have this Message-ID. Mail of several accounts may share one.
CREATE TABLE message_header_ids (
    header_id text NOT NULL,
    message_id uuid NOT NULL,
    PRIMARY KEY (header_id, message_id)
){| STRICT, WITHOUT ROWID};
CREATE INDEX message_header_ids_message ON message_header_ids (message_id);
-- only postgres:

-- Mail whose content is no longer kept has no words in the search index.
CREATE FUNCTION index_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.pruned_at IS NOT NULL THEN
        new.words := NULL;
        new.head_words := NULL;
        DELETE FROM postroom.message_header_ids WHERE message_id = new.id;
        RETURN new;
    END IF;
    new.words := postroom.words_of_mail(new.sender, new.headers_json, new.subject, new.body_text);
    new.head_words := postroom.words_of_head(new.sender, new.headers_json, new.subject);
    INSERT INTO postroom.message_header_ids (header_id, message_id)
    SELECT DISTINCT left(trim(h ->> 1), 500), new.id FROM json_array_elements(new.headers_json) AS h
    WHERE lower(h ->> 0) = 'message-id' AND trim(h ->> 1) <> ''
    ON CONFLICT DO NOTHING;
    RETURN new;
END $$;

CREATE FUNCTION forget_header_ids() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM postroom.message_header_ids WHERE message_id = old.id;
    RETURN old;
END $$;
-- both:

CREATE TABLE messages (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    thread_id uuid NOT NULL REFERENCES threads (id),
    inbox_id uuid NOT NULL,
    provider_message_id text NOT NULL,
    ingestion_tier text NOT NULL CHECK (ingestion_tier IN ('full', 'metadata')),
    policy_tier text NOT NULL CHECK (policy_tier IN ('high_priority', 'interactive', 'default')),
    sender text NOT NULL,
    subject text NOT NULL,
    headers_json json NOT NULL,
    labels_json json NOT NULL,
    snippet text NOT NULL,
    body_text text NOT NULL,
    has_attachment boolean NOT NULL,
    sent_at timestamptz NOT NULL,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- The order of acceptance. Messages with the same number are in the order of their ids, which grow with time.
    accepted_seq bigint NOT NULL DEFAULT 0,
    arrival_labels_json json,
    list_id text NOT NULL DEFAULT '',
-- only postgres:
    words tsvector,
-- only sqlite:
    -- What stands behind the last @, and all of it without one.
    sender_domain TEXT GENERATED ALWAYS AS (
        substr(sender, length(rtrim(sender, replace(sender, '@', ''))) + 1)
    ) VIRTUAL,
-- both:
    -- Brought in by a search, and older than live mail: decisions about it are only recorded.
    on_demand boolean NOT NULL DEFAULT false,
    -- When the content of a message was removed because its time was over. The row stays, so that the message is still
    -- known.
    pruned_at timestamptz,
    -- Facts for conditions of rules, NULL where they are not known: rules that need them skip the message.
    size_bytes bigint,
    -- The name and the MIME type of each attachment.
    attachments_json text,
    -- Whether it answers a message that the user sent.
    reply_to_mine boolean,
-- only postgres:
    head_words tsvector,
-- both:
    -- Why the sender of a message is in doubt: its authentication failed, or it is unclear whom it says it is from.
    -- NULL if it is not in doubt.
    sender_doubt text CHECK (sender_doubt IN ('failed', 'unclear')),
    UNIQUE (account_id, provider_message_id)
);
CREATE INDEX messages_thread ON messages (thread_id, sent_at);
CREATE INDEX messages_inbox ON messages (inbox_id);
CREATE INDEX messages_sender ON messages (account_id, sender, sent_at);
CREATE INDEX messages_accepted ON messages (accepted_seq, id);
CREATE INDEX messages_domain ON messages (account_id, {substring(sender FROM '[^@]*$')|sender_domain}, sent_at);
CREATE INDEX messages_list ON messages (account_id, list_id, sent_at) WHERE list_id <> '';
-- only postgres:
CREATE INDEX messages_words ON messages USING gin (words) WHERE deleted_at IS NULL AND words IS NOT NULL;
CREATE INDEX messages_sent ON messages (sent_at, id) WHERE deleted_at IS NULL;
-- both:
CREATE INDEX messages_kept ON messages (created_at, id) WHERE pruned_at IS NULL;
-- Whether the sender had written before.
CREATE INDEX messages_from_sender ON messages (account_id, sender, accepted_seq, id);
-- Ids begin with their time, so mail of one minute has the same beginning; the end is random, and short.
-- only postgres:
CREATE INDEX messages_short_id ON messages (right(id::text, 8) text_pattern_ops);
CREATE INDEX messages_head_words ON messages USING gin (head_words) WHERE deleted_at IS NULL AND head_words IS NOT NULL;
CREATE INDEX messages_attached ON messages (sent_at, id) WHERE deleted_at IS NULL AND has_attachment;
-- A search for a label that few messages have, or none, would walk back over all mail.
CREATE INDEX messages_by_label ON messages USING gin (label_keys(labels_json)) WHERE deleted_at IS NULL;
CREATE TRIGGER message_is_indexed BEFORE INSERT OR UPDATE OF sender, subject, headers_json, body_text, pruned_at ON messages
FOR EACH ROW EXECUTE FUNCTION index_message();
CREATE TRIGGER message_is_removed AFTER DELETE ON messages FOR EACH ROW EXECUTE FUNCTION forget_header_ids();
-- only sqlite:
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
-- both:

-- When the index was changed, stored mail is indexed again, newest first, in small steps; what has an id below this one
-- still waits.
CREATE TABLE search_backlog (
    single boolean PRIMARY KEY DEFAULT true CHECK (single{| = 1}),
    below uuid NOT NULL
);

-- The categories of each message, written when it is stored.
CREATE TABLE message_categories (
    message_id uuid NOT NULL REFERENCES messages (id),
    category text NOT NULL,
    PRIMARY KEY (message_id, category)
);
CREATE INDEX message_categories_category ON message_categories (category, message_id);

-- The settings under which mail is pruned every day, once somebody has seen what that would prune.
CREATE TABLE retention_approval (
    single boolean PRIMARY KEY DEFAULT true CHECK (single{| = 1}),
    policy_json json NOT NULL,
    approved_by text NOT NULL,
    approved_at timestamptz NOT NULL
);

-- Every dry run and every pruning, with counts by tier and category.
CREATE TABLE retention_runs (
    id uuid PRIMARY KEY,
    is_dry boolean NOT NULL,
    policy_json json NOT NULL,
    messages bigint NOT NULL,
    held bigint NOT NULL,
    counts_json json NOT NULL,
    ran_by text NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL
);
CREATE INDEX retention_runs_newest ON retention_runs (ended_at, id);
