-- The channels a connector's token may hand in, with commas between. Without any, those of its identity.
ALTER TABLE tokens ADD COLUMN channels TEXT CHECK (channels IS NULL OR (role = 'connector' AND length(channels) > 0));
