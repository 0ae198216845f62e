-- What decides, what is allowed, what waits for a yes, what is sent, and what is learned from it.

-- The kill switch: while a row stands here nothing is changed in any mailbox (`all`), or in that of one account (its id).
CREATE TABLE pauses (
    scope text PRIMARY KEY,
    reason text NOT NULL,
    set_by text NOT NULL,
    since timestamptz NOT NULL
);

-- Whose mail, and which labelled mail, is never touched. Values are in lower case; labels by name or id.
CREATE TABLE protected (
    kind text NOT NULL CHECK (kind IN ('sender', 'domain', 'label')),
    value text NOT NULL,
    reason text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL,
    PRIMARY KEY (kind, value)
);

-- Besides rules, which have a mode of their own, a category of mail and the model can decide without touching anything.
CREATE TABLE shadows (
    kind text NOT NULL CHECK (kind IN ('category', 'model')),
    name text NOT NULL,
    since timestamptz NOT NULL,
    PRIMARY KEY (kind, name)
);

-- Why an action may run, or waits for a yes; who asked for it; when it first began, for the hourly caps.
ALTER TABLE actions ADD COLUMN safety_json json NOT NULL DEFAULT '{}';
ALTER TABLE actions ADD COLUMN rationale text NOT NULL DEFAULT '';
ALTER TABLE actions ADD COLUMN asked_by text;
ALTER TABLE actions ADD COLUMN started_at timestamptz;
CREATE INDEX actions_irreversible ON actions (account_id, started_at)
    WHERE action_type IN ('delete', 'forward', 'auto_reply') AND started_at IS NOT NULL;
CREATE INDEX actions_batch ON actions (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX actions_created ON actions (created_at, id);
CREATE INDEX actions_executed ON actions (executed_at) WHERE state = 'completed';

-- Where an approval was asked for, so that its notice can be closed when it has been answered.
CREATE TABLE approval_notices (
    action_id uuid NOT NULL REFERENCES actions (id),
    channel text NOT NULL CHECK (channel IN ('discord', 'webhook')),
    reference text NOT NULL,
    sent_at timestamptz NOT NULL,
    closed_at timestamptz,
    PRIMARY KEY (action_id, channel)
);
CREATE INDEX approval_notices_open ON approval_notices (sent_at) WHERE closed_at IS NULL;

-- Every call of a model: what was reserved for it before, what it cost after.
CREATE TABLE model_calls (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    message_id uuid NOT NULL REFERENCES messages (id),
    provider text NOT NULL,
    model text NOT NULL,
    prompt_version text NOT NULL,
    state text NOT NULL CHECK (state IN ('started', 'answered', 'refused', 'failed')),
    day text NOT NULL,
    input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    reserved_micros bigint NOT NULL,
    cost_micros bigint,
    latency_ms bigint,
    error text,
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    CHECK ((ended_at IS NULL) = (state = 'started'))
);
CREATE INDEX model_calls_message ON model_calls (message_id, started_at);
CREATE INDEX model_calls_day ON model_calls (day, started_at);
CREATE INDEX model_calls_started ON model_calls (started_at) WHERE state = 'started';

-- What a day has cost, in millionths of a dollar: reserved before a call, corrected after it.
CREATE TABLE model_spend (
    day text PRIMARY KEY,
    micros bigint NOT NULL CHECK (micros >= 0),
    calls bigint NOT NULL CHECK (calls >= 0)
);

-- Mail on its way out. The text is the whole message, in seven bits. A draft's id is kept before the draft is sent.
CREATE TABLE outbound (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    action_id uuid NOT NULL UNIQUE REFERENCES actions (id),
    kind text NOT NULL CHECK (kind IN ('forward', 'reply')),
    recipients_json json NOT NULL,
    subject text NOT NULL,
    mime text NOT NULL,
    thread_id text,
    state text NOT NULL CHECK (state IN ('queued', 'sending', 'deferred', 'unknown', 'delivered', 'bounced', 'expired', 'canceled')),
    attempts bigint NOT NULL DEFAULT 0,
    lease_token uuid,
    lease_until timestamptz,
    not_before timestamptz NOT NULL,
    draft_id text,
    draft_message_id text,
    sent_message_id text,
    error text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    ended_at timestamptz,
    CHECK ((lease_token IS NOT NULL) = (state = 'sending')),
    CHECK ((ended_at IS NOT NULL) = (state IN ('delivered', 'bounced', 'expired', 'canceled')))
);
CREATE INDEX outbound_due ON outbound (not_before) WHERE state IN ('queued', 'deferred');
CREATE INDEX outbound_leased ON outbound (lease_until) WHERE state = 'sending';
CREATE INDEX outbound_unknown ON outbound (updated_at) WHERE state = 'unknown';

-- Whom an account has answered automatically, and when last.
CREATE TABLE auto_replies (
    account_id uuid NOT NULL REFERENCES accounts (id),
    sender text NOT NULL,
    action_id uuid NOT NULL,
    replied_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, sender)
);

-- What the user did in the mailbox to a message that something had been decided about: for shadow decisions whether he
-- did the same, for others whether he took it back.
CREATE TABLE decision_outcomes (
    decision_id uuid PRIMARY KEY REFERENCES decisions (id),
    agreed boolean NOT NULL,
    what text NOT NULL,
    observed_at timestamptz NOT NULL
);

CREATE TABLE proposals (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    fingerprint text NOT NULL UNIQUE,
    rule_json json NOT NULL,
    evidence_json json NOT NULL,
    state text NOT NULL CHECK (state IN ('open', 'accepted', 'dismissed')),
    rule_id uuid,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX proposals_open ON proposals (created_at) WHERE state = 'open';
