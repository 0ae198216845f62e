-- Mail whose content is no longer kept has no words in the search index.
CREATE TRIGGER message_is_pruned AFTER UPDATE OF pruned_at ON messages WHEN new.pruned_at IS NOT NULL
BEGIN
    DELETE FROM message_words WHERE rowid = (SELECT number FROM message_documents WHERE message_id = new.id);
    DELETE FROM message_documents WHERE message_id = new.id;
END;
