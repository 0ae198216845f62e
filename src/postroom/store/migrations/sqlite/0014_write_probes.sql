-- One row that is written to find out whether anything can be written.
CREATE TABLE write_probes (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    written_at TEXT NOT NULL
) STRICT;
