-- From when on Postroom acts on an account's mail, by the mailbox's own time of the message; what is decided about earlier
-- mail is only recorded. NULL until its owner has said so. Accounts that are there already go on acting.
ALTER TABLE accounts ADD COLUMN acts_from timestamptz;
UPDATE accounts SET acts_from = '1970-01-01T00:00:00Z';
