-- Lists of mail by what became of it, newest first, and the answers to approvals. Each index holds few rows.
CREATE INDEX actions_asking ON actions (created_at, id) WHERE state = 'awaiting_approval';
CREATE INDEX actions_failed ON actions (created_at, id) WHERE state = 'failed';
CREATE INDEX actions_undoing ON actions (created_at, id) WHERE actor = 'undo';
CREATE INDEX actions_answered ON actions (updated_at, id) WHERE expires_at IS NOT NULL AND state <> 'awaiting_approval';
