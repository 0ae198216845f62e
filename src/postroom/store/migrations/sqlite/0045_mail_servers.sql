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
    CHECK ((smtp_host IS NULL) = (smtp_port IS NULL) AND (smtp_host IS NULL) = (smtp_security IS NULL))
) STRICT;

-- Mail may be handed over with another password than the one it is read with.
ALTER TABLE credentials RENAME TO old_credentials;
CREATE TABLE credentials (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    field TEXT NOT NULL CHECK (field IN ('refresh_token', 'password', 'smtp_password')),
    key_id TEXT NOT NULL REFERENCES secret_keys (id),
    sealed TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (account_id, field)
) STRICT;
INSERT INTO credentials SELECT account_id, field, key_id, sealed, updated_at FROM old_credentials;
DROP TABLE old_credentials;
