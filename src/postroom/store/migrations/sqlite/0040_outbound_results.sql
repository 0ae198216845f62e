-- What became of recipients, by hour and destination, written with the outcomes that it counts. `deferred` counts attempts. The
-- shard only keeps writers out of each other's way.
CREATE TABLE outbound_results (
    hour TEXT NOT NULL,
    destination TEXT NOT NULL,
    result TEXT NOT NULL CHECK (result IN ('sent', 'deferred', 'bounced', 'rejected', 'expired')),
    bounce_class TEXT NOT NULL DEFAULT '' CHECK (bounce_class IN ('', 'hard', 'soft', 'policy', 'reputation', 'full', 'greylist', 'content')),
    shard INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (hour, destination, result, bounce_class, shard)
) STRICT, WITHOUT ROWID;

-- Mail that people look for by its state. What waits and what was sent is found in the order of acceptance.
CREATE INDEX outbound_mail_troubled ON outbound_mail (state, seq)
    WHERE state IN ('deferred', 'unknown', 'partially_sent', 'bounced', 'rejected', 'expired', 'canceled');

-- Lists by age: suppressed addresses, the audit of one object, and what a model read for a backfill.
CREATE INDEX suppressions_newest ON suppressions (created_at, tenant, address);
CREATE INDEX suppressions_of_tenant ON suppressions (tenant, created_at, address);
CREATE INDEX audit_of_object ON audit (object_type, object_id, seq);
CREATE INDEX model_calls_backfill ON model_calls (backfill_job_id, message_id) WHERE backfill_job_id IS NOT NULL;
