BEGIN TRANSACTION;
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
INSERT INTO "appeals" VALUES('dbb7bf59843ee8b91f64','d3b3528195f487515a66','fcdc631185b2a52b3f5c','The race is not mine.',1790000001001,'','','',NULL);
CREATE TABLE audit (
    number BIGINT NOT NULL PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    -- of people their id, or `hub`, or `grader <id>`
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    -- of what is in audit_details
    detail_digest TEXT NOT NULL,
    -- of this row and the digest of the row before
    digest TEXT NOT NULL
);
INSERT INTO "audit" VALUES(1,1790000000000,'hub','course created','gpu101','98588cabc09b2ecefa99350856b956808fd3e8b6ac40e43ad8da06c50c97545a','0f8b82891e4b6fbd91f70edb417dc65f78eb846b296c17b5cb0185e65600c64c');
INSERT INTO "audit" VALUES(2,1790000000000,'hub','staff added','c914744f9538cd82f6d9','fbba739bf26466d2196f87f9a0f0844441c611f069cdfbe10aa63afc7790f31c','22cd5138575ae79f83fef0967d072917ef5ee11417fe30f46d3692ac8865131d');
INSERT INTO "audit" VALUES(3,1790000000000,'c914744f9538cd82f6d9','roster imported','gpu101','f994003d3937b7694aa55232ecf0dcd6140fa45208e1bc35cf8de1bbc1486432','9de46569211453501e1b842ce27d34103b6a87ad3cde5a6da3fd4684f2c0252c');
INSERT INTO "audit" VALUES(4,1790000000000,'hub','lab published','701a92ee4dc03cb82b1f','4cbb41fc6c8731a5a2f39af656aa91dfe7126c3300f27d0c5b7321eae02b70c2','f372e70501f10af0ea10907ec67903337b173b783afbc6907b4790f4b0cad7c7');
INSERT INTO "audit" VALUES(5,1790000000000,'hub','grader registered','bdacc480f27c928ffbf0','b53a1a2448c517a65b57a8e230f8b1c8745e7c532189ca397e5e2a6d039213a5','32faa08401478f87d269392ccfa1d1fc6ec628c04a6f41b8808897bfe50aebed');
INSERT INTO "audit" VALUES(6,1790000001001,'c914744f9538cd82f6d9','extension granted','d666b22077a32b6709f6','0f2fee435da00c7558513635acee68b5e897cf15a13faa2a7964b9156fce0548','77e2ebf7c4b5855fcf9fdb0a5331772c28fb37ac947e23263cf337d75d2647d1');
INSERT INTO "audit" VALUES(7,1790000001001,'c914744f9538cd82f6d9','points set','fcdc631185b2a52b3f5c','c420e684e91f73c3833e5ae4cf090176f7dd6824ca1987871db7424a3f55e7c9','1cd9f7f67b2115a99588f49c74ea044f73a2a8a22a9549c2c03dfcc288541eb9');
INSERT INTO "audit" VALUES(8,1790000001001,'fcdc631185b2a52b3f5c','appeal made','dbb7bf59843ee8b91f64','12a51268328228e0b3c483269bd0ce3222af37ff506ee32cfc8dcc130c2beb15','a2a34bcbb912de85c361e965368b6c48225980f81a53aa9d4a7a59b81c1775f3');
CREATE TABLE audit_details (
    number BIGINT NOT NULL PRIMARY KEY REFERENCES audit (number),
    salt TEXT NOT NULL,
    detail TEXT NOT NULL
);
INSERT INTO "audit_details" VALUES(1,'c2f685f8e826a3b6','{"appeal_window_h":168,"id":"gpu101","late_budget_h":0,"timed_runs_per_hour":6,"title":"GPU programming"}');
INSERT INTO "audit_details" VALUES(2,'bf81d47d5c477450','{"course":"gpu101","role":"instructor","section":"7a0db88252109cb974c4"}');
INSERT INTO "audit_details" VALUES(3,'d6809c1095c7fde8','{"added":3,"changed":0,"hidden":0,"returned":0}');
INSERT INTO "audit_details" VALUES(4,'f69bedbba91675ce','{"is_team_work":0,"is_timed":1,"lab":"vector-add","lab_digest":"","language":"cuda","late_percent_per_day":100.0,"most_attempts":null,"scheme":"{\"thresholds\":[{\"measure\":\"right\",\"least\":1.0,\"points\":10.0}]}","title":"Vector add","windows":{"":{"closes_ms":1790720000000,"due_ms":1790360000000,"opens_ms":1790000000000}},"withdrawn_ms":null}');
INSERT INTO "audit_details" VALUES(5,'ec6e0d82394d6d4a','{"name":"one"}');
INSERT INTO "audit_details" VALUES(6,'6ff29ed025281b78','{"closes_ms":1790000001003,"due_ms":1790000001002,"lab":"vector-add","publication":"701a92ee4dc03cb82b1f","reason":"was ill"}');
INSERT INTO "audit_details" VALUES(7,'4ee1381c1830d404','{"points":7.5,"publication":"701a92ee4dc03cb82b1f","reason":"half of it is right"}');
INSERT INTO "audit_details" VALUES(8,'d14f6747fa39f702','{"job":"d3b3528195f487515a66"}');
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
INSERT INTO "courses" VALUES('gpu101','GPU programming',0,6,168,1790000000000);
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
INSERT INTO "extensions" VALUES('701a92ee4dc03cb82b1f','d666b22077a32b6709f6',1790000001002,1790000001003,'was ill','c914744f9538cd82f6d9',1790000001001);
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
INSERT INTO "graders" VALUES('bdacc480f27c928ffbf0','one','f2245500379360c358db881606ce6ead53001bd35cd876c2588d12d950702319','active',1,'[{"uuid":"GPU-one-0","name":"H100"}]',1790000000000,1790000000000);
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
INSERT INTO "jobs" VALUES('d3b3528195f487515a66','4a4e14e1335513a56899','701a92ee4dc03cb82b1f','person:fcdc631185b2a52b3f5c',1,'cpu','done',1,0,1790000000001,1790000000001,1,'bdacc480f27c928ffbf0','',1790000000001,NULL,0,0,1790000001001,'');
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
INSERT INTO "memberships" VALUES('gpu101','c914744f9538cd82f6d9','7a0db88252109cb974c4','instructor',NULL);
INSERT INTO "memberships" VALUES('gpu101','fcdc631185b2a52b3f5c','3e9808ac53dbc7c982f8','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','d666b22077a32b6709f6','3e9808ac53dbc7c982f8','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','f8e3e0458b0663c1d155','91c0fe207b8c592bfefb','learner',NULL);
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
INSERT INTO "overrides" VALUES('bb65d0dfdd918201d258',1,'701a92ee4dc03cb82b1f','fcdc631185b2a52b3f5c',7.5,'half of it is right','c914744f9538cd82f6d9',1790000001001);
CREATE TABLE people (
    id TEXT NOT NULL PRIMARY KEY,
    username TEXT NOT NULL UNIQUE,
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    email TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    erased_ms BIGINT
);
INSERT INTO "people" VALUES('c914744f9538cd82f6d9','grace','','','',1790000000000,NULL);
INSERT INTO "people" VALUES('fcdc631185b2a52b3f5c','ada','Ada','Lovelace','',1790000000000,NULL);
INSERT INTO "people" VALUES('d666b22077a32b6709f6','bob','Bob','Noyce','',1790000000000,NULL);
INSERT INTO "people" VALUES('f8e3e0458b0663c1d155','cyd','Cyd','Charisse','',1790000000000,NULL);
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
INSERT INTO "publications" VALUES('701a92ee4dc03cb82b1f','gpu101','vector-add','Vector add','cuda','abababababababababababababababababababababababababababababababab',1,0,'{"thresholds":[{"measure":"right","least":1.0,"points":10.0}]}',100.0,NULL,'// reference',1790000000000,NULL);
CREATE TABLE refused_results (
    id TEXT NOT NULL PRIMARY KEY,
    job TEXT NOT NULL,
    fence INTEGER NOT NULL,
    grader TEXT NOT NULL,
    refused_ms BIGINT NOT NULL,
    reason TEXT NOT NULL
);
INSERT INTO "refused_results" VALUES('98dbe1c8423275468ad6','d3b3528195f487515a66',99,'bdacc480f27c928ffbf0',1790000001001,'its lease was lost');
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
INSERT INTO "results" VALUES('d3b3528195f487515a66','4a4e14e1335513a56899',1,'cpu',1,'bdacc480f27c928ffbf0',1790000001001,1000,'abababababababababababababababababababababababababababababababab','{"verdict":"wrong","status":"failed","message":"so it went","right":1,"of":4,"error_kind":"race","is_speed_graded":false,"of_baseline":null,"of_limit":null,"not_graded":[],"flags":[]}','{}',0,NULL);
CREATE TABLE sections (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "sections" VALUES('7a0db88252109cb974c4','gpu101','main');
INSERT INTO "sections" VALUES('3e9808ac53dbc7c982f8','gpu101','monday');
INSERT INTO "sections" VALUES('91c0fe207b8c592bfefb','gpu101','tuesday');
CREATE TABLE settings (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO "settings" VALUES('receipt_key','b8461f58daa207c14a2053e4ec6e51bab19c01857646b5806d45d83b7590a991');
CREATE TABLE submission_members (
    submission TEXT NOT NULL REFERENCES submissions (id),
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (submission, person)
);
INSERT INTO "submission_members" VALUES('4a4e14e1335513a56899','fcdc631185b2a52b3f5c');
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
INSERT INTO "submissions" VALUES('4a4e14e1335513a56899','701a92ee4dc03cb82b1f','fcdc631185b2a52b3f5c','person:fcdc631185b2a52b3f5c',1,'fe47f3eebfa3f0dfaf03',1790000000001,'3fcdf782ecc5a16be020e00cf1b33d17364a44d3ea04ef069b32cd3813f27eba',8,'// mine
',148820613368733420,NULL);
CREATE TABLE team_members (
    course TEXT NOT NULL REFERENCES courses (id),
    person TEXT NOT NULL REFERENCES people (id),
    team TEXT NOT NULL REFERENCES teams (id),
    PRIMARY KEY (course, person)
);
INSERT INTO "team_members" VALUES('gpu101','d666b22077a32b6709f6','71d91f635e2c51435d77');
INSERT INTO "team_members" VALUES('gpu101','f8e3e0458b0663c1d155','71d91f635e2c51435d77');
CREATE TABLE teams (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "teams" VALUES('71d91f635e2c51435d77','gpu101','red');
CREATE TABLE turns (
    party TEXT NOT NULL,
    stage TEXT NOT NULL,
    served_ms BIGINT NOT NULL,
    PRIMARY KEY (party, stage)
);
INSERT INTO "turns" VALUES('person:fcdc631185b2a52b3f5c','cpu',1790000000001);
CREATE TABLE windows (
    publication TEXT NOT NULL REFERENCES publications (id),
    -- '': all sections that have no window of their own
    section TEXT NOT NULL,
    opens_ms BIGINT NOT NULL,
    due_ms BIGINT NOT NULL,
    closes_ms BIGINT NOT NULL,
    PRIMARY KEY (publication, section)
);
INSERT INTO "windows" VALUES('701a92ee4dc03cb82b1f','',1790000000000,1790360000000,1790720000000);
CREATE INDEX ix_memberships_person ON memberships (person);
CREATE INDEX ix_team_members_team ON team_members (team);
CREATE INDEX ix_submission_members_person ON submission_members (person);
CREATE INDEX ix_jobs_state ON jobs (state, stage);
CREATE INDEX ix_jobs_party ON jobs (party, publication);
CREATE INDEX ix_results_submission ON results (submission);
CREATE INDEX ix_overrides ON overrides (publication, person);
CREATE TRIGGER audit_kept_update BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER audit_kept_delete BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
COMMIT;
PRAGMA application_id = 2002937954;
PRAGMA user_version = 1;
