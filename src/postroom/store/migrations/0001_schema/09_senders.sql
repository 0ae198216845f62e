-- Who sends mail: tenants, their domains, and the senders of each domain. The ids are the keys of the fair picker's rows.

CREATE TABLE tenants (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    weight double precision NOT NULL DEFAULT 1 CHECK (weight > 0),
    state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused')),
    state_reason text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- The domain of a sender's address. It belongs to one tenant, by default to a tenant of its own name.
CREATE TABLE sender_domains (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants (id),
    name text NOT NULL UNIQUE,
    weight double precision NOT NULL DEFAULT 1 CHECK (weight > 0),
    daily_limit bigint CHECK (daily_limit > 0),
    created_at timestamptz NOT NULL
);
CREATE INDEX sender_domains_tenant ON sender_domains (tenant_id);

-- A user who may submit mail. `addresses_json` are the patterns of addresses that they may write in From. A limit that is
-- NULL is that of the settings. `counted_from` is set when a person releases the sender: what was counted before it is no
-- longer held against them.
CREATE TABLE senders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain_id bigint NOT NULL REFERENCES sender_domains (id),
    username text NOT NULL UNIQUE,
    addresses_json text NOT NULL,
    password_hash text,
    plan text NOT NULL,
    weight double precision NOT NULL DEFAULT 1 CHECK (weight > 0),
    state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'disabled')),
    state_reason text,
    daily_limit bigint CHECK (daily_limit > 0),
    abuse_score integer NOT NULL DEFAULT 0 CHECK (abuse_score BETWEEN 0 AND 100),
    throttled_until timestamptz,
    throttle_reason text,
    counted_from timestamptz,
    first_accepted_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- The lane in which a sender's mail waits, apart from retries, and whether it is held back.
    queue_lane text NOT NULL DEFAULT 'normal' CHECK (queue_lane IN ('high', 'normal', 'low', 'throttled')),
    queue_held boolean NOT NULL DEFAULT false,
    CHECK ((throttled_until IS NULL) = (throttle_reason IS NULL))
);
CREATE INDEX senders_domain ON senders (domain_id);
-- Those whose score or throttle may have to fall, though they send nothing.
CREATE INDEX senders_watched ON senders (id) WHERE abuse_score > 0 OR throttled_until IS NOT NULL;

-- Every throttle there was, for the figures. `active_since` is the time of the first message that led to it.
CREATE TABLE sender_throttles (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sender_id bigint NOT NULL REFERENCES senders (id),
    started_by text NOT NULL CHECK (started_by IN ('score', 'person')),
    score integer,
    reason text NOT NULL,
    active_since timestamptz,
    started_at timestamptz NOT NULL,
    until timestamptz NOT NULL,
    ended_at timestamptz,
    ended_by text CHECK (ended_by IN ('score', 'person')),
    CHECK ((ended_at IS NULL) = (ended_by IS NULL)),
    CHECK ((score IS NULL) = (started_by = 'person'))
);
CREATE UNIQUE INDEX open_throttles ON sender_throttles (sender_id) WHERE ended_at IS NULL;
CREATE INDEX throttles_started ON sender_throttles (started_at);

-- Messages by hour, each recipient counted: when they were accepted, and when they ended.
CREATE TABLE sender_hours (
    sender_id bigint NOT NULL REFERENCES senders (id),
    hour timestamptz NOT NULL,
    accepted bigint NOT NULL DEFAULT 0,
    delivered bigint NOT NULL DEFAULT 0,
    bounced bigint NOT NULL DEFAULT 0,
    rejected bigint NOT NULL DEFAULT 0,
    -- When the first message of an hour was counted, and the first that bounced or was rejected: the time to detect
    -- abuse counts from there.
    first_at timestamptz,
    first_bad_at timestamptz,
    PRIMARY KEY (sender_id, hour)
);
CREATE INDEX sender_hours_hour ON sender_hours (hour, sender_id);

-- Messages accepted on each day (UTC) of a sender, and of a domain that has a limit: one row to lock and to compare.
CREATE TABLE accepted_days (
    level text NOT NULL CHECK (level IN ('sender', 'domain')),
    node_id bigint NOT NULL,
    day text NOT NULL,
    accepted bigint NOT NULL,
    PRIMARY KEY (level, node_id, day)
);
CREATE INDEX accepted_days_day ON accepted_days (day);

-- The keys that sign mail of a domain, sealed.
CREATE TABLE dkim_keys (
    id uuid PRIMARY KEY,
    domain text NOT NULL,
    selector text NOT NULL,
    algorithm text NOT NULL CHECK (algorithm IN ('rsa-sha256', 'ed25519-sha256')),
    key_id text NOT NULL REFERENCES secret_keys (id),
    sealed text NOT NULL,
    public_key text NOT NULL,
    created_at timestamptz NOT NULL,
    UNIQUE (domain, selector)
);
