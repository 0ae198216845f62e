-- The words of stored mail, so that it can be searched; and agents that see one account only.

-- Everything that is no part of a word becomes a space first: else the parser would keep addresses, hosts and paths
-- whole, and nothing would be found by a part of one. Signs beyond ASCII are named here since a server whose locale is C
-- takes them for letters.
CREATE FUNCTION words_of(content text) RETURNS tsvector LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_tsvector('pg_catalog.simple', regexp_replace(content,
    '[\u0001-/:-@[-`{-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7\u2000-\u206f\u20a0-\u20cf\u2190-\u245f\u2500-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\ufe10-\ufe1f\ufe30-\ufe6f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\ufffc\ufffd\U0001f000-\U0001faff]+',
    ' ', 'g'));

-- A word that no mail has stands between sender, subject and text, so that no phrase reaches from one into the next.
-- The text comes last, and is cut: only so many places of a word are kept, and only so many words.
CREATE FUNCTION words_of_message(sender text, subject text, content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN setweight(words_of(sender), 'B') || ''' '':1'::tsvector
    || setweight(words_of(subject), 'A') || ''' '':1'::tsvector
    || words_of(left(content, 200000));

ALTER TABLE messages ADD COLUMN words tsvector;
CREATE FUNCTION index_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    new.words := postroom.words_of_message(new.sender, new.subject, new.body_text);
    RETURN new;
END $$;
CREATE TRIGGER message_is_indexed BEFORE INSERT OR UPDATE OF sender, subject, body_text ON messages
FOR EACH ROW EXECUTE FUNCTION index_message();
CREATE INDEX messages_words ON messages USING gin (words) WHERE deleted_at IS NULL AND words IS NOT NULL;

-- Mail that is here already is indexed afterwards, in small steps; what has an id below this one still waits.
CREATE TABLE search_backlog (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    below uuid NOT NULL
);
INSERT INTO search_backlog (below)
SELECT 'ffffffff-ffff-ffff-ffff-ffffffffffff' WHERE EXISTS (SELECT 1 FROM messages);

CREATE INDEX messages_sent ON messages (sent_at, id) WHERE deleted_at IS NULL;

-- What an agent's token is bound to, if to anything: it sees, and proposes for, the mail of this account only.
ALTER TABLE tokens ADD COLUMN account_id uuid REFERENCES accounts (id) CHECK (account_id IS NULL OR role = 'agent');

-- What an agent has asked for and nobody has ended yet.
CREATE INDEX actions_asked ON actions (asked_by) WHERE state IN ('queued', 'approved_pending', 'executing');
