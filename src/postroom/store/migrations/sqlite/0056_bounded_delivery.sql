-- Since when a mail is in delivery, and in which lane it was chosen: the bound of all processes counts both.
ALTER TABLE outbound_mail ADD COLUMN leased_at TEXT;
ALTER TABLE outbound_mail ADD COLUMN leased_lane TEXT;
