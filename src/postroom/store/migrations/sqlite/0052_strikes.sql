-- A refusal without a reason is no proof that an address does not exist: it is a class of its own, and a strike that expires.
-- SQLite cannot change a CHECK, so the tables are made anew.
ALTER TABLE outbound_recipients RENAME TO old_recipients;
CREATE TABLE outbound_recipients (
    mail_id TEXT NOT NULL REFERENCES outbound_mail (id),
    position INTEGER NOT NULL,
    address TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'deferred', 'unknown', 'sent', 'bounced', 'rejected', 'expired', 'canceled')),
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before TEXT NOT NULL,
    last_reply TEXT,
    updated_at TEXT NOT NULL,
    leaving_at TEXT,
    enhanced TEXT,
    bounce_class TEXT CHECK (bounce_class IN ('hard', 'soft', 'policy', 'reputation', 'full', 'greylist', 'content', 'unexplained')),
    delay_reported INTEGER NOT NULL DEFAULT 0,
    notify TEXT NOT NULL DEFAULT '',
    original TEXT,
    complained_at TEXT,
    PRIMARY KEY (mail_id, position),
    CHECK (leaving_at IS NULL OR state = 'sending')
) STRICT;
INSERT INTO outbound_recipients (mail_id, position, address, state, attempts, not_before, last_reply, updated_at, leaving_at, enhanced,
    bounce_class, delay_reported, notify, original, complained_at)
SELECT mail_id, position, address, state, attempts, not_before, last_reply, updated_at, leaving_at, enhanced,
    bounce_class, delay_reported, notify, original, complained_at
FROM old_recipients;
DROP TABLE old_recipients;
CREATE INDEX outbound_recipients_unknown ON outbound_recipients (mail_id) WHERE state = 'unknown';

ALTER TABLE outbound_results RENAME TO old_results;
CREATE TABLE outbound_results (
    hour TEXT NOT NULL,
    destination TEXT NOT NULL,
    result TEXT NOT NULL CHECK (result IN ('sent', 'deferred', 'bounced', 'rejected', 'expired')),
    bounce_class TEXT NOT NULL DEFAULT '' CHECK (bounce_class IN ('', 'hard', 'soft', 'policy', 'reputation', 'full', 'greylist', 'content', 'unexplained')),
    shard INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (hour, destination, result, bounce_class, shard)
) STRICT, WITHOUT ROWID;
INSERT INTO outbound_results (hour, destination, result, bounce_class, shard, count)
SELECT hour, destination, result, bounce_class, shard, count FROM old_results;
DROP TABLE old_results;

-- One that follows from strikes ends by itself, at `expires_at`.
ALTER TABLE suppressions RENAME TO old_suppressions;
CREATE TABLE suppressions (
    tenant TEXT NOT NULL,
    address TEXT NOT NULL,
    cause TEXT NOT NULL CHECK (cause IN ('bounce', 'complaint', 'person', 'refusals')),
    detail TEXT,
    mail_id TEXT,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    PRIMARY KEY (tenant, address),
    CHECK ((expires_at IS NOT NULL) = (cause = 'refusals'))
) STRICT;
INSERT INTO suppressions (tenant, address, cause, detail, mail_id, created_at)
SELECT tenant, address, cause, detail, mail_id, created_at FROM old_suppressions;
DROP TABLE old_suppressions;
CREATE INDEX suppressions_newest ON suppressions (created_at, tenant, address);
CREATE INDEX suppressions_of_tenant ON suppressions (tenant, created_at, address);
CREATE INDEX suppressions_expiring ON suppressions (expires_at) WHERE expires_at IS NOT NULL;

-- Refusals without a reason, one at most for each day of UTC. A delivery to the address takes them back.
CREATE TABLE strikes (
    tenant TEXT NOT NULL,
    address TEXT NOT NULL,
    day TEXT NOT NULL,
    reply TEXT,
    mail_id TEXT,
    created_at TEXT NOT NULL,
    PRIMARY KEY (tenant, address, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX strikes_newest ON strikes (created_at, tenant, address);
