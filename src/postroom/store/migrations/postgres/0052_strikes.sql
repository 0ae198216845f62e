-- A refusal without a reason is no proof that an address does not exist: it is a class of its own, and a strike that expires.
ALTER TABLE outbound_recipients DROP CONSTRAINT outbound_recipients_bounce_class_check;
ALTER TABLE outbound_recipients ADD CONSTRAINT outbound_recipients_bounce_class_check
    CHECK (bounce_class IN ('hard', 'soft', 'policy', 'reputation', 'full', 'greylist', 'content', 'unexplained'));

ALTER TABLE outbound_results DROP CONSTRAINT outbound_results_bounce_class_check;
ALTER TABLE outbound_results ADD CONSTRAINT outbound_results_bounce_class_check
    CHECK (bounce_class IN ('', 'hard', 'soft', 'policy', 'reputation', 'full', 'greylist', 'content', 'unexplained'));

-- One that follows from strikes ends by itself, at `expires_at`.
ALTER TABLE suppressions ADD COLUMN expires_at timestamptz;
ALTER TABLE suppressions DROP CONSTRAINT suppressions_cause_check;
ALTER TABLE suppressions ADD CONSTRAINT suppressions_cause_check CHECK (cause IN ('bounce', 'complaint', 'person', 'refusals'));
ALTER TABLE suppressions ADD CONSTRAINT suppressions_expiry_check CHECK ((expires_at IS NOT NULL) = (cause = 'refusals'));
CREATE INDEX suppressions_expiring ON suppressions (expires_at) WHERE expires_at IS NOT NULL;

-- Refusals without a reason, one at most for each day of UTC. A delivery to the address takes them back.
CREATE TABLE strikes (
    tenant text NOT NULL,
    address text NOT NULL,
    day text NOT NULL,
    reply text,
    mail_id uuid,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, address, day)
);
CREATE INDEX strikes_newest ON strikes (created_at, tenant, address);
