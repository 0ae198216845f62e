-- An action that nobody has approved yet is `awaiting_approval`: the word it had said the opposite.
DROP INDEX actions_pending, actions_live, actions_asked;
ALTER TABLE actions DROP CONSTRAINT actions_state_check;
UPDATE actions SET state = 'awaiting_approval' WHERE state = 'approved_pending';
ALTER TABLE actions ADD CONSTRAINT actions_state_check CHECK (state IN
    ('queued', 'awaiting_approval', 'executing', 'completed', 'failed', 'canceled', 'rejected', 'expired'));
CREATE INDEX actions_awaiting ON actions (expires_at) WHERE state = 'awaiting_approval';
CREATE INDEX actions_live ON actions (account_id, state) WHERE state IN ('queued', 'awaiting_approval', 'executing');
CREATE INDEX actions_asked ON actions (asked_by) WHERE state IN ('queued', 'awaiting_approval', 'executing');
