-- Rises with every pause and every resume. Whoever lets requests out has read it; whoever pauses raises it first.
CREATE TABLE pause_generation (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    generation INTEGER NOT NULL
) STRICT;

-- Processes that may let requests out which change a mailbox, for a moment each time; pausing waits for them.
CREATE TABLE departures (
    process_id TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    generation INTEGER NOT NULL,
    on_wire_json TEXT NOT NULL,
    renewed_at TEXT NOT NULL
) STRICT;

-- The labels that a protected name stood for when it was seen: a label that is renamed stays protected.
CREATE TABLE protected_labels (
    value TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    provider_label_id TEXT NOT NULL,
    PRIMARY KEY (value, account_id, provider_label_id)
) STRICT;
INSERT INTO protected_labels (value, account_id, provider_label_id)
SELECT p.value, l.account_id, l.provider_label_id FROM protected p
JOIN labels l ON p.value IN (lower(l.name), lower(l.provider_label_id)) WHERE p.kind = 'label';
