-- Figures of the outbound queue by hour, written with the leases and deliveries that they count.

-- How often a mail was leased, and the discipline under which it was leased last; NULL if that was not measured.
ALTER TABLE outbound_mail ADD COLUMN leases INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbound_mail ADD COLUMN discipline TEXT CHECK (discipline IN ('fair', 'fifo'));
UPDATE outbound_mail SET leases = COALESCE((SELECT max(r.attempts) FROM outbound_recipients r WHERE r.mail_id = outbound_mail.id), 0);

-- What each sender was served: mails leased, and their recipients. Domains and tenants are the sums of their senders.
CREATE TABLE outbound_service (
    hour TEXT NOT NULL,
    discipline TEXT NOT NULL CHECK (discipline IN ('fair', 'fifo')),
    sender_id INTEGER NOT NULL REFERENCES senders (id),
    mails INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    PRIMARY KEY (hour, discipline, sender_id)
) STRICT, WITHOUT ROWID;

-- How long it took, in buckets: from acceptance to the first lease, from acceptance to delivery, and to choose a batch, which
-- has no lane (`all`) and may hold mail of both disciplines. The shard only keeps writers out of each other's way.
CREATE TABLE outbound_times (
    hour TEXT NOT NULL,
    measure TEXT NOT NULL CHECK (measure IN ('wait', 'delivery', 'choosing')),
    discipline TEXT NOT NULL CHECK (discipline IN ('fair', 'fifo', 'both')),
    lane TEXT NOT NULL CHECK (lane IN ('high', 'normal', 'low', 'throttled', 'all')),
    bucket INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    count INTEGER NOT NULL,
    total_us INTEGER NOT NULL,
    PRIMARY KEY (hour, measure, discipline, lane, bucket, shard)
) STRICT, WITHOUT ROWID;
