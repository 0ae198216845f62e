-- A database that was restored from a backup knows it, and which of its mail may have been sent since the backup.

-- One row: which installation this is, how often it was restored, and when it was last in use. `ticks` only ever grows; the
-- data folder holds a copy of it, which shows when the database has gone back. `place` is the server or file it lives in.
CREATE TABLE timeline (
    single INTEGER PRIMARY KEY DEFAULT 1 CHECK (single = 1),
    instance_id TEXT NOT NULL,
    epoch INTEGER NOT NULL CHECK (epoch >= 1),
    ticks INTEGER NOT NULL,
    place TEXT NOT NULL,
    alive_at TEXT NOT NULL
) STRICT;

-- Every restore: how it was noticed, and the time after which what was done is not in the database.
CREATE TABLE restores (
    epoch INTEGER PRIMARY KEY,
    noticed_by TEXT NOT NULL CHECK (noticed_by IN ('command', 'place', 'ticks', 'sent_mail')),
    backup_at TEXT NOT NULL,
    restored_at TEXT NOT NULL
) STRICT;

-- Mailboxes whose sent mail has to be compared with a restored database before anything leaves them (`checked_at` is
-- empty).
CREATE TABLE restore_checks (
    account_id TEXT PRIMARY KEY REFERENCES accounts (id),
    epoch INTEGER NOT NULL,
    since TEXT NOT NULL,
    restored_at TEXT NOT NULL,
    checked_at TEXT
) STRICT;
CREATE INDEX restore_checks_pending ON restore_checks (account_id) WHERE checked_at IS NULL;

-- Mail that Postroom sent after the backup, found in the mailbox. Each settles one delivery at most.
CREATE TABLE restored_sends (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    sent_message_id TEXT NOT NULL,
    delivery_id TEXT NOT NULL,
    source_key TEXT,
    sent_at TEXT NOT NULL,
    settled_by TEXT,
    PRIMARY KEY (account_id, sent_message_id)
) STRICT;
CREATE INDEX restored_sends_source ON restored_sends (account_id, source_key) WHERE settled_by IS NULL;
