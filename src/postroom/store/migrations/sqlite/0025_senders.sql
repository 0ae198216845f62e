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
    CHECK ((throttled_until IS NULL) = (throttle_reason IS NULL))
) STRICT;
CREATE INDEX senders_domain ON senders (domain_id);
-- Those whose score or throttle may have to fall, though they send nothing.
CREATE INDEX senders_watched ON senders (id) WHERE abuse_score > 0 OR throttled_until IS NOT NULL;

-- Every throttle there was, for the figures. `active_since` is the first hour of the counts that led to it.
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

-- Those who have sent mail before: the owners of mailboxes.
INSERT INTO tenants (name, created_at, updated_at) SELECT tenant, min(asked_at), min(asked_at) FROM outbound_mail GROUP BY tenant;
INSERT INTO sender_domains (tenant_id, name, created_at)
SELECT min(t.id), m.domain, min(m.asked_at) FROM outbound_mail m JOIN tenants t ON t.name = m.tenant GROUP BY m.domain;
INSERT INTO senders (domain_id, username, addresses_json, plan, created_at, updated_at)
SELECT min(d.id), lower(m.username), json_array(lower(m.username)), 'standard', min(a.created_at), min(a.created_at)
FROM outbound_mail m JOIN sender_domains d ON d.name = m.domain JOIN accounts a ON a.id = m.account_id GROUP BY lower(m.username);
