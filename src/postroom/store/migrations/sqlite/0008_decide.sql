-- What decides, what is allowed, what waits for a yes, what is sent, and what is learned from it.

-- The kill switch: while a row stands here nothing is changed in any mailbox (`all`), or in that of one account (its id).
CREATE TABLE pauses (
    scope TEXT PRIMARY KEY,
    reason TEXT NOT NULL,
    set_by TEXT NOT NULL,
    since TEXT NOT NULL
) STRICT;

-- Whose mail, and which labelled mail, is never touched. Values are in lower case; labels by name or id.
CREATE TABLE protected (
    kind TEXT NOT NULL CHECK (kind IN ('sender', 'domain', 'label')),
    value TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    PRIMARY KEY (kind, value)
) STRICT;

-- Besides rules, which have a mode of their own, a category of mail and the model can decide without touching anything.
CREATE TABLE shadows (
    kind TEXT NOT NULL CHECK (kind IN ('category', 'model')),
    name TEXT NOT NULL,
    since TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT;

-- Why an action may run, or waits for a yes; who asked for it; when it first began, for the hourly caps.
ALTER TABLE actions ADD COLUMN safety_json TEXT NOT NULL DEFAULT '{}';
ALTER TABLE actions ADD COLUMN rationale TEXT NOT NULL DEFAULT '';
ALTER TABLE actions ADD COLUMN asked_by TEXT;
ALTER TABLE actions ADD COLUMN started_at TEXT;
CREATE INDEX actions_irreversible ON actions (account_id, started_at)
    WHERE action_type IN ('delete', 'forward', 'auto_reply') AND started_at IS NOT NULL;
CREATE INDEX actions_batch ON actions (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX actions_created ON actions (created_at, id);
CREATE INDEX actions_executed ON actions (executed_at) WHERE state = 'completed';

-- Where an approval was asked for, so that its notice can be closed when it has been answered.
CREATE TABLE approval_notices (
    action_id TEXT NOT NULL REFERENCES actions (id),
    channel TEXT NOT NULL CHECK (channel IN ('discord', 'webhook')),
    reference TEXT NOT NULL,
    sent_at TEXT NOT NULL,
    closed_at TEXT,
    PRIMARY KEY (action_id, channel)
) STRICT;
CREATE INDEX approval_notices_open ON approval_notices (sent_at) WHERE closed_at IS NULL;

-- Every call of a model: what was reserved for it before, what it cost after.
CREATE TABLE model_calls (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    message_id TEXT NOT NULL REFERENCES messages (id),
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt_version TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('started', 'answered', 'refused', 'failed')),
    day TEXT NOT NULL,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    reserved_micros INTEGER NOT NULL,
    cost_micros INTEGER,
    latency_ms INTEGER,
    error TEXT,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    CHECK ((ended_at IS NULL) = (state = 'started'))
) STRICT;
CREATE INDEX model_calls_message ON model_calls (message_id, started_at);
CREATE INDEX model_calls_day ON model_calls (day, started_at);
CREATE INDEX model_calls_started ON model_calls (started_at) WHERE state = 'started';

-- What a day has cost, in millionths of a dollar: reserved before a call, corrected after it.
CREATE TABLE model_spend (
    day TEXT PRIMARY KEY,
    micros INTEGER NOT NULL CHECK (micros >= 0),
    calls INTEGER NOT NULL CHECK (calls >= 0)
) STRICT;

-- Mail on its way out. The text is the whole message, in seven bits. A draft's id is kept before the draft is sent.
CREATE TABLE outbound (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    action_id TEXT NOT NULL UNIQUE REFERENCES actions (id),
    kind TEXT NOT NULL CHECK (kind IN ('forward', 'reply')),
    recipients_json TEXT NOT NULL,
    subject TEXT NOT NULL,
    mime TEXT NOT NULL,
    thread_id TEXT,
    state TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'deferred', 'unknown', 'delivered', 'bounced', 'expired', 'canceled')),
    attempts INTEGER NOT NULL DEFAULT 0,
    lease_token TEXT,
    lease_until TEXT,
    not_before TEXT NOT NULL,
    draft_id TEXT,
    draft_message_id TEXT,
    sent_message_id TEXT,
    error TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    ended_at TEXT,
    CHECK ((lease_token IS NOT NULL) = (state = 'sending')),
    CHECK ((ended_at IS NOT NULL) = (state IN ('delivered', 'bounced', 'expired', 'canceled')))
) STRICT;
CREATE INDEX outbound_due ON outbound (not_before) WHERE state IN ('queued', 'deferred');
CREATE INDEX outbound_leased ON outbound (lease_until) WHERE state = 'sending';
CREATE INDEX outbound_unknown ON outbound (updated_at) WHERE state = 'unknown';

-- Whom an account has answered automatically, and when last.
CREATE TABLE auto_replies (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    sender TEXT NOT NULL,
    action_id TEXT NOT NULL,
    replied_at TEXT NOT NULL,
    PRIMARY KEY (account_id, sender)
) STRICT;

-- What the user did in the mailbox to a message that something had been decided about: for shadow decisions whether he
-- did the same, for others whether he took it back.
CREATE TABLE decision_outcomes (
    decision_id TEXT PRIMARY KEY REFERENCES decisions (id),
    agreed INTEGER NOT NULL,
    what TEXT NOT NULL,
    observed_at TEXT NOT NULL
) STRICT;

CREATE TABLE proposals (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    fingerprint TEXT NOT NULL UNIQUE,
    rule_json TEXT NOT NULL,
    evidence_json TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'accepted', 'dismissed')),
    rule_id TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX proposals_open ON proposals (created_at) WHERE state = 'open';
