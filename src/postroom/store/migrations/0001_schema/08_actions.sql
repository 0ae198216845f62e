-- What is done to mail, who approves it, how it is undone, and how it is stopped.

-- An action that waits for a yes is `approved_pending`. One that failed halfway has been executed in part.
CREATE TABLE actions (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    message_id uuid NOT NULL REFERENCES messages (id),
    decision_id uuid REFERENCES decisions (id),
    actor text NOT NULL CHECK (actor IN ('rule', 'model', 'user', 'agent', 'undo')),
    action_type text NOT NULL
        CHECK (action_type IN ('archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread', 'star', 'unstar',
            'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply', 'several')),
    parameters_json json NOT NULL,
    state text NOT NULL
        CHECK (state IN ('queued', 'approved_pending', 'executing', 'completed', 'failed', 'canceled', 'rejected',
            'expired')),
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
    -- Why an action may run, or waits for a yes; who asked for it; when it first began, for the hourly caps.
    safety_json json NOT NULL DEFAULT '{}',
    rationale text NOT NULL DEFAULT '',
    asked_by text,
    started_at timestamptz,
    irreversible boolean NOT NULL DEFAULT false,
    -- Whether a model or an agent takes a message out of sight by it, without a person's approval: such actions are
    -- capped and listed.
    hides boolean NOT NULL DEFAULT false,
    CHECK (state <> 'completed' OR undo_hint_json IS NOT NULL),
    CHECK (state <> 'failed' OR error IS NOT NULL)
);
CREATE UNIQUE INDEX actions_decision ON actions (decision_id) WHERE decision_id IS NOT NULL;
CREATE INDEX actions_message ON actions (message_id, created_at);
-- only postgres:
CREATE INDEX actions_batch ON actions (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX actions_created ON actions (created_at, id);
CREATE INDEX actions_irreversible ON actions (account_id, started_at) WHERE irreversible AND started_at IS NOT NULL;
CREATE INDEX actions_executed ON actions (executed_at) WHERE executed_at IS NOT NULL;
CREATE INDEX actions_short_id ON actions (right(id::text, 8) text_pattern_ops);
CREATE INDEX actions_failed ON actions (created_at, id) WHERE state = 'failed';
CREATE INDEX actions_undoing ON actions (created_at, id) WHERE actor = 'undo';
CREATE INDEX actions_hiding ON actions (created_at DESC, id DESC) WHERE hides;
CREATE INDEX actions_pending ON actions (expires_at) WHERE state = 'approved_pending';
CREATE INDEX actions_live ON actions (account_id, state) WHERE state IN ('queued', 'approved_pending', 'executing');
-- What an agent has asked for and nobody has ended yet.
CREATE INDEX actions_asked ON actions (asked_by) WHERE state IN ('queued', 'approved_pending', 'executing');
-- Lists of mail by what became of it, newest first, and the answers to approvals. Each holds few rows.
CREATE INDEX actions_asking ON actions (created_at, id) WHERE state = 'approved_pending';
CREATE INDEX actions_answered ON actions (updated_at, id) WHERE expires_at IS NOT NULL AND state <> 'approved_pending';
-- only sqlite:
CREATE INDEX actions_pending ON actions (expires_at) WHERE state = 'approved_pending';
CREATE INDEX actions_live ON actions (account_id, state) WHERE state IN ('queued', 'approved_pending', 'executing');
CREATE INDEX actions_irreversible ON actions (account_id, started_at) WHERE irreversible AND started_at IS NOT NULL;
CREATE INDEX actions_batch ON actions (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX actions_created ON actions (created_at, id);
CREATE INDEX actions_executed ON actions (executed_at) WHERE executed_at IS NOT NULL;
-- What an agent has asked for and nobody has ended yet.
CREATE INDEX actions_asked ON actions (asked_by) WHERE state IN ('queued', 'approved_pending', 'executing');
CREATE INDEX actions_short_id ON actions (substr(id, -8));
-- Lists of mail by what became of it, newest first, and the answers to approvals. Each holds few rows.
CREATE INDEX actions_asking ON actions (created_at, id) WHERE state = 'approved_pending';
CREATE INDEX actions_failed ON actions (created_at, id) WHERE state = 'failed';
CREATE INDEX actions_undoing ON actions (created_at, id) WHERE actor = 'undo';
CREATE INDEX actions_answered ON actions (updated_at, id) WHERE expires_at IS NOT NULL AND state <> 'approved_pending';
CREATE INDEX actions_hiding ON actions (created_at DESC, id DESC) WHERE hides;
-- both:

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

-- The labels on arrival. Where they were not stored with the message, the oldest pre-image of an action tells them best.
-- only postgres:
-- (The sum keeps the planner from looking for it among all actions, by time.)
-- both:
CREATE VIEW arrivals AS
SELECT m.id AS message_id, COALESCE(m.arrival_labels_json,
    (SELECT a.pre_image_json -> 'labels' FROM actions a
        WHERE a.message_id = m.id AND a.pre_image_json ->> 'labels' IS NOT NULL
        ORDER BY a.created_at{ + interval '0'|}, a.id LIMIT 1), m.labels_json) AS labels_json
FROM messages m;

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

-- Actions that people were asked about one by one, and when: so many within an hour, and the others in a digest.
CREATE TABLE approval_slots (
    action_id uuid PRIMARY KEY REFERENCES actions (id),
    taken_at timestamptz NOT NULL
);
CREATE INDEX approval_slots_taken ON approval_slots (taken_at);

-- Whom an account has answered automatically, and when last.
CREATE TABLE auto_replies (
    account_id uuid NOT NULL REFERENCES accounts (id),
    sender text NOT NULL,
    action_id uuid NOT NULL,
    replied_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, sender)
);

-- The kill switch: while a row stands here nothing is changed in any mailbox (`all`), or in that of one account (its id).
CREATE TABLE pauses (
    scope text PRIMARY KEY,
    reason text NOT NULL,
    set_by text NOT NULL,
    since timestamptz NOT NULL
);

-- Rises with every pause and every resume. Whoever lets requests out has read it; whoever pauses raises it first.
CREATE TABLE pause_generation (
    id bigint PRIMARY KEY CHECK (id = 1),
    generation bigint NOT NULL
);

-- Processes that may let requests out which change a mailbox, for a moment each time; pausing waits for them.
CREATE TABLE departures (
    process_id uuid PRIMARY KEY,
    holder text NOT NULL,
    generation bigint NOT NULL,
    on_wire_json text NOT NULL,
    renewed_at timestamptz NOT NULL
);
