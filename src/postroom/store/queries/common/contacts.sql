-- name: select_exported(endpoint_identity, after, most)
SELECT DISTINCT address FROM contacts
WHERE address > :after AND endpoint_identity IN ('', :endpoint_identity) ORDER BY address LIMIT :most

-- name: select_contacts(after, after_endpoint, most)
SELECT address, name, source, endpoint_identity, first_seen_at, last_seen_at FROM contacts
WHERE (address, endpoint_identity) > (:after, :after_endpoint) ORDER BY address, endpoint_identity LIMIT :most

-- name: select_ingestion_rules()
SELECT name, position, conditions_json, tier, enabled, origin, created_at FROM ingestion_rules ORDER BY position, name

-- name: insert_ingestion_rule(name, position, conditions_json, tier, enabled, origin, now)
INSERT INTO ingestion_rules (name, position, conditions_json, tier, enabled, origin, created_at)
VALUES (:name, :position, :conditions_json, :tier, :enabled, :origin, :now) ON CONFLICT (name) DO NOTHING RETURNING name

-- name: delete_ingestion_rule(name)
DELETE FROM ingestion_rules WHERE name = :name
RETURNING name, position, conditions_json, tier, enabled, origin, created_at

-- name: count_contacts_by_source(most)
SELECT source, count(*) AS count, max(last_seen_at) AS newest_at
FROM (SELECT source, last_seen_at FROM contacts LIMIT :most) AS counted GROUP BY source ORDER BY source

-- name: select_contacts_among(addresses, endpoint_identity)
SELECT address, name, source FROM contacts
WHERE address {= ANY(:addresses::text[])} AND endpoint_identity = :endpoint_identity

-- name: upsert_contacts(rows, endpoint_identity, now)
-- In the order of the addresses, so that two writers of the same addresses cannot deadlock.
INSERT INTO contacts (address, endpoint_identity, name, source, first_seen_at, last_seen_at)
SELECT value ->> 0, :endpoint_identity, value ->> 1, value ->> 2, :now, :now
FROM {jsonb_array_elements(:rows::jsonb)} AS e ORDER BY value ->> 0
ON CONFLICT (address, endpoint_identity) DO UPDATE
SET name = excluded.name, source = excluded.source, last_seen_at = excluded.last_seen_at

-- name: lock_ingestion_rules()
{LOCK TABLE ingestion_rules IN SHARE ROW EXCLUSIVE MODE;}
SELECT count(*) FROM ingestion_rules WHERE origin = 'user';
