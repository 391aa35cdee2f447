-- The journal, version 2. One row is one record of core/records, field by field.
-- STRICT needs SQLite 3.37. Times ending in _at are wall seconds.

CREATE TABLE attachment (
    attachment_id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    session_id TEXT NOT NULL,
    process_key TEXT NOT NULL,
    state TEXT NOT NULL,
    server TEXT NOT NULL,
    parent_config TEXT NOT NULL,
    made_by TEXT NOT NULL,
    folder TEXT NOT NULL,
    purpose TEXT NOT NULL,
    created_at REAL NOT NULL,
    watermark INTEGER NOT NULL,
    offered_through INTEGER NOT NULL,
    receipt_cursor INTEGER NOT NULL,
    setup_at REAL,
    guidance_at REAL,
    offline_since REAL,
    native_route TEXT NOT NULL,
    wants TEXT NOT NULL DEFAULT '[]'
) STRICT;
CREATE INDEX attachment_by_agent ON attachment (agent_id);

-- At or below the watermark nothing is taken again: lowering it could show a
-- message twice, so no writer may, not even a wrong one.
CREATE TRIGGER attachment_watermark_never_falls
BEFORE UPDATE ON attachment
WHEN NEW.watermark < OLD.watermark
BEGIN
    SELECT RAISE(ABORT, 'the watermark never falls');
END;

CREATE TABLE delivery (
    attachment_id TEXT NOT NULL REFERENCES attachment ON DELETE CASCADE,
    message_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    inbox_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    sender_provider TEXT NOT NULL,
    sent_at TEXT NOT NULL,
    state TEXT NOT NULL,
    body TEXT,
    offer_id TEXT,
    changed_at REAL NOT NULL,
    named INTEGER NOT NULL CHECK (named IN (0, 1)),
    native_closed INTEGER NOT NULL CHECK (native_closed IN (0, 1)),
    reason TEXT NOT NULL,
    PRIMARY KEY (attachment_id, message_id),
    CHECK (body IS NULL OR state IN ('pending', 'offering', 'recalled'))
) STRICT;
CREATE INDEX delivery_in_order ON delivery (attachment_id, sequence);
CREATE INDEX delivery_by_message ON delivery (message_id);
CREATE INDEX delivery_by_offer ON delivery (offer_id) WHERE offer_id IS NOT NULL;

CREATE TABLE offer (
    offer_id TEXT PRIMARY KEY,
    attachment_id TEXT NOT NULL REFERENCES attachment ON DELETE CASCADE,
    session_id TEXT NOT NULL,
    route TEXT NOT NULL,
    nonce TEXT NOT NULL,
    at REAL NOT NULL,
    message_ids TEXT NOT NULL,
    named_ids TEXT NOT NULL,
    setup_before REAL,
    setup_after REAL,
    guidance_before REAL,
    guidance_after REAL,
    outcome TEXT NOT NULL
) STRICT;
CREATE INDEX offer_by_attachment ON offer (attachment_id, outcome);

CREATE TABLE receipt (
    number INTEGER PRIMARY KEY,
    attachment_id TEXT NOT NULL REFERENCES attachment ON DELETE CASCADE,
    message_id TEXT NOT NULL,
    delivery TEXT NOT NULL,
    at REAL NOT NULL,
    evidence TEXT NOT NULL,
    state TEXT NOT NULL,
    UNIQUE (attachment_id, message_id, delivery)
) STRICT;
CREATE INDEX receipt_unsent ON receipt (number) WHERE state = 'unsent';

-- Idempotency belongs to the agent id: the same submission keeps its row when
-- its agent's lease moves to another attachment.
CREATE TABLE submission (
    submission_id TEXT NOT NULL,
    attachment_id TEXT NOT NULL REFERENCES attachment ON DELETE CASCADE,
    agent_id TEXT NOT NULL,
    lane TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    number INTEGER NOT NULL,
    body TEXT,
    target TEXT,
    inbox_id TEXT,
    state TEXT NOT NULL,
    created_at REAL NOT NULL,
    not_before REAL NOT NULL,
    attempts INTEGER NOT NULL,
    message_id TEXT,
    conversation_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    refusal_code TEXT NOT NULL,
    refusal TEXT NOT NULL,
    told INTEGER NOT NULL CHECK (told IN (0, 1)),
    PRIMARY KEY (agent_id, submission_id)
) STRICT;
CREATE INDEX submission_by_attachment ON submission (attachment_id);
CREATE INDEX submission_in_order ON submission (number);
