-- Who holds the lease of a backfill, and until when the mail that came in for it lasts at its rate.
ALTER TABLE backfill_runs ADD COLUMN lease_holder text;
ALTER TABLE backfill_runs ADD COLUMN ingest_due_at timestamptz;
