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
    files_sent_mail boolean NOT NULL,
    given_at timestamptz NOT NULL,
    trusted_certificates text,
    CHECK ((smtp_host IS NULL) = (smtp_port IS NULL) AND (smtp_host IS NULL) = (smtp_security IS NULL))
);

-- Mail may be handed over with another password than the one it is read with.
ALTER TABLE credentials
    DROP CONSTRAINT credentials_field_check,
    ADD CONSTRAINT credentials_field_check CHECK (field IN ('refresh_token', 'password', 'smtp_password'));
