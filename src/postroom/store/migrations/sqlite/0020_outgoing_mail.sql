-- Outgoing mail stands on its own: whose it is, to whom it goes, and how far it has come to each of them. An action may have
-- asked for it, and then ends with it.

-- A mail, and on whose behalf it is sent: a tenant, a domain and a user. It leaves through the mailbox of its account, if it
-- has one. `not_before` is the earliest of all its recipients who still wait.
CREATE TABLE outbound_mail (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    domain TEXT NOT NULL,
    username TEXT NOT NULL,
    message_class TEXT NOT NULL CHECK (message_class IN ('transactional', 'bulk')),
    envelope_sender TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('forward', 'reply', 'submitted')),
    subject TEXT NOT NULL,
    account_id TEXT REFERENCES accounts (id),
    thread_id TEXT,
    source_key TEXT,
    action_id TEXT UNIQUE REFERENCES actions (id),
    state TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'deferred', 'unknown', 'delivered', 'bounced', 'expired', 'canceled')),
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    not_before TEXT NOT NULL,
    lease_token TEXT,
    lease_until TEXT,
    sent_message_id TEXT,
    error TEXT,
    asked_at TEXT NOT NULL,
    admitted_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    ended_at TEXT,
    CHECK ((lease_token IS NOT NULL) = (state = 'sending')),
    CHECK ((ended_at IS NOT NULL) = (state IN ('delivered', 'bounced', 'expired', 'canceled')))
) STRICT;
INSERT INTO outbound_mail
SELECT o.id, lower(substr(a.email, instr(a.email, '@') + 1)), lower(substr(a.email, instr(a.email, '@') + 1)), a.email,
    'transactional', a.email, o.kind, o.subject, o.account_id, o.thread_id, o.source_key, o.action_id, o.state, 0, o.not_before,
    o.lease_token, o.lease_until, o.sent_message_id, o.error, x.created_at, o.created_at, o.updated_at, o.ended_at
FROM outbound o JOIN accounts a ON a.id = o.account_id JOIN actions x ON x.id = o.action_id;
CREATE INDEX outbound_mail_due ON outbound_mail (not_before) WHERE state IN ('queued', 'deferred');
CREATE INDEX outbound_mail_leased ON outbound_mail (lease_until) WHERE state = 'sending';
CREATE INDEX outbound_mail_open ON outbound_mail (account_id) WHERE state IN ('queued', 'sending', 'deferred', 'unknown');

-- Each recipient, in the order of the mail. `last_reply` is how the last failed attempt was answered.
CREATE TABLE outbound_recipients (
    mail_id TEXT NOT NULL REFERENCES outbound_mail (id),
    position INTEGER NOT NULL,
    address TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'deferred', 'unknown', 'delivered', 'bounced', 'expired', 'canceled')),
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before TEXT NOT NULL,
    last_reply TEXT,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (mail_id, position)
) STRICT;
INSERT INTO outbound_recipients
SELECT o.id, r.key, r.value, o.state, o.attempts, o.not_before,
    CASE WHEN o.state NOT IN ('unknown', 'expired', 'canceled') THEN o.error END, o.updated_at
FROM outbound o, json_each(o.recipients_json) AS r;

-- The whole message, byte for byte. It is kept until the mail has ended, and no longer: it is somebody's mail.
CREATE TABLE outbound_contents (
    mail_id TEXT PRIMARY KEY REFERENCES outbound_mail (id),
    content BLOB NOT NULL
) STRICT;
INSERT INTO outbound_contents SELECT id, CAST(mime AS BLOB) FROM outbound WHERE mime <> '';

-- The draft of a mail in its mailbox, stored before the draft is sent. The id of the message in it is where to look for the
-- mail once the draft is gone.
CREATE TABLE outbound_drafts (
    mail_id TEXT PRIMARY KEY REFERENCES outbound_mail (id),
    draft_id TEXT NOT NULL,
    provider_message_id TEXT
) STRICT;
INSERT INTO outbound_drafts SELECT id, draft_id, draft_message_id FROM outbound WHERE draft_id IS NOT NULL;

DROP TABLE outbound;
