-- Every attempt at a recipient, so that people can see why a mail was late. While a mail is held back, one row counts how often.
CREATE TABLE outbound_attempts (
    mail_id TEXT NOT NULL REFERENCES outbound_mail (id),
    position INTEGER NOT NULL,
    number INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('sent', 'deferred', 'bounced', 'rejected', 'expired', 'canceled', 'unknown', 'held')),
    started_at TEXT NOT NULL,
    ended_at TEXT NOT NULL,
    times INTEGER NOT NULL DEFAULT 1,
    host TEXT,
    tls TEXT,
    reply TEXT,
    PRIMARY KEY (mail_id, position, number, outcome)
) STRICT, WITHOUT ROWID;
