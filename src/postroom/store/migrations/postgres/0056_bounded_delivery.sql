-- Since when a mail is in delivery, and in which lane it was chosen: the bound of all processes counts both.
ALTER TABLE outbound_mail ADD COLUMN leased_at timestamptz;
ALTER TABLE outbound_mail ADD COLUMN leased_lane text;
