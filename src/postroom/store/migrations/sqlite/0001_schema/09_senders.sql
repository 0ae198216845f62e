-- Who sends mail: tenants, their domains, and the senders of each domain. The ids are the keys of the fair picker's rows.

CREATE TABLE tenants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    weight REAL NOT NULL DEFAULT 1 CHECK (weight > 0),
    state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused')),
    state_reason TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

-- The domain of a sender's address. It belongs to one tenant, by default to a tenant of its own name.
CREATE TABLE sender_domains (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id INTEGER NOT NULL REFERENCES tenants (id),
    name TEXT NOT NULL UNIQUE,
    weight REAL NOT NULL DEFAULT 1 CHECK (weight > 0),
    daily_limit INTEGER CHECK (daily_limit > 0),
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX sender_domains_tenant ON sender_domains (tenant_id);

-- A user who may submit mail. `addresses_json` are the patterns of addresses that they may write in From. A limit that is
-- NULL is that of the settings. `counted_from` is set when a person releases the sender: what was counted before it is no
-- longer held against them.
CREATE TABLE senders (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    domain_id INTEGER NOT NULL REFERENCES sender_domains (id),
    username TEXT NOT NULL UNIQUE,
    addresses_json TEXT NOT NULL,
    password_hash TEXT,
    plan TEXT NOT NULL,
    weight REAL NOT NULL DEFAULT 1 CHECK (weight > 0),
    state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'disabled')),
    state_reason TEXT,
    daily_limit INTEGER CHECK (daily_limit > 0),
    abuse_score INTEGER NOT NULL DEFAULT 0 CHECK (abuse_score BETWEEN 0 AND 100),
    throttled_until TEXT,
    throttle_reason TEXT,
    counted_from TEXT,
    first_accepted_at TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    -- The lane in which a sender's mail waits, apart from retries, and whether it is held back.
    queue_lane TEXT NOT NULL DEFAULT 'normal' CHECK (queue_lane IN ('high', 'normal', 'low', 'throttled')),
    queue_held INTEGER NOT NULL DEFAULT 0,
    CHECK ((throttled_until IS NULL) = (throttle_reason IS NULL))
) STRICT;
CREATE INDEX senders_domain ON senders (domain_id);
-- Those whose score or throttle may have to fall, though they send nothing.
CREATE INDEX senders_watched ON senders (id) WHERE abuse_score > 0 OR throttled_until IS NOT NULL;

-- Every throttle there was, for the figures. `active_since` is the time of the first message that led to it.
CREATE TABLE sender_throttles (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    sender_id INTEGER NOT NULL REFERENCES senders (id),
    started_by TEXT NOT NULL CHECK (started_by IN ('score', 'person')),
    score INTEGER,
    reason TEXT NOT NULL,
    active_since TEXT,
    started_at TEXT NOT NULL,
    until TEXT NOT NULL,
    ended_at TEXT,
    ended_by TEXT CHECK (ended_by IN ('score', 'person')),
    CHECK ((ended_at IS NULL) = (ended_by IS NULL)),
    CHECK ((score IS NULL) = (started_by = 'person'))
) STRICT;
CREATE UNIQUE INDEX open_throttles ON sender_throttles (sender_id) WHERE ended_at IS NULL;
CREATE INDEX throttles_started ON sender_throttles (started_at);

-- Messages by hour, each recipient counted: when they were accepted, and when they ended.
CREATE TABLE sender_hours (
    sender_id INTEGER NOT NULL REFERENCES senders (id),
    hour TEXT NOT NULL,
    accepted INTEGER NOT NULL DEFAULT 0,
    delivered INTEGER NOT NULL DEFAULT 0,
    bounced INTEGER NOT NULL DEFAULT 0,
    rejected INTEGER NOT NULL DEFAULT 0,
    -- When the first message of an hour was counted, and the first that bounced or was rejected: the time to detect
    -- abuse counts from there.
    first_at TEXT,
    first_bad_at TEXT,
    PRIMARY KEY (sender_id, hour)
) STRICT;
CREATE INDEX sender_hours_hour ON sender_hours (hour, sender_id);

-- Messages accepted on each day (UTC) of a sender, and of a domain that has a limit: one row to lock and to compare.
CREATE TABLE accepted_days (
    level TEXT NOT NULL CHECK (level IN ('sender', 'domain')),
    node_id INTEGER NOT NULL,
    day TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    PRIMARY KEY (level, node_id, day)
) STRICT;
CREATE INDEX accepted_days_day ON accepted_days (day);

-- The keys that sign mail of a domain, sealed.
CREATE TABLE dkim_keys (
    id TEXT PRIMARY KEY,
    domain TEXT NOT NULL,
    selector TEXT NOT NULL,
    algorithm TEXT NOT NULL CHECK (algorithm IN ('rsa-sha256', 'ed25519-sha256')),
    key_id TEXT NOT NULL REFERENCES secret_keys (id),
    sealed TEXT NOT NULL,
    public_key TEXT NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (domain, selector)
) STRICT;
