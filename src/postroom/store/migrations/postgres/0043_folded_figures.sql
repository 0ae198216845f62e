-- Counts by hour, summed up once their time is over, so that a page that shows weeks reads few rows: six hours of what came
-- in, and days of outgoing mail. `figure_folds` says which times are summed up.
CREATE TABLE figure_folds (
    name text PRIMARY KEY,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL
);

CREATE TABLE rollup_spans (
    measure text NOT NULL,
    start timestamptz NOT NULL,
    queue text NOT NULL,
    name text NOT NULL,
    endpoint_identity text NOT NULL,
    bucket bigint NOT NULL,
    count bigint NOT NULL,
    total_ms bigint NOT NULL,
    PRIMARY KEY (measure, start, queue, name, endpoint_identity, bucket)
);
CREATE INDEX rollup_spans_start ON rollup_spans (start);

CREATE TABLE outbound_service_days (
    day timestamptz NOT NULL,
    discipline text NOT NULL,
    sender_id bigint NOT NULL REFERENCES senders (id),
    mails bigint NOT NULL,
    recipients bigint NOT NULL,
    PRIMARY KEY (day, discipline, sender_id)
);

CREATE TABLE outbound_times_days (
    day timestamptz NOT NULL,
    measure text NOT NULL,
    discipline text NOT NULL,
    lane text NOT NULL,
    bucket bigint NOT NULL,
    count bigint NOT NULL,
    total_us bigint NOT NULL,
    PRIMARY KEY (day, measure, discipline, lane, bucket)
);

CREATE TABLE outbound_results_days (
    day timestamptz NOT NULL,
    destination text NOT NULL,
    result text NOT NULL,
    bounce_class text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (day, destination, result, bounce_class)
);

-- How evenly tenants were served in an hour that is over.
CREATE TABLE outbound_evenness (
    hour timestamptz PRIMARY KEY,
    members bigint NOT NULL,
    served bigint NOT NULL,
    gini double precision NOT NULL,
    jain double precision NOT NULL
);

-- The audit of one person's acts of one kind.
CREATE INDEX audit_actor_action ON audit (actor, action, seq);
