-- only postgres:
-- Which providers there are is told by their packages (`core/mail/providers.py`).
ALTER TABLE accounts DROP CONSTRAINT IF EXISTS accounts_provider_check;
-- only sqlite:
-- Which providers there are is told by their packages (`core/mail/providers.py`). A constraint that goes makes no stored
-- row wrong, so the text of the table is changed in place, as SQLite recommends for it (lang_altertable.html, section 7).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, ' CHECK (provider IN (''gmail'', ''imap''))', '')
WHERE type = 'table' AND name = 'accounts';
PRAGMA writable_schema = RESET;
