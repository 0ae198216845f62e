-- Who may ask, how they prove who they are, and what was done by whom. Of each secret only a hash is stored; the one that
-- makes the codes of an app is sealed, since it must be read again.

-- Only the hash of a token's secret is kept. A token is revoked, never deleted: the audit log names it. The role `metrics`
-- is for programs that watch Postroom and see nothing of the mail.
CREATE TABLE tokens (
    id uuid PRIMARY KEY,
    role text NOT NULL CHECK (role IN ('connector', 'dashboard', 'agent', 'admin', 'sender', 'metrics')),
    identity text CHECK ((identity IS NOT NULL) = (role = 'connector')),
    name text,
    secret_sha256 text NOT NULL CHECK (length(secret_sha256) = 64),
    created_at timestamptz NOT NULL,
    expires_at timestamptz CHECK (expires_at > created_at),
    revoked_at timestamptz,
    last_used_at timestamptz,
    -- What an agent's token is bound to, if to anything: it sees, and proposes for, the mail of this account only.
    account_id uuid REFERENCES accounts (id) CHECK (account_id IS NULL OR role = 'agent'),
    -- The channels a connector's token may hand in, with commas between. Without any, those of its identity.
    channels text CHECK (channels IS NULL OR (role = 'connector' AND length(channels) > 0)),
    sender_id bigint REFERENCES senders (id) CHECK ((sender_id IS NOT NULL) = (role = 'sender'))
);

CREATE TABLE people (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    role text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    password_hash text,
    totp_key_id text REFERENCES secret_keys (id),
    totp_sealed text CHECK ((totp_sealed IS NULL) = (totp_key_id IS NULL)),
    totp_step bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE passkeys (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    credential_id text NOT NULL UNIQUE,
    public_key text NOT NULL,
    sign_count bigint NOT NULL,
    host text NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz
);
CREATE INDEX passkeys_person ON passkeys (person_id);

-- A session is found by the hash of its key and proven by its secret, which is replaced now and then. The one before is
-- accepted until `previous_until`, which is set when the new one is first used: a lost answer signs nobody out.
CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    key_sha256 text NOT NULL UNIQUE CHECK (length(key_sha256) = 64),
    secret_sha256 text NOT NULL CHECK (length(secret_sha256) = 64),
    previous_sha256 text CHECK (length(previous_sha256) = 64),
    previous_until timestamptz,
    browser text NOT NULL,
    address text NOT NULL,
    created_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    rotated_at timestamptz NOT NULL,
    proven_at timestamptz NOT NULL,
    idle_ends_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL
);
CREATE INDEX sessions_person ON sessions (person_id);

-- Links that work once. One without a person makes the first.
CREATE TABLE sign_in_links (
    id uuid PRIMARY KEY,
    person_id uuid REFERENCES people (id) ON DELETE CASCADE,
    secret_sha256 text NOT NULL UNIQUE CHECK (length(secret_sha256) = 64),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL CHECK (expires_at > created_at),
    used_at timestamptz
);
CREATE INDEX sign_in_links_person ON sign_in_links (person_id);

-- Challenges for passkeys are signed with this key and not stored; those that were answered are, so that an answer counts
-- once.
CREATE TABLE challenge_keys (
    only_one integer PRIMARY KEY CHECK (only_one = 1),
    secret text NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE TABLE used_challenges (
    challenge_sha256 text PRIMARY KEY CHECK (length(challenge_sha256) = 64),
    expires_at timestamptz NOT NULL
);

-- only postgres:
CREATE FUNCTION refuse_to_change_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only: % is refused', TG_OP USING ERRCODE = 'restrict_violation';
END
$$;

-- both:
-- Rows are added, and never changed or deleted: the triggers below see to it, whoever asks.
CREATE TABLE audit (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY{| CHECK (seq > 0)},
    id uuid NOT NULL UNIQUE,
    at timestamptz NOT NULL,
    actor text NOT NULL,
    role text NOT NULL,
    action text NOT NULL,
    object_type text NOT NULL,
    object_id text NOT NULL,
    before_json json,
    after_json json,
    reason text
);
-- How much one agent has undone within the hour.
CREATE INDEX audit_undos ON audit (actor, at) WHERE action = 'action.undo';
-- How often one agent has searched mailboxes within the hour.
CREATE INDEX audit_mailbox_searches ON audit (actor, at) WHERE action = 'mailbox.search';
CREATE INDEX audit_of_object ON audit (object_type, object_id, seq);
-- What one actor did, or how often one thing was done, however long the log has become.
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE INDEX audit_action ON audit (action, seq);
-- The audit of one person's acts of one kind.
CREATE INDEX audit_actor_action ON audit (actor, action, seq);
-- only postgres:
CREATE TRIGGER audit_keeps_its_rows BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION refuse_to_change_audit();
CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_audit();
-- Also for a session that calls itself a replica, for which triggers rest otherwise.
ALTER TABLE audit ENABLE ALWAYS TRIGGER audit_keeps_its_rows;
ALTER TABLE audit ENABLE ALWAYS TRIGGER audit_is_not_emptied;
-- only sqlite:
CREATE TRIGGER audit_keeps_its_rows BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only: its rows cannot be deleted');
END;
CREATE TRIGGER audit_keeps_its_words BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only: its rows cannot be changed');
END;
-- INSERT OR REPLACE deletes what it replaces without a word to the trigger on DELETE.
CREATE TRIGGER audit_replaces_nothing BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only: its rows cannot be replaced');
END;
