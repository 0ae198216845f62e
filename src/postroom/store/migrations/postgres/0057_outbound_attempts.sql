-- Every attempt at a recipient, so that people can see why a mail was late. While a mail is held back, one row counts how often.
CREATE TABLE outbound_attempts (
    mail_id uuid NOT NULL REFERENCES outbound_mail (id),
    position bigint NOT NULL,
    number bigint NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('sent', 'deferred', 'bounced', 'rejected', 'expired', 'canceled', 'unknown', 'held')),
    started_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    times bigint NOT NULL DEFAULT 1,
    host text,
    tls text,
    reply text,
    PRIMARY KEY (mail_id, position, number, outcome)
);
