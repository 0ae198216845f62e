-- Mail leaves by SMTP, with an outcome for each recipient, from which the state of the mail follows.

-- What was delivered is `sent`, `partially_sent` if not to everybody, and `rejected` is what we or the destination do not take.
ALTER TABLE outbound_mail DROP CONSTRAINT outbound_mail_state_check, DROP CONSTRAINT outbound_mail_check1,
    DROP CONSTRAINT outbound_mail_kind_check;
UPDATE outbound_mail SET state = 'sent' WHERE state = 'delivered';
ALTER TABLE outbound_mail ADD CONSTRAINT outbound_mail_state_check CHECK (state IN
    ('queued', 'sending', 'deferred', 'unknown', 'sent', 'partially_sent', 'bounced', 'rejected', 'expired', 'canceled'));
ALTER TABLE outbound_mail ADD CONSTRAINT outbound_mail_check1 CHECK ((ended_at IS NOT NULL) =
    (state IN ('sent', 'partially_sent', 'bounced', 'rejected', 'expired', 'canceled')));
ALTER TABLE outbound_mail ADD CONSTRAINT outbound_mail_kind_check CHECK (kind IN
    ('forward', 'reply', 'submitted', 'report'));
ALTER TABLE outbound_mail ADD COLUMN require_tls boolean NOT NULL DEFAULT false;
ALTER TABLE outbound_mail ADD COLUMN smtputf8 boolean NOT NULL DEFAULT false;
ALTER TABLE outbound_mail ADD COLUMN body_8bit boolean NOT NULL DEFAULT false;
ALTER TABLE outbound_mail ADD COLUMN envelope_id text;
ALTER TABLE outbound_mail ADD COLUMN return_full boolean NOT NULL DEFAULT false;
ALTER TABLE outbound_mail ADD COLUMN message_id text;
CREATE INDEX outbound_mail_message ON outbound_mail (message_id) WHERE message_id IS NOT NULL;

-- `leaving_at` is when the content began to leave, under the lease of the mail: if its holder dies then, nobody knows whether
-- it arrived. `last_reply` is how the last attempt was answered, `enhanced` its enhanced status code. `notify` are the reports
-- that were asked for, separated by commas, and `original` the address as the sender gave it (RFC 3461).
ALTER TABLE outbound_recipients DROP CONSTRAINT outbound_recipients_state_check;
UPDATE outbound_recipients SET state = 'sent' WHERE state = 'delivered';
ALTER TABLE outbound_recipients ADD CONSTRAINT outbound_recipients_state_check CHECK (state IN
    ('queued', 'sending', 'deferred', 'unknown', 'sent', 'bounced', 'rejected', 'expired', 'canceled'));
ALTER TABLE outbound_recipients ADD COLUMN leaving_at timestamptz;
ALTER TABLE outbound_recipients ADD COLUMN enhanced text;
ALTER TABLE outbound_recipients ADD COLUMN bounce_class text
    CHECK (bounce_class IN ('hard', 'soft', 'policy', 'reputation', 'full', 'greylist', 'content'));
ALTER TABLE outbound_recipients ADD COLUMN delay_reported boolean NOT NULL DEFAULT false;
ALTER TABLE outbound_recipients ADD COLUMN notify text NOT NULL DEFAULT '';
ALTER TABLE outbound_recipients ADD COLUMN original text;
ALTER TABLE outbound_recipients ADD CONSTRAINT outbound_recipients_leaving_check CHECK (leaving_at IS NULL OR state = 'sending');
CREATE INDEX outbound_recipients_unknown ON outbound_recipients (mail_id) WHERE state = 'unknown';

-- Addresses that get no more mail of a tenant.
CREATE TABLE suppressions (
    tenant text NOT NULL,
    address text NOT NULL,
    cause text NOT NULL CHECK (cause IN ('bounce', 'complaint', 'person')),
    detail text,
    mail_id uuid,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, address)
);

-- Destinations to which no mail leaves now.
CREATE TABLE destination_pauses (
    destination text PRIMARY KEY,
    reason text NOT NULL,
    paused_by text NOT NULL,
    created_at timestamptz NOT NULL
);

-- Policies of destinations (RFC 8461), which hold although they cannot be fetched any more.
CREATE TABLE mta_sts_policies (
    domain text PRIMARY KEY,
    policy_id text NOT NULL,
    mode text NOT NULL CHECK (mode IN ('enforce', 'testing', 'none')),
    mx_json text NOT NULL,
    expires_at timestamptz NOT NULL
);

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
