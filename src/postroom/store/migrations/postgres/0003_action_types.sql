-- Which actions there are is told by their declarations (`core/actions/action.py`).
ALTER TABLE rules DROP CONSTRAINT IF EXISTS rules_action_type_check;
ALTER TABLE decisions DROP CONSTRAINT IF EXISTS decisions_action_type_check;
ALTER TABLE actions DROP CONSTRAINT IF EXISTS actions_action_type_check;
