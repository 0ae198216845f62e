-- Mail whose content is no longer kept has no words in the search index.
CREATE OR REPLACE FUNCTION index_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    new.words := CASE WHEN new.pruned_at IS NULL
        THEN postroom.words_of_message(new.sender, new.subject, new.body_text) END;
    RETURN new;
END $$;
