-- Words that named a label of an account and name none any more: its id, and its name whatever the case. Automation does not
-- create such a label anew unless somebody asked for it later than it was lost.
CREATE TABLE lost_labels (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    word TEXT NOT NULL,
    reason TEXT NOT NULL,
    lost_at TEXT NOT NULL,
    PRIMARY KEY (account_id, word)
) STRICT;
