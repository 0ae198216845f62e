-- When the first message of an hour was counted, and the first that bounced or was rejected: the time to detect abuse counts
-- from there. `active_since` of a throttle is that time from now on. Hours counted before have neither.
ALTER TABLE sender_hours ADD COLUMN first_at timestamptz;
ALTER TABLE sender_hours ADD COLUMN first_bad_at timestamptz;
