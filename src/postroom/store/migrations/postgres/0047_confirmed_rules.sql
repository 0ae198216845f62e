-- A rule that a token writes and that sends or deletes mail decides nothing until a person has confirmed it. The hash is
-- that of the content which a person wrote or confirmed. `earlier` stands for any content that a rule in use had before
-- this migration: people wrote it, and a token that changes it ends that.
ALTER TABLE rules ADD COLUMN confirmed_hash text CHECK (confirmed_hash = 'earlier' OR length(confirmed_hash) = 64);
UPDATE rules SET confirmed_hash = 'earlier' WHERE enabled AND mode = 'active';
