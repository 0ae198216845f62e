-- Mail on its way in, what was decided about it, what was done, and how that is undone.

CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    provider TEXT NOT NULL CHECK (provider IN ('gmail', 'imap')),
    endpoint_identity TEXT NOT NULL UNIQUE,
    email TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'needs_consent', 'removed')),
    state_reason TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

-- What was accepted, in accepted order. The ends without processing keep their reason and what they are linked to.
CREATE TABLE inbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    queue TEXT NOT NULL,
    tier TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'leased', 'done', 'failed', 'coalesced', 'auto_acked', 'duplicate')),
    channel TEXT NOT NULL,
    provider TEXT NOT NULL,
    endpoint_identity TEXT NOT NULL,
    external_event_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    policy_tier TEXT NOT NULL CHECK (policy_tier IN ('high_priority', 'interactive', 'default')),
    ingestion_tier TEXT NOT NULL CHECK (ingestion_tier IN ('full', 'metadata')),
    envelope_json TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    lease_token TEXT,
    lease_until TEXT,
    reason TEXT,
    linked_to TEXT,
    observed_at TEXT NOT NULL,
    accepted_at TEXT NOT NULL,
    ended_at TEXT,
    CHECK ((lease_token IS NOT NULL) = (state = 'leased')),
    CHECK ((ended_at IS NOT NULL) = (state IN ('done', 'failed', 'coalesced', 'auto_acked', 'duplicate')))
) STRICT;
CREATE INDEX inbox_waiting ON inbox (queue, tier, seq) WHERE state = 'waiting';
CREATE INDEX inbox_leased ON inbox (lease_until) WHERE state = 'leased';

-- Keys outlive the inbox: a message that was pruned is still known.
CREATE TABLE inbox_keys (
    key TEXT PRIMARY KEY,
    inbox_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    provider TEXT NOT NULL,
    endpoint_identity TEXT NOT NULL,
    external_event_id TEXT NOT NULL,
    sender TEXT NOT NULL
) STRICT;

-- The streaks of the picker, kept with the queue so that restarts and several consumers keep its promise.
CREATE TABLE queue_streaks (
    queue TEXT NOT NULL,
    tier TEXT NOT NULL,
    streak INTEGER NOT NULL CHECK (streak >= 0),
    PRIMARY KEY (queue, tier)
) STRICT;

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
    UNIQUE (account_id, provider_message_id)
) STRICT;
CREATE INDEX messages_thread ON messages (thread_id, sent_at);
CREATE INDEX messages_inbox ON messages (inbox_id);
CREATE INDEX messages_sender ON messages (account_id, sender, sent_at);

-- What the user may edit (description, whether the classifier may use it) survives every sync.
CREATE TABLE labels (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    provider_label_id TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('system', 'user')),
    description TEXT NOT NULL DEFAULT '',
    available_to_classifier INTEGER NOT NULL DEFAULT 1,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (account_id, provider_label_id)
) STRICT;

-- Deterministic rules. Lower priority first, first match wins. A broken rule is disabled with a reason, never deleted.
CREATE TABLE rules (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    scope TEXT NOT NULL CHECK (scope IN ('global', 'account', 'domain', 'sender')),
    scope_ref TEXT CHECK ((scope_ref IS NULL) = (scope = 'global')),
    priority INTEGER NOT NULL DEFAULT 100,
    conditions_json TEXT NOT NULL,
    action_type TEXT NOT NULL CHECK (action_type IN ('none', 'archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread',
        'star', 'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply')),
    parameters_json TEXT NOT NULL,
    mode TEXT NOT NULL DEFAULT 'active' CHECK (mode IN ('active', 'shadow')),
    needs_approval INTEGER NOT NULL DEFAULT 0,
    enabled INTEGER NOT NULL DEFAULT 1,
    disabled_reason TEXT CHECK (disabled_reason IS NULL OR NOT enabled),
    origin TEXT NOT NULL DEFAULT 'user',
    version INTEGER NOT NULL DEFAULT 1,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
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
    action_type TEXT NOT NULL CHECK (action_type IN ('none', 'archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread',
        'star', 'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply')),
    parameters_json TEXT NOT NULL,
    confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    needs_approval INTEGER NOT NULL DEFAULT 0,
    rationale TEXT NOT NULL,
    safety_json TEXT NOT NULL,
    model TEXT,
    prompt_version TEXT,
    created_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX decisions_live ON decisions (message_id, generation) WHERE NOT shadow;
CREATE INDEX decisions_rule ON decisions (rule_id, created_at);

CREATE TABLE actions (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    message_id TEXT NOT NULL REFERENCES messages (id),
    decision_id TEXT REFERENCES decisions (id),
    actor TEXT NOT NULL CHECK (actor IN ('rule', 'model', 'user', 'agent', 'undo')),
    action_type TEXT NOT NULL CHECK (action_type IN ('archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread',
        'star', 'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply')),
    parameters_json TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'approved_pending', 'executing', 'completed', 'failed', 'canceled', 'rejected', 'expired')),
    action_hash TEXT NOT NULL,
    job_id TEXT,
    batch_id TEXT,
    pre_image_json TEXT,
    undo_hint_json TEXT,
    error TEXT,
    approved_by TEXT,
    approved_at TEXT,
    expires_at TEXT,
    executed_at TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    CHECK (state <> 'completed' OR undo_hint_json IS NOT NULL),
    CHECK (state <> 'failed' OR error IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX actions_decision ON actions (decision_id) WHERE decision_id IS NOT NULL;
CREATE INDEX actions_message ON actions (message_id, created_at);
CREATE INDEX actions_pending ON actions (expires_at) WHERE state = 'approved_pending';
CREATE INDEX actions_live ON actions (account_id, state) WHERE state IN ('queued', 'approved_pending', 'executing');

-- "The cause is the undo of the effect", and so on. An action can be undone once.
CREATE TABLE action_links (
    id TEXT PRIMARY KEY,
    cause_action_id TEXT NOT NULL REFERENCES actions (id),
    effect_action_id TEXT NOT NULL REFERENCES actions (id),
    relation_type TEXT NOT NULL CHECK (relation_type IN ('undo_of', 'approval_for', 'spawned', 'related')),
    created_at TEXT NOT NULL,
    CHECK (cause_action_id <> effect_action_id)
) STRICT;
CREATE UNIQUE INDEX action_links_undo ON action_links (effect_action_id) WHERE relation_type = 'undo_of';
CREATE INDEX action_links_cause ON action_links (cause_action_id);
