-- Why the sender of a message is in doubt: its authentication failed, or it is unclear whom it says it is from. NULL if
-- it is not in doubt, or if the message was stored before.
ALTER TABLE messages ADD COLUMN sender_doubt TEXT CHECK (sender_doubt IN ('failed', 'unclear'));
-- The names under which the hosts that receive the mailbox's mail report on authentication, with blanks between them.
ALTER TABLE mail_servers ADD COLUMN authserv_ids TEXT NOT NULL DEFAULT '';
