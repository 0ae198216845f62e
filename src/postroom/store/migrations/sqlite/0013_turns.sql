-- What each pick did to the streaks is kept with the message it leased and with the queue, so that a pick that nobody got
-- can be taken back. What was leased before this counts as it did.
ALTER TABLE queue_state ADD COLUMN turns_json TEXT NOT NULL DEFAULT '{}';
ALTER TABLE inbox_queue ADD COLUMN turn_json TEXT;
