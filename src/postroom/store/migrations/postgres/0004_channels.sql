-- Which channels ask for approvals is told by the channels (`triage/act/approvals.py`).
ALTER TABLE approval_notices DROP CONSTRAINT IF EXISTS approval_notices_channel_check;
