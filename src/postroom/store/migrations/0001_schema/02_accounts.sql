-- Mailboxes, the secrets that open them, sealed, their labels, and the people that their owner knows.

CREATE TABLE accounts (
    id uuid PRIMARY KEY,
    provider text NOT NULL CHECK (provider IN ('gmail', 'imap')),
    endpoint_identity text NOT NULL UNIQUE,
    email text NOT NULL,
    state text NOT NULL CHECK (state IN ('active', 'paused', 'needs_consent', 'removed')),
    state_reason text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- From when on Postroom acts on an account's mail, by the mailbox's own time of the message; what is decided about
    -- earlier mail is only recorded. NULL until its owner has said so.
    acts_from timestamptz
);

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

-- Mail may be handed over with another password than the one it is read with.
CREATE TABLE credentials (
    account_id uuid NOT NULL REFERENCES accounts (id),
    field text NOT NULL CHECK (field IN ('refresh_token', 'password', 'smtp_password')),
    key_id text NOT NULL REFERENCES secret_keys (id),
    sealed text NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, field)
);

-- Mailboxes that are reached over IMAP: where their servers are and how to sign in, beside a sealed password.
CREATE TABLE mail_servers (
    account_id uuid PRIMARY KEY REFERENCES accounts (id),
    imap_host text NOT NULL,
    imap_port integer NOT NULL CHECK (imap_port BETWEEN 1 AND 65535),
    imap_security text NOT NULL CHECK (imap_security IN ('tls', 'starttls', 'plain')),
    smtp_host text,
    smtp_port integer CHECK (smtp_port BETWEEN 1 AND 65535),
    smtp_security text CHECK (smtp_security IN ('tls', 'starttls', 'plain')),
    user_name text NOT NULL,
    sign_in text NOT NULL CHECK (sign_in IN ('password', 'xoauth2', 'oauthbearer')),
    labels_as text NOT NULL CHECK (labels_as IN ('keywords', 'folders')),
    files_sent_mail boolean NOT NULL{| CHECK (files_sent_mail IN (0, 1))},
    given_at timestamptz NOT NULL,
    trusted_certificates text,
    -- The names under which the hosts that receive the mailbox's mail report on authentication, with blanks between them.
    authserv_ids text NOT NULL DEFAULT '',
    CHECK ((smtp_host IS NULL) = (smtp_port IS NULL) AND (smtp_host IS NULL) = (smtp_security IS NULL))
);

-- What the user may edit (description, whether the classifier may use it) survives every sync.
CREATE TABLE labels (
    account_id uuid NOT NULL REFERENCES accounts (id),
    provider_label_id text NOT NULL,
    name text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('system', 'user')),
    description text NOT NULL DEFAULT '',
    available_to_classifier boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, provider_label_id)
);

-- Words that named a label of an account and name none any more: its id, and its name whatever the case. Automation does
-- not create such a label anew unless somebody asked for it later than it was lost.
CREATE TABLE lost_labels (
    account_id uuid NOT NULL REFERENCES accounts (id),
    word text NOT NULL,
    reason text NOT NULL,
    lost_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, word)
);

-- An address in the form in which addresses are compared. An empty endpoint_identity stands for every mailbox.
CREATE TABLE contacts (
    address text COLLATE "C" NOT NULL,
    endpoint_identity text NOT NULL DEFAULT '',
    name text NOT NULL,
    source text NOT NULL CHECK (source IN ('vcard', 'csv', 'mcp', 'sent')),
    first_seen_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    PRIMARY KEY (address, endpoint_identity)
){| STRICT, WITHOUT ROWID};
