-- Settings that people changed on the pages. Those of the environment and of the file are stronger.
CREATE TABLE stored_settings (
    name text PRIMARY KEY,
    value_json json NOT NULL,
    changed_by text NOT NULL,
    changed_at timestamptz NOT NULL
);
