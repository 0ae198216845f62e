-- An action that nobody has approved yet is `awaiting_approval`: the word it had said the opposite.

-- SQLite cannot change a CHECK, so the table is made anew under its own name: whatever refers to it goes on doing so. Its
-- references are checked when all is done, and need an index each, or every row would look through all links.
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
        'star', 'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply')),
    parameters_json TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'awaiting_approval', 'executing', 'completed', 'failed', 'canceled', 'rejected', 'expired')),
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
    CHECK (state <> 'completed' OR undo_hint_json IS NOT NULL),
    CHECK (state <> 'failed' OR error IS NOT NULL)
) STRICT;
INSERT INTO actions
SELECT id, account_id, message_id, decision_id, actor, action_type, parameters_json,
    CASE state WHEN 'approved_pending' THEN 'awaiting_approval' ELSE state END, action_hash, job_id, batch_id,
    pre_image_json, undo_hint_json, error, approved_by, approved_at, expires_at, executed_at, created_at, updated_at,
    safety_json, rationale, asked_by, started_at
FROM old_actions ORDER BY rowid;
DROP TABLE old_actions;
DROP INDEX action_links_effect;
CREATE UNIQUE INDEX actions_decision ON actions (decision_id) WHERE decision_id IS NOT NULL;
CREATE INDEX actions_message ON actions (message_id, created_at);
CREATE INDEX actions_awaiting ON actions (expires_at) WHERE state = 'awaiting_approval';
CREATE INDEX actions_live ON actions (account_id, state) WHERE state IN ('queued', 'awaiting_approval', 'executing');
CREATE INDEX actions_irreversible ON actions (account_id, started_at)
    WHERE action_type IN ('delete', 'forward', 'auto_reply') AND started_at IS NOT NULL;
CREATE INDEX actions_batch ON actions (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX actions_created ON actions (created_at, id);
CREATE INDEX actions_executed ON actions (executed_at) WHERE state = 'completed';
CREATE INDEX actions_asked ON actions (asked_by) WHERE state IN ('queued', 'awaiting_approval', 'executing');
