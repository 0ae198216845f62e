-- What is done to mail, who approves it, how it is undone, and how it is stopped.

-- An action that waits for a yes is `approved_pending`. One that failed halfway has been executed in part.
CREATE TABLE actions (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    message_id TEXT NOT NULL REFERENCES messages (id),
    decision_id TEXT REFERENCES decisions (id),
    actor TEXT NOT NULL CHECK (actor IN ('rule', 'model', 'user', 'agent', 'undo')),
    action_type TEXT NOT NULL
        CHECK (action_type IN ('archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread', 'star', 'unstar',
            'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply', 'several')),
    parameters_json TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('queued', 'approved_pending', 'executing', 'completed', 'failed', 'canceled', 'rejected',
            'expired')),
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
    -- Why an action may run, or waits for a yes; who asked for it; when it first began, for the hourly caps.
    safety_json TEXT NOT NULL DEFAULT '{}',
    rationale TEXT NOT NULL DEFAULT '',
    asked_by TEXT,
    started_at TEXT,
    irreversible INTEGER NOT NULL DEFAULT 0,
    -- Whether a model or an agent takes a message out of sight by it, without a person's approval: such actions are
    -- capped and listed.
    hides INTEGER NOT NULL DEFAULT 0,
    CHECK (state <> 'completed' OR undo_hint_json IS NOT NULL),
    CHECK (state <> 'failed' OR error IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX actions_decision ON actions (decision_id) WHERE decision_id IS NOT NULL;
CREATE INDEX actions_message ON actions (message_id, created_at);
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

-- The labels on arrival. Where they were not stored with the message, the oldest pre-image of an action tells them best.
CREATE VIEW arrivals AS
SELECT m.id AS message_id, COALESCE(m.arrival_labels_json,
    (SELECT a.pre_image_json -> 'labels' FROM actions a
        WHERE a.message_id = m.id AND a.pre_image_json ->> 'labels' IS NOT NULL
        ORDER BY a.created_at, a.id LIMIT 1), m.labels_json) AS labels_json
FROM messages m;

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

-- Actions that people were asked about one by one, and when: so many within an hour, and the others in a digest.
CREATE TABLE approval_slots (
    action_id TEXT PRIMARY KEY REFERENCES actions (id),
    taken_at TEXT NOT NULL
) STRICT;
CREATE INDEX approval_slots_taken ON approval_slots (taken_at);

-- Whom an account has answered automatically, and when last.
CREATE TABLE auto_replies (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    sender TEXT NOT NULL,
    action_id TEXT NOT NULL,
    replied_at TEXT NOT NULL,
    PRIMARY KEY (account_id, sender)
) STRICT;

-- The kill switch: while a row stands here nothing is changed in any mailbox (`all`), or in that of one account (its id).
CREATE TABLE pauses (
    scope TEXT PRIMARY KEY,
    reason TEXT NOT NULL,
    set_by TEXT NOT NULL,
    since TEXT NOT NULL
) STRICT;

-- Rises with every pause and every resume. Whoever lets requests out has read it; whoever pauses raises it first.
CREATE TABLE pause_generation (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    generation INTEGER NOT NULL
) STRICT;

-- Processes that may let requests out which change a mailbox, for a moment each time; pausing waits for them.
CREATE TABLE departures (
    process_id TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    generation INTEGER NOT NULL,
    on_wire_json TEXT NOT NULL,
    renewed_at TEXT NOT NULL
) STRICT;
