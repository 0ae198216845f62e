-- only postgres:
-- Which channels ask for approvals is told by the channels (`triage/act/approvals.py`).
ALTER TABLE approval_notices DROP CONSTRAINT IF EXISTS approval_notices_channel_check;
-- only sqlite:
-- Which channels ask for approvals is told by the channels (`triage/act/approvals.py`). A constraint that goes makes no
-- stored row wrong, so the text of the table is changed in place, as SQLite recommends (lang_altertable.html, section 7).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, ' CHECK (channel IN (''discord'', ''webhook''))', '')
WHERE type = 'table' AND name = 'approval_notices';
PRAGMA writable_schema = RESET;
