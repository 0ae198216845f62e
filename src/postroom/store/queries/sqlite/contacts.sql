-- name: upsert_contacts(rows, endpoint_identity, now)
INSERT INTO contacts (address, endpoint_identity, name, source, first_seen_at, last_seen_at)
SELECT value ->> 0, :endpoint_identity, value ->> 1, value ->> 2, :now, :now FROM json_each(:rows) WHERE true
ON CONFLICT (address, endpoint_identity) DO UPDATE
SET name = excluded.name, source = excluded.source, last_seen_at = excluded.last_seen_at

-- name: lock_ingestion_rules()
-- There is one writer, so no lock is needed.
SELECT count(*) FROM ingestion_rules WHERE origin = 'user'
