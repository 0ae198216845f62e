-- Other actions that the model weighed, with its confidence in each: a list, or NULL where it named none.
ALTER TABLE decisions ADD COLUMN alternatives_json json;
