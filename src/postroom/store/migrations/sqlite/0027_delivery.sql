-- Mail leaves by SMTP, with an outcome for each recipient, from which the state of the mail follows.

-- What was delivered is `sent`, `partially_sent` if not to everybody, and `rejected` is what we or the destination do not take.
-- SQLite cannot change a CHECK, so both tables are made anew.
PRAGMA defer_foreign_keys = ON;
CREATE TABLE old_mail AS SELECT * FROM outbound_mail ORDER BY rowid;
DROP TABLE outbound_mail;
CREATE TABLE outbound_mail (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    domain TEXT NOT NULL,
    username TEXT NOT NULL,
    message_class TEXT NOT NULL CHECK (message_class IN ('transactional', 'bulk')),
    envelope_sender TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('forward', 'reply', 'submitted', 'report')),
    subject TEXT NOT NULL,
    account_id TEXT REFERENCES accounts (id),
    thread_id TEXT,
    source_key TEXT,
    action_id TEXT UNIQUE REFERENCES actions (id),
    state TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'deferred', 'unknown', 'sent', 'partially_sent', 'bounced', 'rejected', 'expired', 'canceled')),
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
    seq INTEGER,
    sender_id INTEGER REFERENCES senders (id),
    ready INTEGER NOT NULL DEFAULT 0,
    require_tls INTEGER NOT NULL DEFAULT 0,
    smtputf8 INTEGER NOT NULL DEFAULT 0,
    body_8bit INTEGER NOT NULL DEFAULT 0,
    envelope_id TEXT,
    return_full INTEGER NOT NULL DEFAULT 0,
    message_id TEXT,
    CHECK ((lease_token IS NOT NULL) = (state = 'sending')),
    CHECK ((ended_at IS NOT NULL) = (state IN ('sent', 'partially_sent', 'bounced', 'rejected', 'expired', 'canceled')))
) STRICT;
INSERT INTO outbound_mail (id, tenant, domain, username, message_class, envelope_sender, kind, subject, account_id, thread_id,
    source_key, action_id, state, cancel_requested, not_before, lease_token, lease_until, sent_message_id, error, asked_at,
    admitted_at, updated_at, ended_at, seq, sender_id, ready)
SELECT id, tenant, domain, username, message_class, envelope_sender, kind, subject, account_id, thread_id, source_key, action_id,
    CASE state WHEN 'delivered' THEN 'sent' ELSE state END, cancel_requested, not_before, lease_token, lease_until,
    sent_message_id, error, asked_at, admitted_at, updated_at, ended_at, seq, sender_id, ready
FROM old_mail ORDER BY rowid;
DROP TABLE old_mail;
CREATE UNIQUE INDEX outbound_mail_seq ON outbound_mail (seq);
CREATE INDEX outbound_mail_due ON outbound_mail (not_before) WHERE state IN ('queued', 'deferred') AND NOT ready;
CREATE INDEX outbound_mail_leased ON outbound_mail (lease_until) WHERE state = 'sending';
CREATE INDEX outbound_mail_open ON outbound_mail (account_id) WHERE state IN ('queued', 'sending', 'deferred', 'unknown');

CREATE INDEX outbound_mail_message ON outbound_mail (message_id) WHERE message_id IS NOT NULL;

-- Each recipient, in the order of the mail. `leaving_at` is when the content began to leave, under the lease of the mail:
-- if its holder dies then, nobody knows whether it arrived. `last_reply` is how the last attempt was answered, `enhanced` its
-- enhanced status code. `notify` are the reports that were asked for, separated by commas, and `original` the address as the
-- sender gave it (RFC 3461).
ALTER TABLE outbound_recipients RENAME TO old_recipients;
CREATE TABLE outbound_recipients (
    mail_id TEXT NOT NULL REFERENCES outbound_mail (id),
    position INTEGER NOT NULL,
    address TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'deferred', 'unknown', 'sent', 'bounced', 'rejected', 'expired', 'canceled')),
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before TEXT NOT NULL,
    last_reply TEXT,
    updated_at TEXT NOT NULL,
    leaving_at TEXT,
    enhanced TEXT,
    bounce_class TEXT CHECK (bounce_class IN ('hard', 'soft', 'policy', 'reputation', 'full', 'greylist', 'content')),
    delay_reported INTEGER NOT NULL DEFAULT 0,
    notify TEXT NOT NULL DEFAULT '',
    original TEXT,
    PRIMARY KEY (mail_id, position),
    CHECK (leaving_at IS NULL OR state = 'sending')
) STRICT;
INSERT INTO outbound_recipients (mail_id, position, address, state, attempts, not_before, last_reply, updated_at)
SELECT mail_id, position, address, CASE state WHEN 'delivered' THEN 'sent' ELSE state END, attempts, not_before, last_reply, updated_at
FROM old_recipients;
DROP TABLE old_recipients;
CREATE INDEX outbound_recipients_unknown ON outbound_recipients (mail_id) WHERE state = 'unknown';

-- Addresses that get no more mail of a tenant.
CREATE TABLE suppressions (
    tenant TEXT NOT NULL,
    address TEXT NOT NULL,
    cause TEXT NOT NULL CHECK (cause IN ('bounce', 'complaint', 'person')),
    detail TEXT,
    mail_id TEXT,
    created_at TEXT NOT NULL,
    PRIMARY KEY (tenant, address)
) STRICT;

-- Destinations to which no mail leaves now.
CREATE TABLE destination_pauses (
    destination TEXT PRIMARY KEY,
    reason TEXT NOT NULL,
    paused_by TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

-- Policies of destinations (RFC 8461), which hold although they cannot be fetched any more.
CREATE TABLE mta_sts_policies (
    domain TEXT PRIMARY KEY,
    policy_id TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('enforce', 'testing', 'none')),
    mx_json TEXT NOT NULL,
    expires_at TEXT NOT NULL
) STRICT;

-- The keys that sign mail of a domain, sealed.
CREATE TABLE dkim_keys (
    id TEXT PRIMARY KEY,
    domain TEXT NOT NULL,
    selector TEXT NOT NULL,
    algorithm TEXT NOT NULL CHECK (algorithm IN ('rsa-sha256', 'ed25519-sha256')),
    key_id TEXT NOT NULL REFERENCES secret_keys (id),
    sealed TEXT NOT NULL,
    public_key TEXT NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (domain, selector)
) STRICT;
