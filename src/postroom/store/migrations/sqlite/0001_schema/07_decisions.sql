-- Rules, the model, what they decided, and what is learned from it.

-- Deterministic rules. Lower priority first, first match wins; one that `continues` lets the rules after it add to what it
-- does. A broken rule is disabled with a reason, never deleted.
CREATE TABLE rules (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    scope TEXT NOT NULL CHECK (scope IN ('global', 'account', 'domain', 'sender')),
    scope_ref TEXT CHECK ((scope_ref IS NULL) = (scope = 'global')),
    priority INTEGER NOT NULL DEFAULT 100,
    conditions_json TEXT NOT NULL,
    action_type TEXT NOT NULL
        CHECK (action_type IN ('none', 'archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread', 'star',
            'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply', 'several')),
    parameters_json TEXT NOT NULL,
    mode TEXT NOT NULL DEFAULT 'active' CHECK (mode IN ('active', 'shadow')),
    needs_approval INTEGER NOT NULL DEFAULT 0,
    enabled INTEGER NOT NULL DEFAULT 1,
    disabled_reason TEXT CHECK (disabled_reason IS NULL OR NOT enabled),
    origin TEXT NOT NULL DEFAULT 'user',
    version INTEGER NOT NULL DEFAULT 1,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    continues INTEGER NOT NULL DEFAULT 0,
    -- A rule that a token writes and that sends or deletes mail decides nothing until a person has confirmed it. The
    -- hash is that of the content which a person wrote or confirmed. `earlier` stands for any content of a rule that
    -- people had in use before confirmations were stored; a token that changes it ends that.
    confirmed_hash TEXT CHECK (confirmed_hash = 'earlier' OR length(confirmed_hash) = 64)
) STRICT;
CREATE UNIQUE INDEX rules_name ON rules (name);
CREATE INDEX rules_enabled ON rules (scope, scope_ref, priority) WHERE enabled;

-- Rules in words, given to the model with the messages of their scope.
CREATE TABLE model_rules (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('global', 'account', 'domain', 'sender')),
    scope_ref TEXT CHECK ((scope_ref IS NULL) = (scope = 'global')),
    position INTEGER NOT NULL DEFAULT 0,
    rule_text TEXT NOT NULL,
    mode TEXT NOT NULL DEFAULT 'active' CHECK (mode IN ('active', 'shadow')),
    enabled INTEGER NOT NULL DEFAULT 1,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX model_rules_enabled ON model_rules (scope, scope_ref, position) WHERE enabled;

-- What the model is told about the user's wishes in general.
CREATE TABLE directions (
    id TEXT PRIMARY KEY,
    scope TEXT NOT NULL DEFAULT 'global' CHECK (scope IN ('global', 'account')),
    scope_ref TEXT CHECK ((scope_ref IS NULL) = (scope = 'global')),
    position INTEGER NOT NULL DEFAULT 0,
    content TEXT NOT NULL,
    enabled INTEGER NOT NULL DEFAULT 1,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

-- Whose mail, and which labelled mail, is never touched. Values are in lower case; labels by name or id.
CREATE TABLE protected (
    kind TEXT NOT NULL CHECK (kind IN ('sender', 'domain', 'label')),
    value TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    PRIMARY KEY (kind, value)
) STRICT;

-- The labels that a protected name stood for when it was seen: a label that is renamed stays protected.
CREATE TABLE protected_labels (
    value TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    provider_label_id TEXT NOT NULL,
    PRIMARY KEY (value, account_id, provider_label_id)
) STRICT;

-- Besides rules, which have a mode of their own, a category of mail and the model can decide without touching anything.
CREATE TABLE shadows (
    kind TEXT NOT NULL CHECK (kind IN ('category', 'model')),
    name TEXT NOT NULL,
    since TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT;

-- One per message and generation; asking again is a new generation. Shadow decisions touch nothing.
CREATE TABLE decisions (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    message_id TEXT NOT NULL REFERENCES messages (id),
    generation INTEGER NOT NULL DEFAULT 1,
    source TEXT NOT NULL CHECK (source IN ('deterministic', 'llm', 'none')),
    shadow INTEGER NOT NULL DEFAULT 0,
    rule_id TEXT,
    rule_name TEXT,
    action_type TEXT NOT NULL
        CHECK (action_type IN ('none', 'archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread', 'star',
            'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply', 'several')),
    parameters_json TEXT NOT NULL,
    confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    needs_approval INTEGER NOT NULL DEFAULT 0,
    rationale TEXT NOT NULL,
    safety_json TEXT NOT NULL,
    model TEXT,
    prompt_version TEXT,
    created_at TEXT NOT NULL,
    -- Other actions that the model weighed, with its confidence in each: a list, or NULL where it named none.
    alternatives_json TEXT
) STRICT;
CREATE UNIQUE INDEX decisions_live ON decisions (message_id, generation) WHERE NOT shadow;
CREATE INDEX decisions_rule ON decisions (rule_id, created_at);
CREATE INDEX decisions_shadow ON decisions (source, rule_id, created_at) WHERE shadow;
CREATE INDEX decisions_message ON decisions (message_id, generation);

-- The rules that added to a decision, besides the one that it is recorded under.
CREATE TABLE decision_rules (
    decision_id TEXT NOT NULL REFERENCES decisions (id),
    rule_id TEXT NOT NULL,
    rule_name TEXT NOT NULL,
    PRIMARY KEY (decision_id, rule_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX decision_rules_name ON decision_rules (rule_name);

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
    -- The backfill that a call is charged to, and the day of its cap.
    backfill_job_id TEXT REFERENCES backfill_jobs (id),
    backfill_day TEXT,
    -- Whose share of the day's budget a call has used, as a hash: kept for a week, for sums over the day.
    share_sender TEXT,
    share_domain TEXT,
    CHECK ((ended_at IS NULL) = (state = 'started'))
) STRICT;
CREATE INDEX model_calls_message ON model_calls (message_id, started_at);
CREATE INDEX model_calls_day ON model_calls (day, started_at);
CREATE INDEX model_calls_started ON model_calls (started_at) WHERE state = 'started';
CREATE INDEX model_calls_backfill ON model_calls (backfill_job_id, message_id) WHERE backfill_job_id IS NOT NULL;
CREATE INDEX model_calls_of_sender ON model_calls (day, share_sender) WHERE share_sender IS NOT NULL;
CREATE INDEX model_calls_of_domain ON model_calls (day, share_domain) WHERE share_domain IS NOT NULL;

-- What a day has cost, in millionths of a dollar: reserved before a call, corrected after it.
CREATE TABLE model_spend (
    day TEXT PRIMARY KEY,
    micros INTEGER NOT NULL CHECK (micros >= 0),
    calls INTEGER NOT NULL CHECK (calls >= 0)
) STRICT;

-- Messages that wait for a share of the budget: which one ended, and how much was spent of it.
CREATE TABLE model_waits (
    message_id TEXT PRIMARY KEY REFERENCES messages (id),
    day TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('sender', 'domain', 'tier')),
    share_key TEXT NOT NULL,
    spent_micros INTEGER NOT NULL,
    cap_micros INTEGER NOT NULL,
    waits_since TEXT NOT NULL
) STRICT;
CREATE INDEX model_waits_day ON model_waits (day);
