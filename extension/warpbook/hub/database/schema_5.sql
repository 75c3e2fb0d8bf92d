-- Format 5: nodes whose agents tell who holds their GPUs.

CREATE TABLE nodes (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    token_digest TEXT NOT NULL UNIQUE,
    -- active or retired
    state TEXT NOT NULL,
    registered_ms BIGINT NOT NULL,
    -- when its agent was heard of
    seen_ms BIGINT,
    -- intervals that its agent had to drop
    dropped BIGINT NOT NULL
);

-- Each start of an agent, with the number of its last interval that was counted.
CREATE TABLE node_streams (
    node TEXT NOT NULL REFERENCES nodes (id),
    stream TEXT NOT NULL,
    number BIGINT NOT NULL,
    seen_ms BIGINT NOT NULL,
    PRIMARY KEY (node, stream)
);

-- A GPU as the newest interval has it.
CREATE TABLE node_gpus (
    node TEXT NOT NULL REFERENCES nodes (id),
    gpu TEXT NOT NULL,
    place INTEGER,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    -- the state in words; empty while it is ok
    why TEXT NOT NULL,
    -- the end of that interval
    seen_ms BIGINT NOT NULL,
    read_ms BIGINT NOT NULL,
    active_ms BIGINT,
    sm_ms BIGINT,
    tensor_ms BIGINT,
    memory_used_bytes BIGINT,
    memory_total_bytes BIGINT,
    idle_since_ms BIGINT,
    -- JSON: the holders then
    held TEXT NOT NULL,
    PRIMARY KEY (node, gpu)
);

CREATE TABLE node_holders (
    id TEXT NOT NULL PRIMARY KEY,
    node TEXT NOT NULL REFERENCES nodes (id),
    -- equal for what is the same holder
    identity TEXT NOT NULL UNIQUE,
    uid BIGINT,
    -- whose account it is
    person TEXT REFERENCES people (id),
    -- whose server the process says it is of
    claimant TEXT REFERENCES people (id),
    workload_kind TEXT NOT NULL,
    workload TEXT NOT NULL,
    seen_ms BIGINT NOT NULL
);
CREATE INDEX ix_node_holders_node ON node_holders (node);

-- Minutes (60000) and hours (3600000); a time that is unknown adds nothing.
CREATE TABLE gpu_spans (
    node TEXT NOT NULL REFERENCES nodes (id),
    gpu TEXT NOT NULL,
    width_ms INTEGER NOT NULL,
    from_ms BIGINT NOT NULL,
    read_ms BIGINT NOT NULL,
    active_ms BIGINT,
    sm_ms BIGINT,
    tensor_ms BIGINT,
    energy_mj BIGINT,
    PRIMARY KEY (node, gpu, width_ms, from_ms)
);
CREATE INDEX ix_gpu_spans_time ON gpu_spans (width_ms, from_ms);

CREATE TABLE holder_spans (
    holder TEXT NOT NULL REFERENCES node_holders (id),
    gpu TEXT NOT NULL,
    width_ms INTEGER NOT NULL,
    from_ms BIGINT NOT NULL,
    held_ms BIGINT NOT NULL,
    busy_ms BIGINT,
    energy_mj BIGINT,
    PRIMARY KEY (holder, gpu, width_ms, from_ms)
);
CREATE INDEX ix_holder_spans_time ON holder_spans (width_ms, from_ms);
