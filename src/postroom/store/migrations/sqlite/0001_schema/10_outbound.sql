-- Outgoing mail: whose it is, to whom it goes, and how far it has come to each of them. An action may have asked for it,
-- and then ends with it.

-- A mail, and on whose behalf it is sent: a tenant, a domain and a user. It leaves through the mailbox of its account, if
-- it has one, or by SMTP. `not_before` is the earliest of all its recipients who still wait. The state of the mail follows
-- from those of its recipients: `partially_sent` if it did not reach all of them.
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
    state TEXT NOT NULL
        CHECK (state IN ('queued', 'sending', 'deferred', 'unknown', 'sent', 'partially_sent', 'bounced', 'rejected',
            'expired', 'canceled')),
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
    -- The order of acceptance, the sender, and whether the mail stands in `outbound_ready`. Mail that is due and does
    -- not is put there by the next dispatcher.
    seq INTEGER,
    sender_id INTEGER REFERENCES senders (id),
    ready INTEGER NOT NULL DEFAULT 0,
    require_tls INTEGER NOT NULL DEFAULT 0,
    smtputf8 INTEGER NOT NULL DEFAULT 0,
    body_8bit INTEGER NOT NULL DEFAULT 0,
    envelope_id TEXT,
    return_full INTEGER NOT NULL DEFAULT 0,
    message_id TEXT,
    -- How often a mail was leased, and the discipline under which it was leased last; NULL if that was not measured.
    leases INTEGER NOT NULL DEFAULT 0,
    discipline TEXT CHECK (discipline IN ('fair', 'fifo')),
    -- Since when a mail is in delivery, and in which lane it was chosen: the bound of all processes counts both.
    leased_at TEXT,
    leased_lane TEXT,
    CHECK ((lease_token IS NOT NULL) = (state = 'sending')),
    CHECK ((ended_at IS NOT NULL) = (state IN ('sent', 'partially_sent', 'bounced', 'rejected', 'expired', 'canceled')))
) STRICT;
CREATE UNIQUE INDEX outbound_mail_seq ON outbound_mail (seq);
CREATE INDEX outbound_mail_due ON outbound_mail (not_before) WHERE state IN ('queued', 'deferred') AND NOT ready;
CREATE INDEX outbound_mail_leased ON outbound_mail (lease_until) WHERE state = 'sending';
CREATE INDEX outbound_mail_open ON outbound_mail (account_id) WHERE state IN ('queued', 'sending', 'deferred', 'unknown');
CREATE INDEX outbound_mail_message ON outbound_mail (message_id) WHERE message_id IS NOT NULL;
-- Mail that people look for by its state. What waits and what was sent is found in the order of acceptance.
CREATE INDEX outbound_mail_troubled ON outbound_mail (state, seq)
    WHERE state IN ('deferred', 'unknown', 'partially_sent', 'bounced', 'rejected', 'expired', 'canceled');

-- Each recipient, in the order of the mail. `leaving_at` is when the content began to leave, under the lease of the mail:
-- if its holder dies then, nobody knows whether it arrived. `last_reply` is how the last attempt was answered, `enhanced`
-- its enhanced status code. `notify` are the reports that were asked for, separated by commas, and `original` the address
-- as the sender gave it (RFC 3461). A refusal without a reason (`unexplained`) is no proof that an address does not exist:
-- it is a class of its own, and a strike that expires.
CREATE TABLE outbound_recipients (
    mail_id TEXT NOT NULL REFERENCES outbound_mail (id),
    position INTEGER NOT NULL,
    address TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('queued', 'sending', 'deferred', 'unknown', 'sent', 'bounced', 'rejected', 'expired', 'canceled')),
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before TEXT NOT NULL,
    last_reply TEXT,
    updated_at TEXT NOT NULL,
    leaving_at TEXT,
    enhanced TEXT,
    bounce_class TEXT
        CHECK (bounce_class IN ('hard', 'soft', 'policy', 'reputation', 'full', 'greylist', 'content', 'unexplained')),
    delay_reported INTEGER NOT NULL DEFAULT 0,
    notify TEXT NOT NULL DEFAULT '',
    original TEXT,
    -- When a recipient complained about the mail: a complaint counts once, however often it is reported.
    complained_at TEXT,
    PRIMARY KEY (mail_id, position),
    CHECK (leaving_at IS NULL OR state = 'sending')
) STRICT;
CREATE INDEX outbound_recipients_unknown ON outbound_recipients (mail_id) WHERE state = 'unknown';

-- Every attempt at a recipient, so that people can see why a mail was late. While a mail is held back, one row counts how
-- often.
CREATE TABLE outbound_attempts (
    mail_id TEXT NOT NULL REFERENCES outbound_mail (id),
    position INTEGER NOT NULL,
    number INTEGER NOT NULL,
    outcome TEXT NOT NULL
        CHECK (outcome IN ('sent', 'deferred', 'bounced', 'rejected', 'expired', 'canceled', 'unknown', 'held')),
    started_at TEXT NOT NULL,
    ended_at TEXT NOT NULL,
    times INTEGER NOT NULL DEFAULT 1,
    host TEXT,
    tls TEXT,
    reply TEXT,
    PRIMARY KEY (mail_id, position, number, outcome)
) STRICT, WITHOUT ROWID;

-- The whole message, byte for byte. It is kept until the mail has ended, and no longer: it is somebody's mail.
CREATE TABLE outbound_contents (
    mail_id TEXT PRIMARY KEY REFERENCES outbound_mail (id),
    content BLOB NOT NULL
) STRICT;

-- The draft of a mail in its mailbox, stored before the draft is sent. The id of the message in it is where to look for the
-- mail once the draft is gone.
CREATE TABLE outbound_drafts (
    mail_id TEXT PRIMARY KEY REFERENCES outbound_mail (id),
    draft_id TEXT NOT NULL,
    provider_message_id TEXT
) STRICT;

-- A caller that does not know whether its request arrived sends it again under the same key: the first mail is the answer.
-- `request_sha256` tells a repeated request from another one. A key is kept as long as its mail.
CREATE TABLE submission_keys (
    sender_id INTEGER NOT NULL REFERENCES senders (id),
    idempotency_key TEXT NOT NULL,
    request_sha256 TEXT NOT NULL CHECK (length(request_sha256) = 64),
    mail_id TEXT NOT NULL UNIQUE REFERENCES outbound_mail (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    PRIMARY KEY (sender_id, idempotency_key)
) STRICT;

-- Mail that may leave now. `turn_id` is the sender, or 0 for mail of tenants that are not on the fair queue.
CREATE TABLE outbound_ready (
    seq INTEGER PRIMARY KEY,
    mail_id TEXT NOT NULL UNIQUE REFERENCES outbound_mail (id),
    turn_id INTEGER NOT NULL,
    retry INTEGER NOT NULL,
    bulk INTEGER NOT NULL,
    cost INTEGER NOT NULL CHECK (cost > 0)
) STRICT;
CREATE INDEX outbound_ready_turns ON outbound_ready (turn_id, retry, bulk, seq);

-- Where each tenant, domain and sender stands in each lane: at which virtual time its next mail may begin (`start`), the
-- virtual time of its children (`clock`), and how many of them wait; of a sender, how many mails. What is held does not
-- take part. Lanes stand here too, and the clock of all of them is that of the root.
CREATE TABLE outbound_turns (
    lane TEXT NOT NULL CHECK (lane IN ('high', 'normal', 'low', 'throttled', 'retry', 'fifo')),
    level TEXT NOT NULL CHECK (level IN ('root', 'lane', 'tenant', 'domain', 'sender')),
    node_id INTEGER NOT NULL,
    parent_id INTEGER NOT NULL,
    start REAL NOT NULL DEFAULT 0,
    clock REAL NOT NULL DEFAULT 0,
    weight REAL NOT NULL DEFAULT 1 CHECK (weight > 0),
    waiting INTEGER NOT NULL DEFAULT 0 CHECK (waiting >= 0),
    held INTEGER NOT NULL DEFAULT 0,
    -- Whether a node takes part: something waits in it, and it is not held. With this in the index instead of the
    -- count, a mail that is taken from many changes the row and no index.
    busy INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (lane, level, node_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbound_turns_node ON outbound_turns (level, node_id);
CREATE INDEX outbound_turns_next ON outbound_turns (lane, level, parent_id, start, node_id) WHERE busy;

-- Addresses that get no more mail of a tenant. One that follows from strikes (`refusals`) ends by itself, at `expires_at`.
CREATE TABLE suppressions (
    tenant TEXT NOT NULL,
    address TEXT NOT NULL,
    cause TEXT NOT NULL CHECK (cause IN ('bounce', 'complaint', 'person', 'refusals')),
    detail TEXT,
    mail_id TEXT,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    PRIMARY KEY (tenant, address),
    CHECK ((expires_at IS NOT NULL) = (cause = 'refusals'))
) STRICT;
CREATE INDEX suppressions_newest ON suppressions (created_at, tenant, address);
CREATE INDEX suppressions_of_tenant ON suppressions (tenant, created_at, address);
CREATE INDEX suppressions_expiring ON suppressions (expires_at) WHERE expires_at IS NOT NULL;

-- Refusals without a reason, one at most for each day of UTC. A delivery to the address takes them back.
CREATE TABLE strikes (
    tenant TEXT NOT NULL,
    address TEXT NOT NULL,
    day TEXT NOT NULL,
    reply TEXT,
    mail_id TEXT,
    created_at TEXT NOT NULL,
    PRIMARY KEY (tenant, address, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX strikes_newest ON strikes (created_at, tenant, address);

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
