-- Actions by which a model or an agent takes a message out of sight without a person's approval: they are capped and
-- listed.
ALTER TABLE actions ADD COLUMN hides boolean NOT NULL DEFAULT false;
CREATE INDEX actions_hiding ON actions (created_at DESC, id DESC) WHERE hides;
