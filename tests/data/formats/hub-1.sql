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
INSERT INTO "appeals" VALUES('f91d119be837f8a8d172','60ae4b775664db303c10','561b622418ce57c4cae6','The race is not mine.',1790000001001,'','','',NULL);
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
INSERT INTO "audit" VALUES(1,1790000000000,'hub','course created','gpu101','gpu101','c5dfe61462de66ee54e69c175a79b90cdefd9bb832bd2789bce74cbe0baa649b','3f4068e51544c630843b17f396d1f92c0aa35b6ed90b2c7d31fa8addfd7a20fd');
INSERT INTO "audit" VALUES(2,1790000000000,'hub','staff added','070bde338c054359dc68','gpu101','bd2b332fc02f99304e1f4288b6bcacaa00e782b6b493a9b185e29e16c6aa2767','30dfd4f161b37ceff08d10b06f24348805b8e3e8d1f26d45d9b37ff349c89464');
INSERT INTO "audit" VALUES(3,1790000000000,'070bde338c054359dc68','roster imported','gpu101','gpu101','5b866b09d458ddbe33c314330319c1afe7b35abaa9cad1d7d9678897e2f62f66','db3de5a2f972e76f6f41e463fbd41ef3c9e748789284e13bd8809ce22382dc9e');
INSERT INTO "audit" VALUES(4,1790000000000,'hub','lab published','400a5a5217fae68ac488','gpu101','8c057635af7e0bac578bf0a0a4f42844f6c8b3a8e333894912bf22e1a9a50fc0','867814082f8e3d4fa7e7328c258b6a8c1b3c46c4f2867b882c9982ea4d7031de');
INSERT INTO "audit" VALUES(5,1790000000000,'hub','grader registered','3605140d39d44032b091','','ed7e39c7ffbe7a398520883776fc54302f1f9b9c501b305dcf620752b3359cfb','78f33e33130dead55cd47a09a13e394f2f405567e91b3d07aa3c518579b9988f');
INSERT INTO "audit" VALUES(6,1790000001001,'070bde338c054359dc68','extension granted','39d2703206007e2bd414','gpu101','016a1ab8c276b074d718b30e9ea3334f7ee22f27a2abf9f5c2cc014875dc1375','51f7518ba1ada5babdc28f99f7a22fb57a14dd45ac0151a5659c2e39b28e9ddd');
INSERT INTO "audit" VALUES(7,1790000001001,'070bde338c054359dc68','points set','561b622418ce57c4cae6','gpu101','decf18310ac0be19c600ec318b23be373dfc5074aaa4cf11dec626ae88cbba2c','ed1de43077b631bda762c1adfe95d1dfea9c1893955e2e663aabc261dc81194f');
INSERT INTO "audit" VALUES(8,1790000001001,'561b622418ce57c4cae6','appeal made','f91d119be837f8a8d172','gpu101','a9adcbf8a9a02ae4bc228b7c9cff257657975d500123986e58af383661ffc1a2','96e3875fff36e8b7d7b439098861c74deffbee4e38a62fdd533f097a55ee4974');
CREATE TABLE audit_details (
    number BIGINT NOT NULL PRIMARY KEY REFERENCES audit (number),
    salt TEXT NOT NULL,
    detail TEXT NOT NULL
);
INSERT INTO "audit_details" VALUES(1,'17490013e6146384','{"appeal_window_h":168,"id":"gpu101","late_budget_h":0,"timed_runs_per_hour":6,"title":"GPU programming"}');
INSERT INTO "audit_details" VALUES(2,'058aff29f2492695','{"course":"gpu101","role":"instructor","section":"a90f4124dc8caa1d39dd"}');
INSERT INTO "audit_details" VALUES(3,'03b1c0f6e5e636ea','{"added":3,"changed":0,"hidden":0,"returned":0}');
INSERT INTO "audit_details" VALUES(4,'935e7cacc803c95d','{"is_team_work":0,"is_timed":1,"lab":"vector-add","lab_digest":"","language":"cuda","late_percent_per_day":100.0,"most_attempts":null,"scheme":"{\"thresholds\":[{\"measure\":\"right\",\"least\":1.0,\"points\":10.0}]}","title":"Vector add","windows":{"":{"closes_ms":1790720000000,"due_ms":1790360000000,"opens_ms":1790000000000}},"withdrawn_ms":null}');
INSERT INTO "audit_details" VALUES(5,'2b1276da39ae8dfe','{"name":"one"}');
INSERT INTO "audit_details" VALUES(6,'e745ca9754f61d24','{"closes_ms":1790000001003,"due_ms":1790000001002,"lab":"vector-add","publication":"400a5a5217fae68ac488","reason":"was ill"}');
INSERT INTO "audit_details" VALUES(7,'d72da6159e8dc9e2','{"points":7.5,"publication":"400a5a5217fae68ac488","reason":"half of it is right"}');
INSERT INTO "audit_details" VALUES(8,'a617a33367e72633','{"job":"60ae4b775664db303c10"}');
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
INSERT INTO "extensions" VALUES('400a5a5217fae68ac488','39d2703206007e2bd414',1790000001002,1790000001003,'was ill','070bde338c054359dc68',1790000001001);
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
INSERT INTO "graders" VALUES('3605140d39d44032b091','one','fa137e6a7c9543423ae3bc615eea04bc007a34f15fe9a28b01a2c8a71f0e4644','active',1,'[{"uuid":"GPU-one-0","name":"H100"}]',1790000000000,1790000000000);
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
INSERT INTO "jobs" VALUES('60ae4b775664db303c10','427fa9c9f685f926bbb2','400a5a5217fae68ac488','person:561b622418ce57c4cae6',1,'cpu','done',1,0,1790000000001,1790000000001,1,'3605140d39d44032b091','',1790000000001,NULL,0,0,1790000001001,'');
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
INSERT INTO "memberships" VALUES('gpu101','070bde338c054359dc68','a90f4124dc8caa1d39dd','instructor',NULL);
INSERT INTO "memberships" VALUES('gpu101','561b622418ce57c4cae6','9b7870624d65c6d0d5d6','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','39d2703206007e2bd414','9b7870624d65c6d0d5d6','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','d30425bd13cd42da5326','a63f82fd42264ea16a3a','learner',NULL);
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
INSERT INTO "overrides" VALUES('fdbbc3dea04d6453be42',1,'400a5a5217fae68ac488','561b622418ce57c4cae6',7.5,'half of it is right','070bde338c054359dc68',1790000001001);
CREATE TABLE people (
    id TEXT NOT NULL PRIMARY KEY,
    username TEXT NOT NULL UNIQUE,
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    email TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    erased_ms BIGINT
);
INSERT INTO "people" VALUES('070bde338c054359dc68','grace','','','',1790000000000,NULL);
INSERT INTO "people" VALUES('561b622418ce57c4cae6','ada','Ada','Lovelace','',1790000000000,NULL);
INSERT INTO "people" VALUES('39d2703206007e2bd414','bob','Bob','Noyce','',1790000000000,NULL);
INSERT INTO "people" VALUES('d30425bd13cd42da5326','cyd','Cyd','Charisse','',1790000000000,NULL);
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
INSERT INTO "publications" VALUES('400a5a5217fae68ac488','gpu101','vector-add','Vector add','cuda','abababababababababababababababababababababababababababababababab',1,0,'{"thresholds":[{"measure":"right","least":1.0,"points":10.0}]}',100.0,NULL,'// reference',1790000000000,NULL);
CREATE TABLE refused_results (
    id TEXT NOT NULL PRIMARY KEY,
    job TEXT NOT NULL,
    fence INTEGER NOT NULL,
    grader TEXT NOT NULL,
    refused_ms BIGINT NOT NULL,
    reason TEXT NOT NULL
);
INSERT INTO "refused_results" VALUES('3bd86d7d02fdbe831371','60ae4b775664db303c10',99,'3605140d39d44032b091',1790000001001,'its lease was lost');
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
INSERT INTO "results" VALUES('60ae4b775664db303c10','427fa9c9f685f926bbb2',1,'cpu',1,'3605140d39d44032b091',1790000001001,1000,'abababababababababababababababababababababababababababababababab','{"verdict":"wrong","status":"failed","message":"so it went","right":1,"of":4,"error_kind":"race","is_speed_graded":false,"of_baseline":null,"of_limit":null,"not_graded":[],"flags":[]}','{}',0,NULL);
CREATE TABLE sections (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "sections" VALUES('a90f4124dc8caa1d39dd','gpu101','main');
INSERT INTO "sections" VALUES('9b7870624d65c6d0d5d6','gpu101','monday');
INSERT INTO "sections" VALUES('a63f82fd42264ea16a3a','gpu101','tuesday');
CREATE TABLE settings (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO "settings" VALUES('receipt_key','67c994278375d66022f66ff7add6274f55b23475ddddf55c5e5d4f8af43dd957');
CREATE TABLE submission_members (
    submission TEXT NOT NULL REFERENCES submissions (id),
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (submission, person)
);
INSERT INTO "submission_members" VALUES('427fa9c9f685f926bbb2','561b622418ce57c4cae6');
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
INSERT INTO "submissions" VALUES('427fa9c9f685f926bbb2','400a5a5217fae68ac488','561b622418ce57c4cae6','person:561b622418ce57c4cae6',1,'4f9eae91baba137ad5bd',1790000000001,'3fcdf782ecc5a16be020e00cf1b33d17364a44d3ea04ef069b32cd3813f27eba',8,'// mine
',2642157426050283920,NULL);
CREATE TABLE team_members (
    course TEXT NOT NULL REFERENCES courses (id),
    person TEXT NOT NULL REFERENCES people (id),
    team TEXT NOT NULL REFERENCES teams (id),
    PRIMARY KEY (course, person)
);
INSERT INTO "team_members" VALUES('gpu101','39d2703206007e2bd414','40978767b012032dcf6e');
INSERT INTO "team_members" VALUES('gpu101','d30425bd13cd42da5326','40978767b012032dcf6e');
CREATE TABLE teams (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "teams" VALUES('40978767b012032dcf6e','gpu101','red');
CREATE TABLE turns (
    party TEXT NOT NULL,
    stage TEXT NOT NULL,
    served_ms BIGINT NOT NULL,
    PRIMARY KEY (party, stage)
);
INSERT INTO "turns" VALUES('person:561b622418ce57c4cae6','cpu',1790000000001);
CREATE TABLE windows (
    publication TEXT NOT NULL REFERENCES publications (id),
    -- '': all sections that have no window of their own
    section TEXT NOT NULL,
    opens_ms BIGINT NOT NULL,
    due_ms BIGINT NOT NULL,
    closes_ms BIGINT NOT NULL,
    PRIMARY KEY (publication, section)
);
INSERT INTO "windows" VALUES('400a5a5217fae68ac488','',1790000000000,1790360000000,1790720000000);
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
