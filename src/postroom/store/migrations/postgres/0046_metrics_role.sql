-- The role `metrics`, for programs that watch Postroom and see nothing of the mail.
ALTER TABLE tokens DROP CONSTRAINT tokens_role_check;
ALTER TABLE tokens ADD CONSTRAINT tokens_role_check
    CHECK (role IN ('connector', 'dashboard', 'agent', 'admin', 'sender', 'metrics'));
