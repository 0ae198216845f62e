-- Events whose identity is too long to be a key are known by its digest. Migration 0003 left those out that were here
-- before it. What it left out is kept in this table (see `migrate.py`); where 0003 was applied before that was so, the
-- inbox still tells of those that were not pruned.
CREATE TABLE IF NOT EXISTS long_identities (
    key text, inbox_id uuid, channel text, provider text, endpoint_identity text, external_event_id text, sender text,
    ingestion_tier text
);
INSERT INTO long_identities
SELECT envelope_json #>> '{control,idempotency_key}', id, channel, provider, endpoint_identity, external_event_id, sender,
    ingestion_tier
FROM envelopes
WHERE length(channel || provider || endpoint_identity || external_event_id) > 509 AND copy_of IS NULL ORDER BY seq;
INSERT INTO inbox_events (event_key, inbox_id, sender, ingestion_tier)
SELECT 'sha256:' || encode(sha256(convert_to(channel || chr(31) || provider || chr(31) || endpoint_identity || chr(31)
    || external_event_id, 'UTF8')), 'hex'), inbox_id, sender, ingestion_tier
FROM long_identities ON CONFLICT DO NOTHING;
INSERT INTO inbox_keys (key, event_key)
SELECT key, 'sha256:' || encode(sha256(convert_to(channel || chr(31) || provider || chr(31) || endpoint_identity || chr(31)
    || external_event_id, 'UTF8')), 'hex')
FROM long_identities WHERE key IS NOT NULL ON CONFLICT DO NOTHING;
DROP TABLE long_identities;
