-- PostgreSQL only: here words are split at all signs already.
SELECT 1;
