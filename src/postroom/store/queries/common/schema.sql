-- name: select_migrations()
SELECT version, name, checksum FROM schema_migrations ORDER BY version

-- name: write_probe(now)
INSERT INTO write_probes (id, written_at) VALUES (1, :now) ON CONFLICT (id) DO UPDATE SET written_at = excluded.written_at
