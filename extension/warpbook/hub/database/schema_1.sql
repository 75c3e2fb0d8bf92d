-- Format 1. A later format is a file of its own, which changes this one.
-- Standard SQL: SQLite and PostgreSQL both take it. Times are milliseconds since 1970.

CREATE TABLE settings (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE people (
    id TEXT NOT NULL PRIMARY KEY,
    username TEXT NOT NULL UNIQUE,
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    email TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    erased_ms BIGINT
);

CREATE TABLE courses (
    id TEXT NOT NULL PRIMARY KEY,
    title TEXT NOT NULL,
    -- of each learner, for all labs together
    late_budget_h INTEGER NOT NULL,
    -- of each learner or team
    timed_runs_per_hour INTEGER NOT NULL,
    -- after a result, for an appeal
    appeal_window_h INTEGER NOT NULL,
    created_ms BIGINT NOT NULL
);

CREATE TABLE sections (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);

CREATE TABLE memberships (
    course TEXT NOT NULL REFERENCES courses (id),
    person TEXT NOT NULL REFERENCES people (id),
    section TEXT NOT NULL REFERENCES sections (id),
    -- learner, assistant or instructor
    role TEXT NOT NULL,
    -- since when the person is off the roster; their work is kept
    hidden_ms BIGINT,
    PRIMARY KEY (course, person)
);
CREATE INDEX ix_memberships_person ON memberships (person);

CREATE TABLE teams (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);

CREATE TABLE team_members (
    course TEXT NOT NULL REFERENCES courses (id),
    person TEXT NOT NULL REFERENCES people (id),
    team TEXT NOT NULL REFERENCES teams (id),
    PRIMARY KEY (course, person)
);
CREATE INDEX ix_team_members_team ON team_members (team);

CREATE TABLE publications (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    lab TEXT NOT NULL,
    title TEXT NOT NULL,
    language TEXT NOT NULL,
    -- SHA-256 of what decides a grade of the lab; empty until the first result
    lab_digest TEXT NOT NULL,
    -- whether right sources go on to a GPU
    is_timed INTEGER NOT NULL,
    is_team_work INTEGER NOT NULL,
    -- a PointScheme as JSON
    scheme TEXT NOT NULL,
    -- of the points, for each day that has begun after due and budget
    late_percent_per_day DOUBLE PRECISION NOT NULL,
    -- NULL: as many as one likes
    most_attempts INTEGER,
    -- a right source, which a grader gave with the first result; shown after the end
    reference TEXT NOT NULL,
    published_ms BIGINT NOT NULL,
    withdrawn_ms BIGINT,
    UNIQUE (course, lab)
);

CREATE TABLE windows (
    publication TEXT NOT NULL REFERENCES publications (id),
    -- '': all sections that have no window of their own
    section TEXT NOT NULL,
    opens_ms BIGINT NOT NULL,
    due_ms BIGINT NOT NULL,
    closes_ms BIGINT NOT NULL,
    PRIMARY KEY (publication, section)
);

CREATE TABLE extensions (
    publication TEXT NOT NULL REFERENCES publications (id),
    person TEXT NOT NULL REFERENCES people (id),
    due_ms BIGINT NOT NULL,
    closes_ms BIGINT NOT NULL,
    reason TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    granted_ms BIGINT NOT NULL,
    PRIMARY KEY (publication, person)
);

CREATE TABLE submissions (
    id TEXT NOT NULL PRIMARY KEY,
    publication TEXT NOT NULL REFERENCES publications (id),
    person TEXT NOT NULL REFERENCES people (id),
    -- whose turn it is in the queue: a person or a team
    party TEXT NOT NULL,
    -- 1, 2, ... of this party and publication
    number INTEGER NOT NULL,
    -- of the client, so that a repeated request is one submission
    request TEXT NOT NULL,
    received_ms BIGINT NOT NULL,
    source_digest TEXT NOT NULL,
    source_bytes INTEGER NOT NULL,
    source TEXT NOT NULL,
    -- hidden cases are drawn with it; for graders only
    seed BIGINT NOT NULL,
    -- the queue dropped it before it was graded: it takes no attempt
    replaced_ms BIGINT,
    UNIQUE (publication, party, number),
    UNIQUE (person, request)
);

CREATE TABLE submission_members (
    submission TEXT NOT NULL REFERENCES submissions (id),
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (submission, person)
);
CREATE INDEX ix_submission_members_person ON submission_members (person);

CREATE TABLE graders (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    token_digest TEXT NOT NULL UNIQUE,
    -- active, draining or retired
    state TEXT NOT NULL,
    cpu_slots INTEGER NOT NULL,
    -- a list of Device as JSON
    devices TEXT NOT NULL,
    registered_ms BIGINT NOT NULL,
    seen_ms BIGINT
);

CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    submission TEXT NOT NULL REFERENCES submissions (id),
    publication TEXT NOT NULL REFERENCES publications (id),
    party TEXT NOT NULL,
    -- 1 when it was submitted, more by a regrade
    run INTEGER NOT NULL,
    -- cpu or gpu
    stage TEXT NOT NULL,
    -- queued, leased, done, parked, replaced or cancelled
    state TEXT NOT NULL,
    -- 0: instructors; 1: learners; 2: regrades
    lane INTEGER NOT NULL,
    -- 0: the first of this party and publication; 1: any other
    turn INTEGER NOT NULL,
    queued_ms BIGINT NOT NULL,
    -- not leased before
    not_before_ms BIGINT NOT NULL,
    -- counts leases: only the last one may finish the job
    fence INTEGER NOT NULL,
    grader TEXT REFERENCES graders (id),
    device TEXT NOT NULL,
    leased_ms BIGINT,
    lease_until_ms BIGINT,
    -- leases that ended without a result
    crashes INTEGER NOT NULL,
    -- results "too busy"
    busy INTEGER NOT NULL,
    finished_ms BIGINT,
    -- for instructors: why it is parked, or was cancelled
    note TEXT NOT NULL,
    UNIQUE (submission, run, stage)
);
CREATE INDEX ix_jobs_state ON jobs (state, stage);
CREATE INDEX ix_jobs_party ON jobs (party, publication);

CREATE TABLE turns (
    party TEXT NOT NULL,
    stage TEXT NOT NULL,
    served_ms BIGINT NOT NULL,
    PRIMARY KEY (party, stage)
);

CREATE TABLE results (
    job TEXT NOT NULL PRIMARY KEY REFERENCES jobs (id),
    submission TEXT NOT NULL REFERENCES submissions (id),
    run INTEGER NOT NULL,
    stage TEXT NOT NULL,
    fence INTEGER NOT NULL,
    grader TEXT NOT NULL REFERENCES graders (id),
    received_ms BIGINT NOT NULL,
    -- in the grader
    took_ms BIGINT NOT NULL,
    lab_digest TEXT NOT NULL,
    -- a GradedFacts as JSON
    facts TEXT NOT NULL,
    -- for people: the card and the whole result as JSON
    evidence TEXT NOT NULL,
    gpu_ms BIGINT NOT NULL,
    energy_mj BIGINT
);
CREATE INDEX ix_results_submission ON results (submission);

CREATE TABLE refused_results (
    id TEXT NOT NULL PRIMARY KEY,
    job TEXT NOT NULL,
    fence INTEGER NOT NULL,
    grader TEXT NOT NULL,
    refused_ms BIGINT NOT NULL,
    reason TEXT NOT NULL
);

CREATE TABLE overrides (
    id TEXT NOT NULL PRIMARY KEY,
    -- 1, 2, ...: the last one of a person and a lab counts
    number BIGINT NOT NULL UNIQUE,
    publication TEXT NOT NULL REFERENCES publications (id),
    person TEXT NOT NULL REFERENCES people (id),
    -- NULL takes the override before it back
    points DOUBLE PRECISION,
    reason TEXT NOT NULL,
    made_by TEXT NOT NULL,
    made_ms BIGINT NOT NULL
);
CREATE INDEX ix_overrides ON overrides (publication, person);

CREATE TABLE appeals (
    id TEXT NOT NULL PRIMARY KEY,
    -- one for each result
    job TEXT NOT NULL UNIQUE REFERENCES results (job),
    person TEXT NOT NULL REFERENCES people (id),
    note TEXT NOT NULL,
    made_ms BIGINT NOT NULL,
    -- empty, upheld or dismissed
    decision TEXT NOT NULL,
    answer TEXT NOT NULL,
    answered_by TEXT NOT NULL,
    answered_ms BIGINT
);

CREATE TABLE audit (
    number BIGINT NOT NULL PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    -- of people their id, or `hub`, or `grader <id>`
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    -- empty where it is of no one course
    course TEXT NOT NULL,
    -- of what is in audit_details
    detail_digest TEXT NOT NULL,
    -- of this row and the digest of the row before
    digest TEXT NOT NULL
);

-- What is told of an entry: it may name people, and goes when they are erased.
CREATE TABLE audit_details (
    number BIGINT NOT NULL PRIMARY KEY REFERENCES audit (number),
    salt TEXT NOT NULL,
    detail TEXT NOT NULL
);
