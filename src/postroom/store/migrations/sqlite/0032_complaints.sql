-- When a recipient complained about the mail: a complaint counts once, however often it is reported.
ALTER TABLE outbound_recipients ADD COLUMN complained_at TEXT;
