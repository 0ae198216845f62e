-- Counts by hour, summed up once their time is over, so that a page that shows weeks reads few rows: six hours of what came
-- in, and days of outgoing mail. `figure_folds` says which times are summed up.
CREATE TABLE figure_folds (
    name TEXT PRIMARY KEY,
    since TEXT NOT NULL,
    until TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE rollup_spans (
    measure TEXT NOT NULL,
    start TEXT NOT NULL,
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    endpoint_identity TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    count INTEGER NOT NULL,
    total_ms INTEGER NOT NULL,
    PRIMARY KEY (measure, start, queue, name, endpoint_identity, bucket)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollup_spans_start ON rollup_spans (start);

CREATE TABLE outbound_service_days (
    day TEXT NOT NULL,
    discipline TEXT NOT NULL,
    sender_id INTEGER NOT NULL REFERENCES senders (id),
    mails INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    PRIMARY KEY (day, discipline, sender_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbound_times_days (
    day TEXT NOT NULL,
    measure TEXT NOT NULL,
    discipline TEXT NOT NULL,
    lane TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    count INTEGER NOT NULL,
    total_us INTEGER NOT NULL,
    PRIMARY KEY (day, measure, discipline, lane, bucket)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbound_results_days (
    day TEXT NOT NULL,
    destination TEXT NOT NULL,
    result TEXT NOT NULL,
    bounce_class TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (day, destination, result, bounce_class)
) STRICT, WITHOUT ROWID;

-- How evenly tenants were served in an hour that is over.
CREATE TABLE outbound_evenness (
    hour TEXT PRIMARY KEY,
    members INTEGER NOT NULL,
    served INTEGER NOT NULL,
    gini REAL NOT NULL,
    jain REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- The audit of one person's acts of one kind.
CREATE INDEX audit_actor_action ON audit (actor, action, seq);
