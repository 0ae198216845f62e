-- A database that was restored from a backup knows it, and which of its mail may have been sent since the backup.

-- One row: which installation this is, how often it was restored, and when it was last in use. `ticks` only ever grows; the
-- data folder holds a copy of it, which shows when the database has gone back. `place` is the server or file it lives in.
CREATE TABLE timeline (
    single boolean PRIMARY KEY DEFAULT true CHECK (single{| = 1}),
    instance_id uuid NOT NULL,
    epoch bigint NOT NULL CHECK (epoch >= 1),
    ticks bigint NOT NULL,
    place text NOT NULL,
    alive_at timestamptz NOT NULL
);

-- Every restore: how it was noticed, and the time after which what was done is not in the database.
CREATE TABLE restores (
    epoch bigint PRIMARY KEY,
    noticed_by text NOT NULL CHECK (noticed_by IN ('command', 'place', 'ticks', 'sent_mail')),
    backup_at timestamptz NOT NULL,
    restored_at timestamptz NOT NULL
);

-- Mailboxes whose sent mail has to be compared with a restored database before anything leaves them (`checked_at` is
-- empty).
CREATE TABLE restore_checks (
    account_id uuid PRIMARY KEY REFERENCES accounts (id),
    epoch bigint NOT NULL,
    since timestamptz NOT NULL,
    restored_at timestamptz NOT NULL,
    checked_at timestamptz
);
CREATE INDEX restore_checks_pending ON restore_checks (account_id) WHERE checked_at IS NULL;

-- Mail that Postroom sent after the backup, found in the mailbox. Each settles one delivery at most.
CREATE TABLE restored_sends (
    account_id uuid NOT NULL REFERENCES accounts (id),
    sent_message_id text NOT NULL,
    delivery_id uuid NOT NULL,
    source_key text,
    sent_at timestamptz NOT NULL,
    settled_by uuid,
    PRIMARY KEY (account_id, sent_message_id)
);
CREATE INDEX restored_sends_source ON restored_sends (account_id, source_key) WHERE settled_by IS NULL;
