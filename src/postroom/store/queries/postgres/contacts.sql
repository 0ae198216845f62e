-- name: upsert_contacts(rows, endpoint_identity, now)
-- In the order of the addresses, so that two writers of the same addresses cannot deadlock.
INSERT INTO contacts (address, endpoint_identity, name, source, first_seen_at, last_seen_at)
SELECT e ->> 0, :endpoint_identity, e ->> 1, e ->> 2, :now, :now
FROM jsonb_array_elements(:rows::jsonb) AS e ORDER BY e ->> 0
ON CONFLICT (address, endpoint_identity) DO UPDATE
SET name = excluded.name, source = excluded.source, last_seen_at = excluded.last_seen_at

-- name: lock_ingestion_rules()
LOCK TABLE ingestion_rules IN SHARE ROW EXCLUSIVE MODE;
SELECT count(*) FROM ingestion_rules WHERE origin = 'user';
