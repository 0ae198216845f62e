-- only postgres:
-- Which actions there are is told by their declarations (`core/actions/action.py`).
ALTER TABLE rules DROP CONSTRAINT IF EXISTS rules_action_type_check;
ALTER TABLE decisions DROP CONSTRAINT IF EXISTS decisions_action_type_check;
ALTER TABLE actions DROP CONSTRAINT IF EXISTS actions_action_type_check;
-- only sqlite:
-- Which actions there are is told by their declarations (`core/actions/action.py`). Constraints that go make no stored row
-- wrong, so the text of the tables is changed in place, as SQLite recommends for it (lang_altertable.html, section 7).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = rtrim(substr(sql, 1, instr(sql, 'CHECK (action_type IN (') - 1), ' ' || char(10))
    || substr(sql, instr(sql, '''several'')),') + length('''several''))'))
WHERE type = 'table' AND name IN ('rules', 'decisions', 'actions') AND instr(sql, 'CHECK (action_type IN (') > 0;
PRAGMA writable_schema = RESET;
