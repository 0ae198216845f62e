-- Mail that people look for: by names, recipients and attachments, without accents, by a short id or the Message-ID.

-- Ids begin with their time, so mail of one minute has the same beginning; the end is random, and short.
CREATE INDEX messages_short_id ON messages (right(id::text, 8) text_pattern_ops);
CREATE INDEX actions_short_id ON actions (right(id::text, 8) text_pattern_ops);

-- Which messages have this Message-ID. Mail of several accounts may share one.
CREATE TABLE message_header_ids (
    header_id text NOT NULL,
    message_id uuid NOT NULL,
    PRIMARY KEY (header_id, message_id)
);
CREATE INDEX message_header_ids_message ON message_header_ids (message_id);

-- The text without accents, as core/mail/folding.py has it. Heaps of marks are removed first: sorting one takes
-- quadratic time.
CREATE FUNCTION folded(content text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN octet_length(content) = length(content) THEN content ELSE
    translate(replace(replace(replace(replace(replace(replace(
        normalize(regexp_replace(normalize(regexp_replace(content,
            '[\u0300-\u034e\u0350-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07eb-\u07f3\u07fd\u0816-\u0819\u081b-\u0823\u0825-\u0827\u0829-\u082d\u0859-\u085b\u0898-\u089f\u08ca-\u08e1\u08e3-\u08ff\u093c\u094d\u0951-\u0954\u09bc\u09cd\u09fe\u0a3c\u0a4d\u0abc\u0acd\u0b3c\u0b4d\u0bcd\u0c3c\u0c4d\u0c55\u0c56\u0cbc\u0ccd\u0d3b\u0d3c\u0d4d\u0dca\u0e38-\u0e3a\u0e48-\u0e4b\u0eb8-\u0eba\u0ec8-\u0ecb\u0f18\u0f19\u0f35\u0f37\u0f39\u0f71\u0f72\u0f74\u0f7a-\u0f7d\u0f80\u0f82-\u0f84\u0f86\u0f87\u0fc6\u1037\u1039\u103a\u108d\u135d-\u135f\u1714\u1715\u1734\u17d2\u17dd\u18a9\u1939-\u193b\u1a17\u1a18\u1a60\u1a75-\u1a7c\u1a7f\u1ab0-\u1abd\u1abf-\u1ace\u1b34\u1b44\u1b6b-\u1b73\u1baa\u1bab\u1be6\u1bf2\u1bf3\u1c37\u1cd0-\u1cd2\u1cd4-\u1ce0\u1ce2-\u1ce8\u1ced\u1cf4\u1cf8\u1cf9\u1dc0-\u1dff\u20d0-\u20dc\u20e1\u20e5-\u20f0\u2cef-\u2cf1\u2d7f\u2de0-\u2dff\u302a-\u302f\u3099\u309a\ua66f\ua674-\ua67d\ua69e\ua69f\ua6f0\ua6f1\ua806\ua82c\ua8c4\ua8e0-\ua8f1\ua92b-\ua92d\ua953\ua9b3\ua9c0\uaab0\uaab2-\uaab4\uaab7\uaab8\uaabe\uaabf\uaac1\uaaf6\uabed\ufb1e\ufe20-\ufe2f\U000101fd\U000102e0\U00010376-\U0001037a\U00010a0d\U00010a0f\U00010a38-\U00010a3a\U00010a3f\U00010ae5\U00010ae6\U00010d24-\U00010d27\U00010eab\U00010eac\U00010f46-\U00010f50\U00010f82-\U00010f85\U00011046\U00011070\U0001107f\U000110b9\U000110ba\U00011100-\U00011102\U00011133\U00011134\U00011173\U000111c0\U000111ca\U00011235\U00011236\U000112e9\U000112ea\U0001133b\U0001133c\U0001134d\U00011366-\U0001136c\U00011370-\U00011374\U00011442\U00011446\U0001145e\U000114c2\U000114c3\U000115bf\U000115c0\U0001163f\U000116b6\U000116b7\U0001172b\U00011839\U0001183a\U0001193d\U0001193e\U00011943\U000119e0\U00011a34\U00011a47\U00011a99\U00011c3f\U00011d42\U00011d44\U00011d45\U00011d97\U00016af0-\U00016af4\U00016b30-\U00016b36\U00016ff0\U00016ff1\U0001bc9e\U0001d165-\U0001d169\U0001d16d-\U0001d172\U0001d17b-\U0001d182\U0001d185-\U0001d18b\U0001d1aa-\U0001d1ad\U0001d242-\U0001d244\U0001e000-\U0001e006\U0001e008-\U0001e018\U0001e01b-\U0001e021\U0001e023\U0001e024\U0001e026-\U0001e02a\U0001e130-\U0001e136\U0001e2ae\U0001e2ec-\U0001e2ef\U0001e8d0-\U0001e8d6\U0001e944-\U0001e94a]{8,}',
            '', 'g'), NFD), '[\u0300-\u036f]+', '', 'g'), NFC),
        'ß', 'ss'), 'ẞ', 'SS'), 'æ', 'ae'), 'Æ', 'AE'), 'œ', 'oe'), 'Œ', 'OE'),
    'øØłŁđĐı', 'oOlLdDi') END;

CREATE FUNCTION header_text(headers json, names text[]) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN COALESCE((SELECT string_agg(h ->> 1, ' ') FROM json_array_elements(headers) AS h
    WHERE lower(h ->> 0) = ANY(names)), '');

-- The words of a message anywhere, and those of its head by their place: sender A, recipients B, subject C. The head is
-- small, so that a place is looked up without reading the text.
CREATE FUNCTION words_of_mail(sender text, headers json, subject text, content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN words_of(folded(sender || ' ' || header_text(headers, '{from}'))) || ''' '':1'::tsvector
    || words_of(folded(subject)) || ''' '':1'::tsvector || words_of(folded(left(content, 200000)));
CREATE FUNCTION words_of_head(sender text, headers json, subject text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN setweight(words_of(folded(sender || ' ' || header_text(headers, '{from}'))), 'A') || ''' '':1'::tsvector
    || setweight(words_of(folded(header_text(headers, '{to,cc,bcc}'))), 'B') || ''' '':1'::tsvector
    || setweight(words_of(folded(subject)), 'C');

ALTER TABLE messages ADD COLUMN head_words tsvector;
CREATE OR REPLACE FUNCTION index_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.pruned_at IS NOT NULL THEN
        new.words := NULL;
        new.head_words := NULL;
        DELETE FROM postroom.message_header_ids WHERE message_id = new.id;
        RETURN new;
    END IF;
    new.words := postroom.words_of_mail(new.sender, new.headers_json, new.subject, new.body_text);
    new.head_words := postroom.words_of_head(new.sender, new.headers_json, new.subject);
    INSERT INTO postroom.message_header_ids (header_id, message_id)
    SELECT DISTINCT left(trim(h ->> 1), 500), new.id FROM json_array_elements(new.headers_json) AS h
    WHERE lower(h ->> 0) = 'message-id' AND trim(h ->> 1) <> ''
    ON CONFLICT DO NOTHING;
    RETURN new;
END $$;
DROP TRIGGER message_is_indexed ON messages;
CREATE TRIGGER message_is_indexed BEFORE INSERT OR UPDATE OF sender, subject, headers_json, body_text, pruned_at ON messages
FOR EACH ROW EXECUTE FUNCTION index_message();
CREATE FUNCTION forget_header_ids() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM postroom.message_header_ids WHERE message_id = old.id;
    RETURN old;
END $$;
CREATE TRIGGER message_is_removed AFTER DELETE ON messages FOR EACH ROW EXECUTE FUNCTION forget_header_ids();
CREATE INDEX messages_head_words ON messages USING gin (head_words) WHERE deleted_at IS NULL AND head_words IS NOT NULL;
CREATE INDEX messages_attached ON messages (sent_at, id) WHERE deleted_at IS NULL AND has_attachment;

-- Stored mail is indexed again afterwards, newest first, in small steps.
DELETE FROM search_backlog;
INSERT INTO search_backlog (below)
SELECT 'ffffffff-ffff-ffff-ffff-ffffffffffff' WHERE EXISTS (SELECT 1 FROM messages);
