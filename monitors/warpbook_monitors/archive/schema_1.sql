-- Format 1. A later format is a file of its own, which changes this one.

-- Seconds of the stream that no segment holds yet: the tail of the history.
CREATE TABLE recent (
    number INTEGER PRIMARY KEY,
    from_ms REAL NOT NULL,
    to_ms REAL NOT NULL,
    -- messages of the stream as JSON lines, compressed
    messages BLOB NOT NULL
);

-- Which devices a segment tells of, each list once.
CREATE TABLE description (
    id INTEGER PRIMARY KEY,
    -- a list of Device as JSON
    devices TEXT NOT NULL UNIQUE
);

-- Columns of all devices over a span.
CREATE TABLE segment (
    number INTEGER PRIMARY KEY,
    -- what one row stands for: 0 is a frame, 1000 a second, 60000 a minute, ...
    step_ms INTEGER NOT NULL,
    description INTEGER NOT NULL REFERENCES description (id),
    from_ms REAL NOT NULL,
    to_ms REAL NOT NULL,
    columns BLOB NOT NULL
);
CREATE INDEX segment_span ON segment (step_ms, to_ms);
CREATE INDEX segment_age ON segment (to_ms);

-- What the stream said beside frames: gaps, and events of GPUs.
CREATE TABLE remark (
    number INTEGER PRIMARY KEY,
    time_ms REAL NOT NULL,
    -- a message of the stream as JSON
    message TEXT NOT NULL
);
CREATE INDEX remark_time ON remark (time_ms);

-- Reports, receipts, cells, alerts and post-mortems.
CREATE TABLE record (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    started_ms REAL NOT NULL,
    ended_ms REAL,
    notebook TEXT,
    kernel_id TEXT,
    cell_id TEXT,
    title TEXT NOT NULL,
    verdict TEXT,
    status TEXT NOT NULL,
    sentence TEXT NOT NULL,
    is_replay INTEGER NOT NULL,
    -- the server that will tell its end; NULL once that was told
    server TEXT,
    -- the message that a view was sent, as JSON, compressed
    body BLOB NOT NULL,
    -- of `body`, so that an index holds it
    body_bytes INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX record_time ON record (started_ms, body_bytes);
CREATE INDEX record_cell ON record (cell_id, started_ms);
CREATE INDEX record_open ON record (server) WHERE server IS NOT NULL;

-- All events of a report's run, as the kernel packed them, compressed.
CREATE TABLE timeline (
    report_id TEXT PRIMARY KEY,
    kept_ms REAL NOT NULL,
    body BLOB NOT NULL
);
