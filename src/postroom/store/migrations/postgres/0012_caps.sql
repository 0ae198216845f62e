-- Which actions people were asked about one by one, and when: so many within an hour, and what is beyond in a digest.
CREATE TABLE approval_slots (
    action_id uuid PRIMARY KEY REFERENCES actions (id),
    taken_at timestamptz NOT NULL
);
CREATE INDEX approval_slots_taken ON approval_slots (taken_at);

-- How much one agent has undone within the hour.
CREATE INDEX audit_undos ON audit (actor, at) WHERE action = 'action.undo';
