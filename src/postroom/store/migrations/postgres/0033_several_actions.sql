-- A rule may do several things, which are one action; and it may let the rules after it add theirs (`continues`).
ALTER TABLE rules DROP CONSTRAINT rules_action_type_check;
ALTER TABLE rules ADD CONSTRAINT rules_action_type_check CHECK (action_type IN
    ('none', 'archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread', 'star', 'unstar',
    'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply', 'several'));
ALTER TABLE rules ADD COLUMN continues boolean NOT NULL DEFAULT false;
ALTER TABLE decisions DROP CONSTRAINT decisions_action_type_check;
ALTER TABLE decisions ADD CONSTRAINT decisions_action_type_check CHECK (action_type IN
    ('none', 'archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread', 'star', 'unstar',
    'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply', 'several'));
ALTER TABLE actions DROP CONSTRAINT actions_action_type_check;
ALTER TABLE actions ADD CONSTRAINT actions_action_type_check CHECK (action_type IN
    ('archive', 'apply_label', 'remove_label', 'mark_read', 'mark_unread', 'star', 'unstar',
    'trash', 'restore', 'delete', 'snooze', 'forward', 'auto_reply', 'several'));
DROP INDEX actions_irreversible;
ALTER TABLE actions ADD COLUMN irreversible boolean NOT NULL DEFAULT false;
UPDATE actions SET irreversible = true WHERE action_type IN ('delete', 'forward', 'auto_reply');
CREATE INDEX actions_irreversible ON actions (account_id, started_at) WHERE irreversible AND started_at IS NOT NULL;
-- An action that ended halfway has been executed in part.
DROP INDEX actions_executed;
CREATE INDEX actions_executed ON actions (executed_at) WHERE executed_at IS NOT NULL;

-- The rules that added to a decision, besides the one that it is recorded under.
CREATE TABLE decision_rules (
    decision_id uuid NOT NULL REFERENCES decisions (id),
    rule_id uuid NOT NULL,
    rule_name text NOT NULL,
    PRIMARY KEY (decision_id, rule_id)
);
CREATE INDEX decision_rules_name ON decision_rules (rule_name);
