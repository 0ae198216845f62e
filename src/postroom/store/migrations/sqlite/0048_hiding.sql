-- Actions by which a model or an agent takes a message out of sight without a person's approval: they are capped and
-- listed.
ALTER TABLE actions ADD COLUMN hides INTEGER NOT NULL DEFAULT 0;
CREATE INDEX actions_hiding ON actions (created_at DESC, id DESC) WHERE hides;
