-- name: merge_words(pages)
-- Words of deleted documents stay in the index until its parts are merged; a negative number begins with all of them.
INSERT INTO message_words (message_words, rank) VALUES ('merge', :pages)

-- name: count_changes()
SELECT total_changes()
