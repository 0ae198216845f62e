-- Rules, the model, what they decided, and what is learned from it.

-- Deterministic rules. Lower priority first, first match wins; one that `continues` lets the rules after it add to what it
-- does. A broken rule is disabled with a reason, never deleted.
CREATE TABLE rules (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    description text NOT NULL DEFAULT '',
    scope text NOT NULL CHECK (scope IN ('global', 'account', 'domain', 'sender')),
    scope_ref text CHECK ((scope_ref IS NULL) = (scope = 'global')),
    priority bigint NOT NULL DEFAULT 100,
    conditions_json json NOT NULL,
    action_type text NOT NULL
        CHECK (action_type IN ('none', 'archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread', 'star',
            'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply', 'several')),
    parameters_json json NOT NULL,
    mode text NOT NULL DEFAULT 'active' CHECK (mode IN ('active', 'shadow')),
    needs_approval boolean NOT NULL DEFAULT false,
    enabled boolean NOT NULL DEFAULT true,
    disabled_reason text CHECK (disabled_reason IS NULL OR NOT enabled),
    origin text NOT NULL DEFAULT 'user',
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    continues boolean NOT NULL DEFAULT false,
    -- A rule that a token writes and that sends or deletes mail decides nothing until a person has confirmed it. The
    -- hash is that of the content which a person wrote or confirmed. `earlier` stands for any content of a rule that
    -- people had in use before confirmations were stored; a token that changes it ends that.
    confirmed_hash text CHECK (confirmed_hash = 'earlier' OR length(confirmed_hash) = 64)
);
CREATE UNIQUE INDEX rules_name ON rules (name);
CREATE INDEX rules_enabled ON rules (scope, scope_ref, priority) WHERE enabled;

-- Rules in words, given to the model with the messages of their scope.
CREATE TABLE model_rules (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    scope text NOT NULL CHECK (scope IN ('global', 'account', 'domain', 'sender')),
    scope_ref text CHECK ((scope_ref IS NULL) = (scope = 'global')),
    position bigint NOT NULL DEFAULT 0,
    rule_text text NOT NULL,
    mode text NOT NULL DEFAULT 'active' CHECK (mode IN ('active', 'shadow')),
    enabled boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX model_rules_enabled ON model_rules (scope, scope_ref, position) WHERE enabled;

-- What the model is told about the user's wishes in general.
CREATE TABLE directions (
    id uuid PRIMARY KEY,
    scope text NOT NULL DEFAULT 'global' CHECK (scope IN ('global', 'account')),
    scope_ref text CHECK ((scope_ref IS NULL) = (scope = 'global')),
    position bigint NOT NULL DEFAULT 0,
    content text NOT NULL,
    enabled boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- Whose mail, and which labelled mail, is never touched. Values are in lower case; labels by name or id.
CREATE TABLE protected (
    kind text NOT NULL CHECK (kind IN ('sender', 'domain', 'label')),
    value text NOT NULL,
    reason text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL,
    PRIMARY KEY (kind, value)
);

-- The labels that a protected name stood for when it was seen: a label that is renamed stays protected.
CREATE TABLE protected_labels (
    value text NOT NULL,
    account_id uuid NOT NULL REFERENCES accounts (id),
    provider_label_id text NOT NULL,
    PRIMARY KEY (value, account_id, provider_label_id)
);

-- Besides rules, which have a mode of their own, a category of mail and the model can decide without touching anything.
CREATE TABLE shadows (
    kind text NOT NULL CHECK (kind IN ('category', 'model')),
    name text NOT NULL,
    since timestamptz NOT NULL,
    PRIMARY KEY (kind, name)
);

-- One per message and generation; asking again is a new generation. Shadow decisions touch nothing.
CREATE TABLE decisions (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    message_id uuid NOT NULL REFERENCES messages (id),
    generation bigint NOT NULL DEFAULT 1,
    source text NOT NULL CHECK (source IN ('deterministic', 'llm', 'none')),
    shadow boolean NOT NULL DEFAULT false,
    rule_id uuid,
    rule_name text,
    action_type text NOT NULL
        CHECK (action_type IN ('none', 'archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread', 'star',
            'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply', 'several')),
    parameters_json json NOT NULL,
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    needs_approval boolean NOT NULL DEFAULT false,
    rationale text NOT NULL,
    safety_json json NOT NULL,
    model text,
    prompt_version text,
    created_at timestamptz NOT NULL,
    -- Other actions that the model weighed, with its confidence in each: a list, or NULL where it named none.
    alternatives_json json
);
CREATE UNIQUE INDEX decisions_live ON decisions (message_id, generation) WHERE NOT shadow;
CREATE INDEX decisions_rule ON decisions (rule_id, created_at);
CREATE INDEX decisions_shadow ON decisions (source, rule_id, created_at) WHERE shadow;
CREATE INDEX decisions_message ON decisions (message_id, generation);

-- The rules that added to a decision, besides the one that it is recorded under.
CREATE TABLE decision_rules (
    decision_id uuid NOT NULL REFERENCES decisions (id),
    rule_id uuid NOT NULL,
    rule_name text NOT NULL,
    PRIMARY KEY (decision_id, rule_id)
){| STRICT, WITHOUT ROWID};
CREATE INDEX decision_rules_name ON decision_rules (rule_name);

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
    -- The backfill that a call is charged to, and the day of its cap.
    backfill_job_id uuid REFERENCES backfill_jobs (id),
    backfill_day text,
    -- Whose share of the day's budget a call has used, as a hash: kept for a week, for sums over the day.
    share_sender text,
    share_domain text,
    CHECK ((ended_at IS NULL) = (state = 'started'))
);
CREATE INDEX model_calls_message ON model_calls (message_id, started_at);
CREATE INDEX model_calls_day ON model_calls (day, started_at);
CREATE INDEX model_calls_started ON model_calls (started_at) WHERE state = 'started';
CREATE INDEX model_calls_backfill ON model_calls (backfill_job_id, message_id) WHERE backfill_job_id IS NOT NULL;
CREATE INDEX model_calls_of_sender ON model_calls (day, share_sender) WHERE share_sender IS NOT NULL;
CREATE INDEX model_calls_of_domain ON model_calls (day, share_domain) WHERE share_domain IS NOT NULL;

-- What a day has cost, in millionths of a dollar: reserved before a call, corrected after it.
CREATE TABLE model_spend (
    day text PRIMARY KEY,
    micros bigint NOT NULL CHECK (micros >= 0),
    calls bigint NOT NULL CHECK (calls >= 0)
);

-- Messages that wait for a share of the budget: which one ended, and how much was spent of it.
CREATE TABLE model_waits (
    message_id uuid PRIMARY KEY REFERENCES messages (id),
    day text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('sender', 'domain', 'tier')),
    share_key text NOT NULL,
    spent_micros bigint NOT NULL,
    cap_micros bigint NOT NULL,
    waits_since timestamptz NOT NULL
);
CREATE INDEX model_waits_day ON model_waits (day);
