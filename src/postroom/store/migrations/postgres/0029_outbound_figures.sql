-- Figures of the outbound queue by hour, written with the leases and deliveries that they count.

-- How often a mail was leased, and the discipline under which it was leased last; NULL if that was not measured.
ALTER TABLE outbound_mail ADD COLUMN leases bigint NOT NULL DEFAULT 0;
ALTER TABLE outbound_mail ADD COLUMN discipline text CHECK (discipline IN ('fair', 'fifo'));
UPDATE outbound_mail SET leases = COALESCE((SELECT max(r.attempts) FROM outbound_recipients r WHERE r.mail_id = outbound_mail.id), 0);

-- What each sender was served: mails leased, and their recipients. Domains and tenants are the sums of their senders.
CREATE TABLE outbound_service (
    hour timestamptz NOT NULL,
    discipline text NOT NULL CHECK (discipline IN ('fair', 'fifo')),
    sender_id bigint NOT NULL REFERENCES senders (id),
    mails bigint NOT NULL,
    recipients bigint NOT NULL,
    PRIMARY KEY (hour, discipline, sender_id)
) WITH (fillfactor = 70);

-- How long it took, in buckets: from acceptance to the first lease, from acceptance to delivery, and to choose a batch, which
-- has no lane (`all`) and may hold mail of both disciplines. The shard only keeps writers out of each other's way.
CREATE TABLE outbound_times (
    hour timestamptz NOT NULL,
    measure text NOT NULL CHECK (measure IN ('wait', 'delivery', 'choosing')),
    discipline text NOT NULL CHECK (discipline IN ('fair', 'fifo', 'both')),
    lane text NOT NULL CHECK (lane IN ('high', 'normal', 'low', 'throttled', 'all')),
    bucket bigint NOT NULL,
    shard bigint NOT NULL,
    count bigint NOT NULL,
    total_us bigint NOT NULL,
    PRIMARY KEY (hour, measure, discipline, lane, bucket, shard)
) WITH (fillfactor = 70);
