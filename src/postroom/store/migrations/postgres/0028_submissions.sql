-- Mail that is submitted: by a sender that logs in, or with a token that is bound to a sender.

-- A caller that does not know whether its request arrived sends it again under the same key: the first mail is the answer.
-- `request_sha256` tells a repeated request from another one. A key is kept as long as its mail.
CREATE TABLE submission_keys (
    sender_id bigint NOT NULL REFERENCES senders (id),
    idempotency_key text NOT NULL,
    request_sha256 text NOT NULL CHECK (length(request_sha256) = 64),
    mail_id uuid NOT NULL UNIQUE REFERENCES outbound_mail (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    PRIMARY KEY (sender_id, idempotency_key)
);

-- The role `sender`, whose tokens are bound to a sender.
ALTER TABLE tokens DROP CONSTRAINT tokens_role_check;
ALTER TABLE tokens ADD CONSTRAINT tokens_role_check CHECK (role IN ('connector', 'dashboard', 'agent', 'admin', 'sender'));
ALTER TABLE tokens ADD COLUMN sender_id bigint REFERENCES senders (id) CHECK ((sender_id IS NOT NULL) = (role = 'sender'));
