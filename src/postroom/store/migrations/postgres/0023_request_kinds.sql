-- Connectors are also asked to work on a backfill, and to sample what one would find.

ALTER TABLE connector_requests
    DROP CONSTRAINT connector_requests_kind_check,
    ADD CONSTRAINT connector_requests_kind_check
        CHECK (kind IN ('sync_now', 'ingest', 'estimate', 'search', 'backfill', 'backfill_sample'));
