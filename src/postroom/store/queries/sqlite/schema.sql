-- name: select_migration_table()
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations'

-- name: insert_migration(version, name, checksum)
INSERT INTO schema_migrations (version, name, checksum, applied_at)
VALUES (:version, :name, :checksum, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))

-- name: select_health()
SELECT (SELECT journal_mode FROM pragma_journal_mode), (SELECT synchronous FROM pragma_synchronous),
    sqlite_version(), strftime('%Y-%m-%dT%H:%M:%fZ', 'now')

-- name: quick_check()
SELECT quick_check FROM pragma_quick_check LIMIT 5
