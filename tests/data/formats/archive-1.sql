PRAGMA application_id = 2002936178;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE description (
    id INTEGER PRIMARY KEY,
    -- a list of Device as JSON
    devices TEXT NOT NULL UNIQUE
);
INSERT INTO "description" VALUES(1,'[]');
CREATE TABLE recent (
    number INTEGER PRIMARY KEY,
    from_ms REAL NOT NULL,
    to_ms REAL NOT NULL,
    -- messages of the stream as JSON lines, compressed
    messages BLOB NOT NULL
);
INSERT INTO "recent" VALUES(1,2.0,2.0,X'00');
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
INSERT INTO "record" VALUES('alert','temperature/gpu:GPU-1/1',1700000000000.0,1700000060000.0,NULL,NULL,NULL,'GPU 0 is hot','warning','ok','99 degrees',0,NULL,X'789C5D8FC10AC23010447F25E4ACB6BD28ED0F78F5E2B98476AC8B692C9B4D55C47F378950D13DBE370CB34F4DBD6E94168C13D8486014C3149AFDE1B8AE8A4AAF94E660F11749D86306933C92BA1976E486847BCCD4E5FC5293B0907C5A2251A522AFCE57C9027749BCAE558F81019FCBC97568471F4DB52BBFB729A30C4EC8FECAED222F6007DBE6AF5CB03622F22D63B2264D3D19EBF17A03D3B148FE',158);
CREATE TABLE remark (
    number INTEGER PRIMARY KEY,
    time_ms REAL NOT NULL,
    -- a message of the stream as JSON
    message TEXT NOT NULL
);
INSERT INTO "remark" VALUES(1,2.0,'[]');
CREATE TABLE segment (
    number INTEGER PRIMARY KEY,
    -- what one row stands for: 0 is a frame, 1000 a second, 60000 a minute, ...
    step_ms INTEGER NOT NULL,
    description INTEGER NOT NULL REFERENCES description (id),
    from_ms REAL NOT NULL,
    to_ms REAL NOT NULL,
    columns BLOB NOT NULL
);
INSERT INTO "segment" VALUES(1,1,1,2.0,2.0,X'00');
CREATE TABLE timeline (
    report_id TEXT PRIMARY KEY,
    kept_ms REAL NOT NULL,
    body BLOB NOT NULL
);
INSERT INTO "timeline" VALUES('[]',2.0,X'00');
CREATE INDEX segment_span ON segment (step_ms, to_ms);
CREATE INDEX segment_age ON segment (to_ms);
CREATE INDEX remark_time ON remark (time_ms);
CREATE INDEX record_time ON record (started_ms, body_bytes);
CREATE INDEX record_cell ON record (cell_id, started_ms);
CREATE INDEX record_open ON record (server) WHERE server IS NOT NULL;
COMMIT;
