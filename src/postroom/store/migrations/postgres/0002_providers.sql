-- Which providers there are is told by their packages (`core/mail/providers.py`).
ALTER TABLE accounts DROP CONSTRAINT IF EXISTS accounts_provider_check;
