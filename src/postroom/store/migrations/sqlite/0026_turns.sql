-- The fair queue of outgoing mail: what is ready to leave, and whose turn it is.

-- The order of acceptance, the sender, and whether the mail stands in `outbound_ready`. Mail that is due and does not is put
-- there by the next dispatcher.
ALTER TABLE outbound_mail ADD COLUMN seq INTEGER;
ALTER TABLE outbound_mail ADD COLUMN sender_id INTEGER REFERENCES senders (id);
ALTER TABLE outbound_mail ADD COLUMN ready INTEGER NOT NULL DEFAULT 0;
UPDATE outbound_mail SET sender_id = (SELECT s.id FROM senders s WHERE s.username = lower(outbound_mail.username));
UPDATE outbound_mail SET seq = o.place FROM (
    SELECT id, row_number() OVER (ORDER BY admitted_at, id) AS place FROM outbound_mail
) AS o WHERE o.id = outbound_mail.id;
CREATE UNIQUE INDEX outbound_mail_seq ON outbound_mail (seq);
DROP INDEX outbound_mail_due;
CREATE INDEX outbound_mail_due ON outbound_mail (not_before) WHERE state IN ('queued', 'deferred') AND NOT ready;

-- The lane in which a sender's mail waits, apart from retries, and whether it is held back.
ALTER TABLE senders ADD COLUMN queue_lane TEXT NOT NULL DEFAULT 'normal' CHECK (queue_lane IN ('high', 'normal', 'low', 'throttled'));
ALTER TABLE senders ADD COLUMN queue_held INTEGER NOT NULL DEFAULT 0;

-- Mail that may leave now. `turn_id` is the sender, or 0 for mail of tenants that are not on the fair queue.
CREATE TABLE outbound_ready (
    seq INTEGER PRIMARY KEY,
    mail_id TEXT NOT NULL UNIQUE REFERENCES outbound_mail (id),
    turn_id INTEGER NOT NULL,
    retry INTEGER NOT NULL,
    bulk INTEGER NOT NULL,
    cost INTEGER NOT NULL CHECK (cost > 0)
) STRICT;
CREATE INDEX outbound_ready_turns ON outbound_ready (turn_id, retry, bulk, seq);

-- Where each tenant, domain and sender stands in each lane: at which virtual time its next mail may begin (`start`), the
-- virtual time of its children (`clock`), and how many of them wait; of a sender, how many mails. What is held does not
-- take part. Lanes stand here too, and the clock of all of them is that of the root.
CREATE TABLE outbound_turns (
    lane TEXT NOT NULL CHECK (lane IN ('high', 'normal', 'low', 'throttled', 'retry', 'fifo')),
    level TEXT NOT NULL CHECK (level IN ('root', 'lane', 'tenant', 'domain', 'sender')),
    node_id INTEGER NOT NULL,
    parent_id INTEGER NOT NULL,
    start REAL NOT NULL DEFAULT 0,
    clock REAL NOT NULL DEFAULT 0,
    weight REAL NOT NULL DEFAULT 1 CHECK (weight > 0),
    waiting INTEGER NOT NULL DEFAULT 0 CHECK (waiting >= 0),
    held INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (lane, level, node_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbound_turns_next ON outbound_turns (lane, level, parent_id, start, node_id) WHERE waiting > 0 AND NOT held;
CREATE INDEX outbound_turns_node ON outbound_turns (level, node_id);
