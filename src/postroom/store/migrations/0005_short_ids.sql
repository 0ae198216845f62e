-- only postgres:
-- People name outgoing mail by the last digits of its id, as they name mail and actions.
CREATE INDEX outbound_mail_short_id ON outbound_mail (right(id::text, 8) text_pattern_ops);
-- only sqlite:
-- People name outgoing mail by the last digits of its id, as they name mail and actions.
CREATE INDEX outbound_mail_short_id ON outbound_mail (substr(id, -8));
