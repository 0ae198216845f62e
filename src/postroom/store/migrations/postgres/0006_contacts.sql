-- Whom the user knows, how much of a message is taken in, and what connectors are asked to do at once.

-- An address in the form in which addresses are compared. An empty endpoint_identity stands for every mailbox.
CREATE TABLE contacts (
    address text COLLATE "C" NOT NULL,
    endpoint_identity text NOT NULL DEFAULT '',
    name text NOT NULL,
    source text NOT NULL CHECK (source IN ('vcard', 'csv', 'mcp', 'sent')),
    first_seen_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    PRIMARY KEY (address, endpoint_identity)
);

-- The user's own rules, and those of the shipped pack that were switched off; the pack itself is in the code.
CREATE TABLE ingestion_rules (
    name text PRIMARY KEY,
    position bigint NOT NULL CHECK (position BETWEEN 0 AND 1000000),
    conditions_json json NOT NULL,
    tier text NOT NULL CHECK (tier IN ('full', 'metadata', 'skip')),
    enabled boolean NOT NULL,
    origin text NOT NULL CHECK (origin IN ('pack', 'user')),
    created_at timestamptz NOT NULL
);

CREATE TABLE connector_requests (
    id uuid PRIMARY KEY,
    endpoint_identity text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('sync_now', 'estimate', 'search')),
    arguments_json json NOT NULL,
    state text NOT NULL CHECK (state IN ('queued', 'leased', 'answered', 'failed', 'expired')),
    lease_token uuid,
    lease_until timestamptz,
    answer_json json,
    error text,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    ended_at timestamptz,
    CHECK ((state = 'leased') = (lease_token IS NOT NULL AND lease_until IS NOT NULL)),
    CHECK ((ended_at IS NOT NULL) = (state IN ('answered', 'failed', 'expired')))
);

CREATE INDEX live_requests ON connector_requests (endpoint_identity, id) WHERE state IN ('queued', 'leased');
CREATE INDEX ended_requests ON connector_requests (ended_at) WHERE ended_at IS NOT NULL;
