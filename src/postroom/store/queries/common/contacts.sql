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
