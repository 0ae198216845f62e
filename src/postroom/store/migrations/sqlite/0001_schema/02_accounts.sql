-- Mailboxes, the secrets that open them, sealed, their labels, and the people that their owner knows.

CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    provider TEXT NOT NULL CHECK (provider IN ('gmail', 'imap')),
    endpoint_identity TEXT NOT NULL UNIQUE,
    email TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'needs_consent', 'removed')),
    state_reason TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    -- From when on Postroom acts on an account's mail, by the mailbox's own time of the message; what is decided about
    -- earlier mail is only recorded. NULL until its owner has said so.
    acts_from TEXT
) STRICT;

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

-- Mail may be handed over with another password than the one it is read with.
CREATE TABLE credentials (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    field TEXT NOT NULL CHECK (field IN ('refresh_token', 'password', 'smtp_password')),
    key_id TEXT NOT NULL REFERENCES secret_keys (id),
    sealed TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (account_id, field)
) STRICT;

-- Mailboxes that are reached over IMAP: where their servers are and how to sign in, beside a sealed password.
CREATE TABLE mail_servers (
    account_id TEXT PRIMARY KEY REFERENCES accounts (id),
    imap_host TEXT NOT NULL,
    imap_port INTEGER NOT NULL CHECK (imap_port BETWEEN 1 AND 65535),
    imap_security TEXT NOT NULL CHECK (imap_security IN ('tls', 'starttls', 'plain')),
    smtp_host TEXT,
    smtp_port INTEGER CHECK (smtp_port BETWEEN 1 AND 65535),
    smtp_security TEXT CHECK (smtp_security IN ('tls', 'starttls', 'plain')),
    user_name TEXT NOT NULL,
    sign_in TEXT NOT NULL CHECK (sign_in IN ('password', 'xoauth2', 'oauthbearer')),
    labels_as TEXT NOT NULL CHECK (labels_as IN ('keywords', 'folders')),
    files_sent_mail INTEGER NOT NULL CHECK (files_sent_mail IN (0, 1)),
    given_at TEXT NOT NULL,
    trusted_certificates TEXT,
    -- The names under which the hosts that receive the mailbox's mail report on authentication, with blanks between them.
    authserv_ids TEXT NOT NULL DEFAULT '',
    CHECK ((smtp_host IS NULL) = (smtp_port IS NULL) AND (smtp_host IS NULL) = (smtp_security IS NULL))
) STRICT;

-- What the user may edit (description, whether the classifier may use it) survives every sync.
CREATE TABLE labels (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    provider_label_id TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('system', 'user')),
    description TEXT NOT NULL DEFAULT '',
    available_to_classifier INTEGER NOT NULL DEFAULT 1,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (account_id, provider_label_id)
) STRICT;

-- Words that named a label of an account and name none any more: its id, and its name whatever the case. Automation does
-- not create such a label anew unless somebody asked for it later than it was lost.
CREATE TABLE lost_labels (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    word TEXT NOT NULL,
    reason TEXT NOT NULL,
    lost_at TEXT NOT NULL,
    PRIMARY KEY (account_id, word)
) STRICT;

-- An address in the form in which addresses are compared. An empty endpoint_identity stands for every mailbox.
CREATE TABLE contacts (
    address TEXT NOT NULL,
    endpoint_identity TEXT NOT NULL DEFAULT '',
    name TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('vcard', 'csv', 'mcp', 'sent')),
    first_seen_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    PRIMARY KEY (address, endpoint_identity)
) STRICT, WITHOUT ROWID;
