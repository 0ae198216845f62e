-- Words that named a label of an account and name none any more: its id, and its name whatever the case. Automation does not
-- create such a label anew unless somebody asked for it later than it was lost.
CREATE TABLE lost_labels (
    account_id uuid NOT NULL REFERENCES accounts (id),
    word text NOT NULL,
    reason text NOT NULL,
    lost_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, word)
);
