-- A rule may do several things, which are one action; and it may let the rules after it add theirs (`continues`).

-- SQLite cannot change a CHECK, so the tables are made anew under their own names: whatever refers to them goes on doing
-- so. References are checked when all is done, and need an index each, or every row would look through all links.
PRAGMA defer_foreign_keys = ON;
CREATE INDEX action_links_effect ON action_links (effect_action_id);

CREATE TABLE old_rules AS SELECT * FROM rules ORDER BY rowid;
DROP TABLE rules;
CREATE TABLE rules (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    scope TEXT NOT NULL CHECK (scope IN ('global', 'account', 'domain', 'sender')),
    scope_ref TEXT CHECK ((scope_ref IS NULL) = (scope = 'global')),
    priority INTEGER NOT NULL DEFAULT 100,
    conditions_json TEXT NOT NULL,
    action_type TEXT NOT NULL CHECK (action_type IN ('none', 'archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread',
        'star', 'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply', 'several')),
    parameters_json TEXT NOT NULL,
    mode TEXT NOT NULL DEFAULT 'active' CHECK (mode IN ('active', 'shadow')),
    needs_approval INTEGER NOT NULL DEFAULT 0,
    enabled INTEGER NOT NULL DEFAULT 1,
    disabled_reason TEXT CHECK (disabled_reason IS NULL OR NOT enabled),
    origin TEXT NOT NULL DEFAULT 'user',
    version INTEGER NOT NULL DEFAULT 1,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    continues INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO rules (id, name, description, scope, scope_ref, priority, conditions_json, action_type, parameters_json,
    mode, needs_approval, enabled, disabled_reason, origin, version, created_at, updated_at)
SELECT id, name, description, scope, scope_ref, priority, conditions_json, action_type, parameters_json, mode,
    needs_approval, enabled, disabled_reason, origin, version, created_at, updated_at
FROM old_rules ORDER BY rowid;
DROP TABLE old_rules;
CREATE UNIQUE INDEX rules_name ON rules (name);
CREATE INDEX rules_enabled ON rules (scope, scope_ref, priority) WHERE enabled;

CREATE TABLE old_decisions AS SELECT * FROM decisions ORDER BY rowid;
DROP TABLE decisions;
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
        'star', 'unstar', 'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply', 'several')),
    parameters_json TEXT NOT NULL,
    confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    needs_approval INTEGER NOT NULL DEFAULT 0,
    rationale TEXT NOT NULL,
    safety_json TEXT NOT NULL,
    model TEXT,
    prompt_version TEXT,
    created_at TEXT NOT NULL
) STRICT;
INSERT INTO decisions (id, account_id, message_id, generation, source, shadow, rule_id, rule_name, action_type,
    parameters_json, confidence, needs_approval, rationale, safety_json, model, prompt_version, created_at)
SELECT id, account_id, message_id, generation, source, shadow, rule_id, rule_name, action_type, parameters_json,
    confidence, needs_approval, rationale, safety_json, model, prompt_version, created_at
FROM old_decisions ORDER BY rowid;
DROP TABLE old_decisions;
CREATE UNIQUE INDEX decisions_live ON decisions (message_id, generation) WHERE NOT shadow;
CREATE INDEX decisions_rule ON decisions (rule_id, created_at);
CREATE INDEX decisions_shadow ON decisions (source, rule_id, created_at) WHERE shadow;
CREATE INDEX decisions_message ON decisions (message_id, generation);

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
    irreversible INTEGER NOT NULL DEFAULT 0,
    CHECK (state <> 'completed' OR undo_hint_json IS NOT NULL),
    CHECK (state <> 'failed' OR error IS NOT NULL)
) STRICT;
INSERT INTO actions (id, account_id, message_id, decision_id, actor, action_type, parameters_json, state,
    action_hash, job_id, batch_id, pre_image_json, undo_hint_json, error, approved_by, approved_at, expires_at,
    executed_at, created_at, updated_at, safety_json, rationale, asked_by, started_at, irreversible)
SELECT id, account_id, message_id, decision_id, actor, action_type, parameters_json, state, action_hash, job_id,
    batch_id, pre_image_json, undo_hint_json, error, approved_by, approved_at, expires_at, executed_at, created_at,
    updated_at, safety_json, rationale, asked_by, started_at, action_type IN ('delete', 'forward', 'auto_reply')
FROM old_actions ORDER BY rowid;
DROP TABLE old_actions;
DROP INDEX action_links_effect;
CREATE UNIQUE INDEX actions_decision ON actions (decision_id) WHERE decision_id IS NOT NULL;
CREATE INDEX actions_message ON actions (message_id, created_at);
CREATE INDEX actions_awaiting ON actions (expires_at) WHERE state = 'awaiting_approval';
CREATE INDEX actions_live ON actions (account_id, state) WHERE state IN ('queued', 'awaiting_approval', 'executing');
CREATE INDEX actions_irreversible ON actions (account_id, started_at) WHERE irreversible AND started_at IS NOT NULL;
CREATE INDEX actions_batch ON actions (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX actions_created ON actions (created_at, id);
CREATE INDEX actions_executed ON actions (executed_at) WHERE executed_at IS NOT NULL;
CREATE INDEX actions_asked ON actions (asked_by) WHERE state IN ('queued', 'awaiting_approval', 'executing');

-- The rules that added to a decision, besides the one that it is recorded under.
CREATE TABLE decision_rules (
    decision_id TEXT NOT NULL REFERENCES decisions (id),
    rule_id TEXT NOT NULL,
    rule_name TEXT NOT NULL,
    PRIMARY KEY (decision_id, rule_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX decision_rules_name ON decision_rules (rule_name);
