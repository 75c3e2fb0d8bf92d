-- Format 1. A later format is a file of its own, which changes this one.
-- Standard SQL: SQLite and PostgreSQL both take it. Times are milliseconds since 1970.

CREATE TABLE settings (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE people (
    id TEXT NOT NULL PRIMARY KEY,
    username TEXT NOT NULL UNIQUE,
    created_ms BIGINT NOT NULL,
    erased_ms BIGINT
);

-- those whom the last start of the hub named
CREATE TABLE operators (
    person TEXT NOT NULL PRIMARY KEY REFERENCES people (id),
    -- whose launches by LTI are theirs; empty: nobody's
    subject TEXT NOT NULL
);

CREATE TABLE courses (
    id TEXT NOT NULL PRIMARY KEY,
    title TEXT NOT NULL,
    -- of each learner, for all labs together
    late_budget_h INTEGER NOT NULL,
    -- after each due and closing date nobody is late for so long
    grace_min INTEGER NOT NULL DEFAULT 0,
    -- of each learner or team
    timed_runs_per_hour INTEGER NOT NULL,
    -- after a result, for an appeal
    appeal_window_h INTEGER NOT NULL,
    -- of each learner's total: so many labs with the smallest shares are left out
    drop_lowest INTEGER NOT NULL DEFAULT 0,
    -- what AI assistants of learners may do with its labs: off, checking or on
    ai_policy TEXT NOT NULL DEFAULT 'checking',
    created_ms BIGINT NOT NULL,
    -- why none of its jobs is leased; empty: they are
    paused TEXT NOT NULL
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
    -- as the course's roster has them: another course may have others
    first_name TEXT NOT NULL DEFAULT '',
    last_name TEXT NOT NULL DEFAULT '',
    email TEXT NOT NULL DEFAULT '',
    -- since when the person is off the roster; their work is kept
    hidden_ms BIGINT,
    -- since when they are staff no more; a person makes them staff again, and no launch
    removed_ms BIGINT,
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
    -- a Rubric as JSON
    rubric TEXT NOT NULL DEFAULT '{}',
    -- since when learners could see it, once dates were changed after that
    reference_ms BIGINT,
    published_ms BIGINT NOT NULL,
    withdrawn_ms BIGINT,
    -- in totals; NULL: as much as its points
    weight DOUBLE PRECISION,
    -- it adds to totals, and nothing to their maximum
    is_bonus INTEGER NOT NULL DEFAULT 0,
    -- since when learners are not shown its marks and feedback; NULL: they are
    hidden_ms BIGINT,
    -- when they were last shown them after they were hidden; NULL: they never were
    released_ms BIGINT,
    -- as of courses; NULL: as its course has it
    ai_policy TEXT,
    -- after a pass learners are asked about their own source
    asks_questions INTEGER NOT NULL DEFAULT 0,
    UNIQUE (course, lab)
);

-- A lab's files as they were when this version of it was published.
CREATE TABLE publication_files (
    publication TEXT NOT NULL REFERENCES publications (id),
    name TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (publication, name)
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
    -- since when learners could see the reference by then; NULL: they could not
    reference_ms BIGINT,
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
    -- an AiLog as JSON, as the learner's own program told it; NULL: it told none
    ai_log TEXT,
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
    -- a list of GradableLab as JSON; NULL: it has not said which labs it can grade
    labs TEXT,
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

-- What learners are asked about their own source, and what they answered.
CREATE TABLE code_questions (
    submission TEXT NOT NULL REFERENCES submissions (id),
    -- 1, 2, ...
    number INTEGER NOT NULL,
    -- a CodeQuestion as JSON; learners see what is right once they have answered
    question TEXT NOT NULL,
    -- the place of their choice, from 0; NULL: not answered
    choice INTEGER,
    answered_ms BIGINT,
    PRIMARY KEY (submission, number)
);

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
    -- the lab counts nothing for the person, and takes nothing from their total
    is_excused INTEGER NOT NULL DEFAULT 0,
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
    answered_ms BIGINT,
    -- what an answer changed, in words
    outcome TEXT NOT NULL DEFAULT ''
);

-- What staff wrote to a submission's learners.
CREATE TABLE comments (
    id TEXT NOT NULL PRIMARY KEY,
    submission TEXT NOT NULL REFERENCES submissions (id),
    -- of the source, from 1; 0: about all of it
    line INTEGER NOT NULL,
    note TEXT NOT NULL,
    made_by TEXT NOT NULL,
    made_ms BIGINT NOT NULL
);
CREATE INDEX ix_comments_submission ON comments (submission);

-- Points that staff gave a submission for the rows of its lab's rubric.
CREATE TABLE rubric_points (
    submission TEXT NOT NULL REFERENCES submissions (id),
    -- the row's title
    criterion TEXT NOT NULL,
    points DOUBLE PRECISION NOT NULL,
    made_by TEXT NOT NULL,
    made_ms BIGINT NOT NULL,
    PRIMARY KEY (submission, criterion)
);

-- What was done to a selection of the gradebook at once.
CREATE TABLE bulk_actions (
    -- drawn by the client, so that a repeated request is one action
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    action TEXT NOT NULL,
    made_by TEXT NOT NULL,
    made_ms BIGINT NOT NULL,
    -- SHA-256 of what was asked
    digest TEXT NOT NULL,
    -- how many were changed
    changed INTEGER NOT NULL,
    -- what takes it back, as JSON; empty where nothing does
    undo TEXT NOT NULL,
    undone_ms BIGINT
);
CREATE INDEX ix_bulk_actions ON bulk_actions (course, made_ms);

CREATE TABLE audit (
    number BIGINT NOT NULL PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    -- of people their id, or `hub`, or `grader <id>`
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    -- empty where it is of no one course
    course TEXT NOT NULL
);

-- What is told of an entry: it may name people, and goes when they are erased.
CREATE TABLE audit_details (
    number BIGINT NOT NULL PRIMARY KEY REFERENCES audit (number),
    detail TEXT NOT NULL
);

-- What people are told, on the page and by mail.

CREATE TABLE notice_choices (
    person TEXT NOT NULL PRIMARY KEY REFERENCES people (id),
    -- off, digest or once
    mail TEXT NOT NULL,
    -- of staff, who are on no roster; empty: that of the course's roster
    address TEXT NOT NULL
);

CREATE TABLE mails (
    id TEXT NOT NULL PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (id),
    -- whose roster has the address; empty where it is of no one course
    course TEXT NOT NULL,
    -- waiting, sent or failed
    state TEXT NOT NULL,
    tries INTEGER NOT NULL,
    not_before_ms BIGINT NOT NULL,
    -- of the last try
    answer TEXT NOT NULL
);
CREATE INDEX ix_mails_state ON mails (state, not_before_ms);

CREATE TABLE notices (
    id TEXT NOT NULL PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (id),
    course TEXT NOT NULL,
    -- NULL where it is of no lab
    publication TEXT REFERENCES publications (id),
    -- result, parked, appeal, answer, feedback or grader
    kind TEXT NOT NULL,
    -- what it is about: a job, a submission or a grader
    subject TEXT NOT NULL,
    made_ms BIGINT NOT NULL,
    read_ms BIGINT,
    -- from when it goes into a mail; NULL: into none
    mail_from_ms BIGINT,
    mail TEXT REFERENCES mails (id)
);
CREATE INDEX ix_notices_person ON notices (person, made_ms);
CREATE INDEX ix_notices_mail ON notices (mail, mail_from_ms);

-- GPUs that people lease for their notebooks.

CREATE TABLE lease_gpus (
    -- the GPU's UUID, or the path of a device that NVML does not know
    id TEXT NOT NULL PRIMARY KEY,
    node TEXT NOT NULL,
    name TEXT NOT NULL,
    -- why it can't be leased; empty if it can
    problem TEXT NOT NULL,
    -- nobody who leases GPUs may open it, or has it open
    is_clear INTEGER NOT NULL,
    -- without work for so long a lease ends
    idle_end_ms BIGINT NOT NULL,
    energy_mj BIGINT,
    seen_ms BIGINT NOT NULL
);

CREATE TABLE gpu_leases (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    person TEXT NOT NULL REFERENCES people (id),
    -- the name of a GPU, or empty for any
    model TEXT NOT NULL,
    -- waiting, held, ending or ended
    state TEXT NOT NULL,
    minutes INTEGER NOT NULL,
    asked_ms BIGINT NOT NULL,
    gpu TEXT REFERENCES lease_gpus (id),
    granted_ms BIGINT,
    until_ms BIGINT,
    -- when its holder's processes last worked on the GPU
    busy_ms BIGINT,
    ended_ms BIGINT,
    energy_from_mj BIGINT,
    energy_mj BIGINT,
    note TEXT NOT NULL
);
CREATE UNIQUE INDEX ux_gpu_leases_person ON gpu_leases (person)
    WHERE state <> 'ended';
CREATE UNIQUE INDEX ux_gpu_leases_gpu ON gpu_leases (gpu)
    WHERE state IN ('held', 'ending');
CREATE INDEX ix_gpu_leases_ended ON gpu_leases (ended_ms);

CREATE TABLE gpu_sessions (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    title TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    starts_ms BIGINT NOT NULL,
    ends_ms BIGINT NOT NULL,
    made_by TEXT NOT NULL REFERENCES people (id)
);

-- A platform that launches by LTI 1.3, who is who there, and its scores.

CREATE TABLE lti_contexts (
    course TEXT NOT NULL PRIMARY KEY REFERENCES courses (id),
    issuer TEXT NOT NULL,
    -- the platform's own id of its course
    context TEXT NOT NULL,
    title TEXT NOT NULL,
    -- empty where the platform gives none
    memberships_url TEXT NOT NULL,
    line_items_url TEXT NOT NULL,
    bound_ms BIGINT NOT NULL,
    -- when its members were asked for last, and what came of it
    asked_ms BIGINT,
    note TEXT NOT NULL
);

CREATE TABLE lti_people (
    issuer TEXT NOT NULL,
    -- the platform's own id of a person
    subject TEXT NOT NULL,
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (issuer, subject),
    UNIQUE (issuer, person)
);

CREATE TABLE lti_line_items (
    publication TEXT NOT NULL PRIMARY KEY REFERENCES publications (id),
    url TEXT NOT NULL
);

CREATE TABLE lti_scores (
    id TEXT NOT NULL PRIMARY KEY,
    publication TEXT NOT NULL REFERENCES publications (id),
    person TEXT NOT NULL REFERENCES people (id),
    -- 1, 2, ... of this publication and person: the last one is what counts
    number INTEGER NOT NULL,
    -- NULL clears what was sent before
    points DOUBLE PRECISION,
    most_points DOUBLE PRECISION NOT NULL,
    -- what the platform is told of its time: later than that of the one before
    stamped_ms BIGINT NOT NULL,
    -- waiting, sent, failed or replaced
    state TEXT NOT NULL,
    tries INTEGER NOT NULL,
    not_before_ms BIGINT NOT NULL,
    -- of the last try, and what came of it
    answered_ms BIGINT,
    answer TEXT NOT NULL,
    UNIQUE (publication, person, number)
);
CREATE INDEX ix_lti_scores_state ON lti_scores (state, not_before_ms);

-- Competitions of labs, and the learners who joined them.

CREATE TABLE competitions (
    publication TEXT NOT NULL PRIMARY KEY REFERENCES publications (id),
    opened_ms BIGINT NOT NULL,
    -- what came later is not on the learners' board
    freezes_ms BIGINT NOT NULL,
    -- when its board became final, for everybody
    ended_ms BIGINT
);

CREATE TABLE competitors (
    publication TEXT NOT NULL REFERENCES competitions (publication),
    person TEXT NOT NULL REFERENCES people (id),
    pseudonym TEXT NOT NULL,
    -- equal for pseudonyms that look alike
    pseudonym_key TEXT NOT NULL,
    joined_ms BIGINT NOT NULL,
    PRIMARY KEY (publication, person),
    UNIQUE (publication, pseudonym_key)
);
CREATE INDEX ix_competitors_person ON competitors (person);

-- Everybody's best, measured once more on one GPU; the last one of a lab counts.
CREATE TABLE finals (
    id TEXT NOT NULL PRIMARY KEY,
    publication TEXT NOT NULL REFERENCES competitions (publication),
    -- 1, 2, ... of this publication
    number INTEGER NOT NULL,
    grader TEXT NOT NULL REFERENCES graders (id),
    device TEXT NOT NULL,
    rounds INTEGER NOT NULL,
    -- the order of each round is drawn with it
    seed BIGINT NOT NULL,
    started_ms BIGINT NOT NULL,
    UNIQUE (publication, number)
);

CREATE TABLE final_jobs (
    job TEXT NOT NULL PRIMARY KEY REFERENCES jobs (id),
    final TEXT NOT NULL REFERENCES finals (id),
    -- 1, 2, ...
    round INTEGER NOT NULL,
    -- 0, 1, ...: they run in this order, one after another
    place INTEGER NOT NULL,
    UNIQUE (final, place)
);
