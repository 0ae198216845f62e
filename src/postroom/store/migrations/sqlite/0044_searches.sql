-- Rare letters are folded in case as Python does it, as on PostgreSQL: `office` finds `oﬃce`. Stored mail is indexed again
-- afterwards, newest first, in small steps.
DELETE FROM search_backlog;
INSERT INTO search_backlog (below)
SELECT 'ffffffff-ffff-ffff-ffff-ffffffffffff' WHERE EXISTS (SELECT 1 FROM messages);
