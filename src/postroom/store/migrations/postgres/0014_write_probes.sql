-- One row that is written to find out whether anything can be written.
CREATE TABLE write_probes (
    id integer PRIMARY KEY CHECK (id = 1),
    written_at timestamptz NOT NULL
);
