-- What an account may do, and the secrets that prove it, sealed.

-- What the user agreed to at the provider. `dies_at` is there when the provider said how long the consent lives.
CREATE TABLE consents (
    account_id TEXT PRIMARY KEY REFERENCES accounts (id),
    client_id TEXT NOT NULL,
    level TEXT NOT NULL CHECK (level IN ('read', 'organise', 'send', 'full')),
    scopes_json TEXT NOT NULL,
    granted_at TEXT NOT NULL,
    refreshed_at TEXT,
    dies_at TEXT
) STRICT;

-- Every key that ever sealed something here, by its id; the keys themselves are elsewhere. A dropped one seals no more.
CREATE TABLE secret_keys (
    id TEXT PRIMARY KEY,
    first_used_at TEXT NOT NULL,
    dropped_at TEXT
) STRICT;

CREATE TABLE credentials (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    field TEXT NOT NULL CHECK (field IN ('refresh_token', 'password')),
    key_id TEXT NOT NULL REFERENCES secret_keys (id),
    sealed TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (account_id, field)
) STRICT;
