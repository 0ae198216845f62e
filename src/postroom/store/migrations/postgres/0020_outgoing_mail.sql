-- Outgoing mail stands on its own: whose it is, to whom it goes, and how far it has come to each of them. An action may have
-- asked for it, and then ends with it.

-- A mail, and on whose behalf it is sent: a tenant, a domain and a user. It leaves through the mailbox of its account, if it
-- has one. `not_before` is the earliest of all its recipients who still wait.
CREATE TABLE outbound_mail (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    domain text NOT NULL,
    username text NOT NULL,
    message_class text NOT NULL CHECK (message_class IN ('transactional', 'bulk')),
    envelope_sender text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('forward', 'reply', 'submitted')),
    subject text NOT NULL,
    account_id uuid REFERENCES accounts (id),
    thread_id text,
    source_key text,
    action_id uuid UNIQUE REFERENCES actions (id),
    state text NOT NULL CHECK (state IN ('queued', 'sending', 'deferred', 'unknown', 'delivered', 'bounced', 'expired', 'canceled')),
    cancel_requested boolean NOT NULL DEFAULT false,
    not_before timestamptz NOT NULL,
    lease_token uuid,
    lease_until timestamptz,
    sent_message_id text,
    error text,
    asked_at timestamptz NOT NULL,
    admitted_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    ended_at timestamptz,
    CHECK ((lease_token IS NOT NULL) = (state = 'sending')),
    CHECK ((ended_at IS NOT NULL) = (state IN ('delivered', 'bounced', 'expired', 'canceled')))
);
INSERT INTO outbound_mail
SELECT o.id, lower(substr(a.email, strpos(a.email, '@') + 1)), lower(substr(a.email, strpos(a.email, '@') + 1)), a.email,
    'transactional', a.email, o.kind, o.subject, o.account_id, o.thread_id, o.source_key, o.action_id, o.state, false, o.not_before,
    o.lease_token, o.lease_until, o.sent_message_id, o.error, x.created_at, o.created_at, o.updated_at, o.ended_at
FROM outbound o JOIN accounts a ON a.id = o.account_id JOIN actions x ON x.id = o.action_id;
CREATE INDEX outbound_mail_due ON outbound_mail (not_before) WHERE state IN ('queued', 'deferred');
CREATE INDEX outbound_mail_leased ON outbound_mail (lease_until) WHERE state = 'sending';
CREATE INDEX outbound_mail_open ON outbound_mail (account_id) WHERE state IN ('queued', 'sending', 'deferred', 'unknown');

-- Each recipient, in the order of the mail. `last_reply` is how the last failed attempt was answered.
CREATE TABLE outbound_recipients (
    mail_id uuid NOT NULL REFERENCES outbound_mail (id),
    position bigint NOT NULL,
    address text NOT NULL,
    state text NOT NULL CHECK (state IN ('queued', 'sending', 'deferred', 'unknown', 'delivered', 'bounced', 'expired', 'canceled')),
    attempts bigint NOT NULL DEFAULT 0,
    not_before timestamptz NOT NULL,
    last_reply text,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (mail_id, position)
);
INSERT INTO outbound_recipients
SELECT o.id, r.place - 1, r.value, o.state, o.attempts, o.not_before,
    CASE WHEN o.state NOT IN ('unknown', 'expired', 'canceled') THEN o.error END, o.updated_at
FROM outbound o, json_array_elements_text(o.recipients_json) WITH ORDINALITY AS r (value, place);

-- The whole message, byte for byte. It is kept until the mail has ended, and no longer: it is somebody's mail.
CREATE TABLE outbound_contents (
    mail_id uuid PRIMARY KEY REFERENCES outbound_mail (id),
    content bytea NOT NULL
);
INSERT INTO outbound_contents SELECT id, convert_to(mime, 'UTF8') FROM outbound WHERE mime <> '';

-- The draft of a mail in its mailbox, stored before the draft is sent. The id of the message in it is where to look for the
-- mail once the draft is gone.
CREATE TABLE outbound_drafts (
    mail_id uuid PRIMARY KEY REFERENCES outbound_mail (id),
    draft_id text NOT NULL,
    provider_message_id text
);
INSERT INTO outbound_drafts SELECT id, draft_id, draft_message_id FROM outbound WHERE draft_id IS NOT NULL;

DROP TABLE outbound;
