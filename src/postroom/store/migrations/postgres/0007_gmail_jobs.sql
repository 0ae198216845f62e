-- Connectors are also asked to take in messages that are named.

ALTER TABLE connector_requests
    DROP CONSTRAINT connector_requests_kind_check,
    ADD CONSTRAINT connector_requests_kind_check CHECK (kind IN ('sync_now', 'ingest', 'estimate', 'search'));
