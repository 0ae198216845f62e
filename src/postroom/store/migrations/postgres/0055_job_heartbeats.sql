-- Only SQLite's view of jobs changes: here it has had the heartbeat since 0001. Both databases have the same numbers.
SELECT 1;
