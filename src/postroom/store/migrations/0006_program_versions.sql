-- Which versions of the program have run on this database, and since when. The newest row is the last that ran.
CREATE TABLE program_versions (
    since timestamptz PRIMARY KEY,
    version text NOT NULL
);
