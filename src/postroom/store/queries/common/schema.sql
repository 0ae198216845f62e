-- name: select_migrations()
SELECT version, name, checksum FROM schema_migrations ORDER BY version

-- name: write_probe(now)
INSERT INTO write_probes (id, written_at) VALUES (1, :now) ON CONFLICT (id) DO UPDATE SET written_at = excluded.written_at

-- name: select_program_version()
SELECT version FROM program_versions ORDER BY since DESC LIMIT 1

-- name: delete_program_versions_since(since)
DELETE FROM program_versions WHERE since >= :since

-- name: insert_program_version(version, since)
INSERT INTO program_versions (since, version) VALUES (:since, :version)
ON CONFLICT (since) DO UPDATE SET version = excluded.version

-- name: select_holds_data()
SELECT EXISTS (SELECT 1 FROM accounts) OR EXISTS (SELECT 1 FROM envelopes) OR EXISTS (SELECT 1 FROM rules)
    OR EXISTS (SELECT 1 FROM jobs) OR EXISTS (SELECT 1 FROM contacts) OR EXISTS (SELECT 1 FROM tokens)
    OR EXISTS (SELECT 1 FROM people) OR EXISTS (SELECT 1 FROM audit)
