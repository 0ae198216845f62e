-- Whose share of the day's budget a call has used, as a hash: kept for a week, for sums over the day.
ALTER TABLE model_calls ADD COLUMN share_sender text;
ALTER TABLE model_calls ADD COLUMN share_domain text;
CREATE INDEX model_calls_of_sender ON model_calls (day, share_sender) WHERE share_sender IS NOT NULL;
CREATE INDEX model_calls_of_domain ON model_calls (day, share_domain) WHERE share_domain IS NOT NULL;

-- Messages that wait for a share of the budget: which one ended, and how much was spent of it.
CREATE TABLE model_waits (
    message_id uuid PRIMARY KEY REFERENCES messages (id),
    day text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('sender', 'domain', 'tier')),
    share_key text NOT NULL,
    spent_micros bigint NOT NULL,
    cap_micros bigint NOT NULL,
    waits_since timestamptz NOT NULL
);
CREATE INDEX model_waits_day ON model_waits (day);
