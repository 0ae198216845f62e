-- Rises with every pause and every resume. Whoever lets requests out has read it; whoever pauses raises it first.
CREATE TABLE pause_generation (
    id bigint PRIMARY KEY CHECK (id = 1),
    generation bigint NOT NULL
);

-- Processes that may let requests out which change a mailbox, for a moment each time; pausing waits for them.
CREATE TABLE departures (
    process_id uuid PRIMARY KEY,
    holder text NOT NULL,
    generation bigint NOT NULL,
    on_wire_json text NOT NULL,
    renewed_at timestamptz NOT NULL
);

-- The labels that a protected name stood for when it was seen: a label that is renamed stays protected.
CREATE TABLE protected_labels (
    value text NOT NULL,
    account_id uuid NOT NULL REFERENCES accounts (id),
    provider_label_id text NOT NULL,
    PRIMARY KEY (value, account_id, provider_label_id)
);
INSERT INTO protected_labels (value, account_id, provider_label_id)
SELECT p.value, l.account_id, l.provider_label_id FROM protected p
JOIN labels l ON p.value IN (lower(l.name), lower(l.provider_label_id)) WHERE p.kind = 'label';
