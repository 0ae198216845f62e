-- name: merge_words(pages)
-- The words of a message go with its row.
SELECT 1 WHERE :pages::integer IS NULL

-- name: count_changes()
SELECT 0
