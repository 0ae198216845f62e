-- name: select_place()
-- The database, and the server's history: restoring to a point in time, or promoting a standby, begins a new one.
SELECT (SELECT oid FROM pg_database WHERE datname = current_database()),
    CASE WHEN pg_is_in_recovery() THEN '-' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END,
    has_function_privilege('pg_control_system()', 'execute'),
    current_setting('synchronous_standby_names') <> ''
        AND current_setting('synchronous_commit') IN ('on', 'remote_apply')

-- name: count_receipts(tokens)
SELECT count(*) FROM receipts WHERE token = ANY(:tokens::uuid[]) AND NOT void

-- name: select_server_id()
SELECT system_identifier FROM pg_control_system()
