-- What an account may do, and the secrets that prove it, sealed.

-- What the user agreed to at the provider. `dies_at` is there when the provider said how long the consent lives.
CREATE TABLE consents (
    account_id uuid PRIMARY KEY REFERENCES accounts (id),
    client_id text NOT NULL,
    level text NOT NULL CHECK (level IN ('read', 'organise', 'send', 'full')),
    scopes_json json NOT NULL,
    granted_at timestamptz NOT NULL,
    refreshed_at timestamptz,
    dies_at timestamptz
);

-- Every key that ever sealed something here, by its id; the keys themselves are elsewhere. A dropped one seals no more.
CREATE TABLE secret_keys (
    id text PRIMARY KEY,
    first_used_at timestamptz NOT NULL,
    dropped_at timestamptz
);

CREATE TABLE credentials (
    account_id uuid NOT NULL REFERENCES accounts (id),
    field text NOT NULL CHECK (field IN ('refresh_token', 'password')),
    key_id text NOT NULL REFERENCES secret_keys (id),
    sealed text NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, field)
);
