-- name: select_migration_table()
SELECT to_regclass('postroom.schema_migrations') IS NOT NULL

-- name: insert_migration(version, name, checksum)
INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (:version, :name, :checksum, now())

-- name: select_health()
-- What the server would have for a session that does not set synchronous_commit itself, as ours do.
SELECT current_setting('fsync'), (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
    current_setting('full_page_writes'),
    current_setting('server_version_num')::integer, clock_timestamp()
