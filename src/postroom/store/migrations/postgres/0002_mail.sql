-- Mail on its way in, what was decided about it, what was done, and how that is undone.

CREATE TABLE accounts (
    id uuid PRIMARY KEY,
    provider text NOT NULL CHECK (provider IN ('gmail', 'imap')),
    endpoint_identity text NOT NULL UNIQUE,
    email text NOT NULL,
    state text NOT NULL CHECK (state IN ('active', 'paused', 'needs_consent', 'removed')),
    state_reason text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- What was accepted, in accepted order. The ends without processing keep their reason and what they are linked to.
CREATE TABLE inbox (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    queue text NOT NULL,
    tier text NOT NULL,
    state text NOT NULL CHECK (state IN ('waiting', 'leased', 'done', 'failed', 'coalesced', 'auto_acked', 'duplicate')),
    channel text NOT NULL,
    provider text NOT NULL,
    endpoint_identity text NOT NULL,
    external_event_id text NOT NULL,
    sender text NOT NULL,
    policy_tier text NOT NULL CHECK (policy_tier IN ('high_priority', 'interactive', 'default')),
    ingestion_tier text NOT NULL CHECK (ingestion_tier IN ('full', 'metadata')),
    envelope_json json NOT NULL,
    attempts bigint NOT NULL DEFAULT 0,
    lease_token uuid,
    lease_until timestamptz,
    reason text,
    linked_to uuid,
    observed_at timestamptz NOT NULL,
    accepted_at timestamptz NOT NULL,
    ended_at timestamptz,
    CHECK ((lease_token IS NOT NULL) = (state = 'leased')),
    CHECK ((ended_at IS NOT NULL) = (state IN ('done', 'failed', 'coalesced', 'auto_acked', 'duplicate')))
);
CREATE INDEX inbox_waiting ON inbox (queue, tier, seq) WHERE state = 'waiting';
CREATE INDEX inbox_leased ON inbox (lease_until) WHERE state = 'leased';

-- Keys outlive the inbox: a message that was pruned is still known.
CREATE TABLE inbox_keys (
    key text PRIMARY KEY,
    inbox_id uuid NOT NULL,
    channel text NOT NULL,
    provider text NOT NULL,
    endpoint_identity text NOT NULL,
    external_event_id text NOT NULL,
    sender text NOT NULL
);

-- The streaks of the picker, kept with the queue so that restarts and several consumers keep its promise.
CREATE TABLE queue_streaks (
    queue text NOT NULL,
    tier text NOT NULL,
    streak bigint NOT NULL CHECK (streak >= 0),
    PRIMARY KEY (queue, tier)
);

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
    UNIQUE (account_id, provider_message_id)
);
CREATE INDEX messages_thread ON messages (thread_id, sent_at);
CREATE INDEX messages_inbox ON messages (inbox_id);
CREATE INDEX messages_sender ON messages (account_id, sender, sent_at);

-- What the user may edit (description, whether the classifier may use it) survives every sync.
CREATE TABLE labels (
    account_id uuid NOT NULL REFERENCES accounts (id),
    provider_label_id text NOT NULL,
    name text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('system', 'user')),
    description text NOT NULL DEFAULT '',
    available_to_classifier boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, provider_label_id)
);

-- Deterministic rules. Lower priority first, first match wins. A broken rule is disabled with a reason, never deleted.
CREATE TABLE rules (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    description text NOT NULL DEFAULT '',
    scope text NOT NULL CHECK (scope IN ('global', 'account', 'domain', 'sender')),
    scope_ref text CHECK ((scope_ref IS NULL) = (scope = 'global')),
    priority bigint NOT NULL DEFAULT 100,
    conditions_json json NOT NULL,
    action_type text NOT NULL CHECK (action_type IN ('none', 'archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread',
        'star', 'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply')),
    parameters_json json NOT NULL,
    mode text NOT NULL DEFAULT 'active' CHECK (mode IN ('active', 'shadow')),
    needs_approval boolean NOT NULL DEFAULT false,
    enabled boolean NOT NULL DEFAULT true,
    disabled_reason text CHECK (disabled_reason IS NULL OR NOT enabled),
    origin text NOT NULL DEFAULT 'user',
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
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
    action_type text NOT NULL CHECK (action_type IN ('none', 'archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread',
        'star', 'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply')),
    parameters_json json NOT NULL,
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    needs_approval boolean NOT NULL DEFAULT false,
    rationale text NOT NULL,
    safety_json json NOT NULL,
    model text,
    prompt_version text,
    created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX decisions_live ON decisions (message_id, generation) WHERE NOT shadow;
CREATE INDEX decisions_rule ON decisions (rule_id, created_at);

CREATE TABLE actions (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    message_id uuid NOT NULL REFERENCES messages (id),
    decision_id uuid REFERENCES decisions (id),
    actor text NOT NULL CHECK (actor IN ('rule', 'model', 'user', 'agent', 'undo')),
    action_type text NOT NULL CHECK (action_type IN ('archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread',
        'star', 'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply')),
    parameters_json json NOT NULL,
    state text NOT NULL CHECK (state IN ('queued', 'approved_pending', 'executing', 'completed', 'failed', 'canceled', 'rejected', 'expired')),
    action_hash text NOT NULL,
    job_id uuid,
    batch_id uuid,
    pre_image_json json,
    undo_hint_json json,
    error text,
    approved_by text,
    approved_at timestamptz,
    expires_at timestamptz,
    executed_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CHECK (state <> 'completed' OR undo_hint_json IS NOT NULL),
    CHECK (state <> 'failed' OR error IS NOT NULL)
);
CREATE UNIQUE INDEX actions_decision ON actions (decision_id) WHERE decision_id IS NOT NULL;
CREATE INDEX actions_message ON actions (message_id, created_at);
CREATE INDEX actions_pending ON actions (expires_at) WHERE state = 'approved_pending';
CREATE INDEX actions_live ON actions (account_id, state) WHERE state IN ('queued', 'approved_pending', 'executing');

-- "The cause is the undo of the effect", and so on. An action can be undone once.
CREATE TABLE action_links (
    id uuid PRIMARY KEY,
    cause_action_id uuid NOT NULL REFERENCES actions (id),
    effect_action_id uuid NOT NULL REFERENCES actions (id),
    relation_type text NOT NULL CHECK (relation_type IN ('undo_of', 'approval_for', 'spawned', 'related')),
    created_at timestamptz NOT NULL,
    CHECK (cause_action_id <> effect_action_id)
);
CREATE UNIQUE INDEX action_links_undo ON action_links (effect_action_id) WHERE relation_type = 'undo_of';
CREATE INDEX action_links_cause ON action_links (cause_action_id);
