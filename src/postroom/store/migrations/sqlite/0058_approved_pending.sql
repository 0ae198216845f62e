-- An action that waits for a yes is `approved_pending`, as the requirements name it. (0019 says why it was not.)

-- SQLite cannot change a CHECK, so the table is made anew under its own name, as in 0019.
PRAGMA defer_foreign_keys = ON;
CREATE INDEX action_links_effect ON action_links (effect_action_id);
CREATE TABLE old_actions AS SELECT * FROM actions ORDER BY rowid;
DROP TABLE actions;
CREATE TABLE actions (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    message_id TEXT NOT NULL REFERENCES messages (id),
    decision_id TEXT REFERENCES decisions (id),
    actor TEXT NOT NULL CHECK (actor IN ('rule', 'model', 'user', 'agent', 'undo')),
    action_type TEXT NOT NULL CHECK (action_type IN ('archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread',
        'star', 'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply', 'several')),
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
    safety_json TEXT NOT NULL DEFAULT '{}',
    rationale TEXT NOT NULL DEFAULT '',
    asked_by TEXT,
    started_at TEXT,
    irreversible INTEGER NOT NULL DEFAULT 0,
    hides INTEGER NOT NULL DEFAULT 0,
    CHECK (state <> 'completed' OR undo_hint_json IS NOT NULL),
    CHECK (state <> 'failed' OR error IS NOT NULL)
) STRICT;
INSERT INTO actions (id, account_id, message_id, decision_id, actor, action_type, parameters_json, state, action_hash, job_id,
    batch_id, pre_image_json, undo_hint_json, error, approved_by, approved_at, expires_at, executed_at,
    created_at, updated_at, safety_json, rationale, asked_by, started_at, irreversible, hides)
SELECT id, account_id, message_id, decision_id, actor, action_type, parameters_json, CASE state WHEN
    'awaiting_approval' THEN 'approved_pending' ELSE state END, action_hash, job_id, batch_id, pre_image_json,
    undo_hint_json, error, approved_by, approved_at, expires_at, executed_at, created_at, updated_at, safety_json,
    rationale, asked_by, started_at, irreversible, hides
FROM old_actions ORDER BY rowid;
DROP TABLE old_actions;
DROP INDEX action_links_effect;
CREATE UNIQUE INDEX actions_decision ON actions (decision_id) WHERE decision_id IS NOT NULL;
CREATE INDEX actions_message ON actions (message_id, created_at);
CREATE INDEX actions_pending ON actions (expires_at) WHERE state = 'approved_pending';
CREATE INDEX actions_live ON actions (account_id, state) WHERE state IN ('queued', 'approved_pending', 'executing');
CREATE INDEX actions_irreversible ON actions (account_id, started_at) WHERE irreversible AND started_at IS NOT NULL;
CREATE INDEX actions_batch ON actions (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX actions_created ON actions (created_at, id);
CREATE INDEX actions_executed ON actions (executed_at) WHERE executed_at IS NOT NULL;
CREATE INDEX actions_asked ON actions (asked_by) WHERE state IN ('queued', 'approved_pending', 'executing');
CREATE INDEX actions_short_id ON actions (substr(id, -8));
CREATE INDEX actions_asking ON actions (created_at, id) WHERE state = 'approved_pending';
CREATE INDEX actions_failed ON actions (created_at, id) WHERE state = 'failed';
CREATE INDEX actions_undoing ON actions (created_at, id) WHERE actor = 'undo';
CREATE INDEX actions_answered ON actions (updated_at, id) WHERE expires_at IS NOT NULL AND state <> 'approved_pending';
CREATE INDEX actions_hiding ON actions (created_at DESC, id DESC) WHERE hides;
