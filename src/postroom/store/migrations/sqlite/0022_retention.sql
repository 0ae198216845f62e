-- Mail that somebody searched for, and mail whose content is no longer kept.

-- Brought in by a search, and older than live mail: decisions about it are only recorded.
ALTER TABLE messages ADD COLUMN on_demand INTEGER NOT NULL DEFAULT 0;
-- How often one agent has searched mailboxes within the hour.
CREATE INDEX audit_mailbox_searches ON audit (actor, at) WHERE action = 'mailbox.search';

-- When the content of a message was removed because its time was over. The row stays, so that the message is still known.
ALTER TABLE messages ADD COLUMN pruned_at TEXT;
CREATE INDEX messages_kept ON messages (created_at, id) WHERE pruned_at IS NULL;
CREATE INDEX envelopes_copies ON envelopes (copy_of) WHERE copy_of IS NOT NULL;

-- The settings under which mail is pruned every day, once somebody has seen what that would prune.
CREATE TABLE retention_approval (
    single INTEGER PRIMARY KEY DEFAULT 1 CHECK (single = 1),
    policy_json TEXT NOT NULL,
    approved_by TEXT NOT NULL,
    approved_at TEXT NOT NULL
) STRICT;

-- Every dry run and every pruning, with counts by tier and category.
CREATE TABLE retention_runs (
    id TEXT PRIMARY KEY,
    is_dry INTEGER NOT NULL,
    policy_json TEXT NOT NULL,
    messages INTEGER NOT NULL,
    held INTEGER NOT NULL,
    counts_json TEXT NOT NULL,
    ran_by TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT NOT NULL
) STRICT;
CREATE INDEX retention_runs_newest ON retention_runs (ended_at, id);
