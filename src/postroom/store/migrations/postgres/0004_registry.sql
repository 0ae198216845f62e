-- Who may ask, what was done by whom, and which connectors report.

-- Only the hash of a token's secret is kept. A token is revoked, never deleted: the audit log names it.
CREATE TABLE tokens (
    id uuid PRIMARY KEY,
    role text NOT NULL CHECK (role IN ('connector', 'dashboard', 'agent', 'admin')),
    identity text CHECK ((identity IS NOT NULL) = (role = 'connector')),
    name text,
    secret_sha256 text NOT NULL CHECK (length(secret_sha256) = 64),
    created_at timestamptz NOT NULL,
    expires_at timestamptz CHECK (expires_at > created_at),
    revoked_at timestamptz,
    last_used_at timestamptz
);

-- Rows are added, and never changed or deleted: the triggers below see to it, whoever asks.
CREATE TABLE audit (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
CREATE FUNCTION refuse_to_change_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only: % is refused', TG_OP USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER audit_keeps_its_rows BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION refuse_to_change_audit();
CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_audit();
-- Also for a session that calls itself a replica, for which triggers rest otherwise.
ALTER TABLE audit ENABLE ALWAYS TRIGGER audit_keeps_its_rows;
ALTER TABLE audit ENABLE ALWAYS TRIGGER audit_is_not_emptied;

-- The last report of every connector that ever reported. `state` is its own word about itself; whether it is online
-- follows from the time of the last heartbeat.
CREATE TABLE connectors (
    connector_type text NOT NULL,
    endpoint_identity text NOT NULL,
    instance_id text NOT NULL,
    version text,
    state text NOT NULL CHECK (state IN ('healthy', 'degraded', 'error')),
    error text,
    uptime_s double precision NOT NULL CHECK (uptime_s >= 0),
    counters_json json NOT NULL,
    checkpoint_json json,
    first_seen_at timestamptz NOT NULL,
    last_heartbeat_at timestamptz NOT NULL,
    last_sent_at timestamptz NOT NULL,
    PRIMARY KEY (endpoint_identity, connector_type, instance_id)
);
