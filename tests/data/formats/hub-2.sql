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
INSERT INTO "appeals" VALUES('c504866978f245b573f4','727d954e2c17cc34b718','7e0047bcfd19fbfeb93a','The race is not mine.',1790000001001,'','','',NULL);
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
INSERT INTO "audit" VALUES(1,1790000000000,'hub','course created','gpu101','gpu101','dfcc1462142d7c620448786bb26263652045f76dc76e63e59cc1639b1af2f3b1','80d89d91279c4c7c09229b87cbef014dd1790b643bd897eddefcf9538083e44a');
INSERT INTO "audit" VALUES(2,1790000000000,'hub','staff added','3af66a6af6f49fbb8cfe','gpu101','08c5ed508dd3b81dc13eb1baeeab119ee744c0e3959b2be65575c800ee61ad59','244db29f70d8d5f7f948e803ce44b2c98146eb17ea7f07daab630ee88ac02534');
INSERT INTO "audit" VALUES(3,1790000000000,'3af66a6af6f49fbb8cfe','roster imported','gpu101','gpu101','f5c76c1fb55e0430f1a43e1a73a72fdbb85533dd298d3344816185b2cf19b2df','2d255206a49ce301c255634e3135be4b3975d127ac6aeb79e810c6a1e91c672e');
INSERT INTO "audit" VALUES(4,1790000000000,'hub','lab published','64201a0d8f654a357c76','gpu101','353d7f6e08801ce7bc78057ff115acded5703dfcc69bee89c9899be8ef6e6144','5b4e28f00f2833a6d99da1c36a71933dcff7aba588c1274de6386a4d196174cb');
INSERT INTO "audit" VALUES(5,1790000000000,'hub','grader registered','4a456f79326df8e57e7d','','16950dd7f939abcd4aa684f65ce9db17489dbf0ed48cc7e7551c44196f692ab9','8d632f02c3022cf68d7d69fc22d7c9001859d4a7304474acf71b443f82f2b7ab');
INSERT INTO "audit" VALUES(6,1790000001001,'3af66a6af6f49fbb8cfe','extension granted','8106f3c7004b380457b1','gpu101','6af4d873472c1433e38207d52f092baf33f81fb99fd44880b72e8e72c935dc05','8a0f36af18a7efb84303e8bc5e366f9a4f73bab959da8fa1d5bc3fdd485815f0');
INSERT INTO "audit" VALUES(7,1790000001001,'3af66a6af6f49fbb8cfe','points set','7e0047bcfd19fbfeb93a','gpu101','43e3ba82c0ab2e7bb64b7c2fd83f22c5f0b6b7aab2efd2820deac03c4368fbe2','05b5b1fe3879baffb501143c1411e0509bfa5b554ce4bff95aa288293f12e146');
INSERT INTO "audit" VALUES(8,1790000001001,'7e0047bcfd19fbfeb93a','appeal made','c504866978f245b573f4','gpu101','e024f590200871ae292f52fc150b3269f5bc8f6b889099d5ef45d7adb68a8d30','22ae95277ed84a779b962d915aac71a9db505c4078779800ed11bfc93a42d807');
INSERT INTO "audit" VALUES(9,1790000001001,'3af66a6af6f49fbb8cfe','GPUs reserved','cbc30448578d36814e98','gpu101','29357b1e545c54da851dab1c323a1db3a92657cafba26be2cd19487d964f9b79','7f84553489ec1429667e50593747d52e6a8026614bf325f5df87255f46178b8a');
CREATE TABLE audit_details (
    number BIGINT NOT NULL PRIMARY KEY REFERENCES audit (number),
    salt TEXT NOT NULL,
    detail TEXT NOT NULL
);
INSERT INTO "audit_details" VALUES(1,'2dc1a26482df70eb','{"appeal_window_h":168,"id":"gpu101","late_budget_h":0,"timed_runs_per_hour":6,"title":"GPU programming"}');
INSERT INTO "audit_details" VALUES(2,'086319e6d92639ac','{"course":"gpu101","role":"instructor","section":"5580351e4b1122ea7801"}');
INSERT INTO "audit_details" VALUES(3,'949e3643c0cf2dfb','{"added":3,"changed":0,"hidden":0,"returned":0}');
INSERT INTO "audit_details" VALUES(4,'3543c4964c07160d','{"is_team_work":0,"is_timed":1,"lab":"vector-add","lab_digest":"","language":"cuda","late_percent_per_day":100.0,"most_attempts":null,"scheme":"{\"thresholds\":[{\"measure\":\"right\",\"least\":1.0,\"points\":10.0}]}","title":"Vector add","windows":{"":{"closes_ms":1790720000000,"due_ms":1790360000000,"opens_ms":1790000000000}},"withdrawn_ms":null}');
INSERT INTO "audit_details" VALUES(5,'f81daee9afc83b41','{"name":"one"}');
INSERT INTO "audit_details" VALUES(6,'d09bae773f5cd858','{"closes_ms":1790000001003,"due_ms":1790000001002,"lab":"vector-add","publication":"64201a0d8f654a357c76","reason":"was ill"}');
INSERT INTO "audit_details" VALUES(7,'4d85429488524d86','{"points":7.5,"publication":"64201a0d8f654a357c76","reason":"half of it is right"}');
INSERT INTO "audit_details" VALUES(8,'0246ea3158c5a3e1','{"job":"727d954e2c17cc34b718"}');
INSERT INTO "audit_details" VALUES(9,'cb5c4d97b50c2e78','{"ends_ms":1790007201001,"gpus":1,"starts_ms":1790003601001}');
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
INSERT INTO "extensions" VALUES('64201a0d8f654a357c76','8106f3c7004b380457b1',1790000001002,1790000001003,'was ill','3af66a6af6f49fbb8cfe',1790000001001);
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
INSERT INTO "gpu_leases" VALUES('b6bc9dc74437c9964b5f','gpu101','7e0047bcfd19fbfeb93a','','held',20,1790000001001,'GPU-leased',1790000001001,1790001201001,1790000001001,NULL,1000,NULL,'');
CREATE TABLE gpu_sessions (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    title TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    starts_ms BIGINT NOT NULL,
    ends_ms BIGINT NOT NULL,
    made_by TEXT NOT NULL REFERENCES people (id)
);
INSERT INTO "gpu_sessions" VALUES('cbc30448578d36814e98','gpu101','exercise',1,1790003601001,1790007201001,'3af66a6af6f49fbb8cfe');
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
INSERT INTO "graders" VALUES('4a456f79326df8e57e7d','one','7b988920408f1930aac3b82db9c8444ed3e3dc608bbd8ece720870e6f37e3964','active',1,'[{"uuid":"GPU-one-0","name":"H100"}]',1790000000000,1790000000000);
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
INSERT INTO "jobs" VALUES('727d954e2c17cc34b718','d755ce7ff58cc2725864','64201a0d8f654a357c76','person:7e0047bcfd19fbfeb93a',1,'cpu','done',1,0,1790000000001,1790000000001,1,'4a456f79326df8e57e7d','',1790000000001,NULL,0,0,1790000001001,'');
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
INSERT INTO "lease_gpus" VALUES('GPU-leased','node','H100','',1,600000,1000,1790000001001);
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
INSERT INTO "memberships" VALUES('gpu101','3af66a6af6f49fbb8cfe','5580351e4b1122ea7801','instructor',NULL);
INSERT INTO "memberships" VALUES('gpu101','7e0047bcfd19fbfeb93a','c3f6ef33feb7cdcfbc43','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','8106f3c7004b380457b1','c3f6ef33feb7cdcfbc43','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','327da69edd1250b526c5','8a49306905f03ccdff42','learner',NULL);
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
INSERT INTO "overrides" VALUES('1e461a419708a83c3fd0',1,'64201a0d8f654a357c76','7e0047bcfd19fbfeb93a',7.5,'half of it is right','3af66a6af6f49fbb8cfe',1790000001001);
CREATE TABLE people (
    id TEXT NOT NULL PRIMARY KEY,
    username TEXT NOT NULL UNIQUE,
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    email TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    erased_ms BIGINT
);
INSERT INTO "people" VALUES('3af66a6af6f49fbb8cfe','grace','','','',1790000000000,NULL);
INSERT INTO "people" VALUES('7e0047bcfd19fbfeb93a','ada','Ada','Lovelace','',1790000000000,NULL);
INSERT INTO "people" VALUES('8106f3c7004b380457b1','bob','Bob','Noyce','',1790000000000,NULL);
INSERT INTO "people" VALUES('327da69edd1250b526c5','cyd','Cyd','Charisse','',1790000000000,NULL);
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
INSERT INTO "publications" VALUES('64201a0d8f654a357c76','gpu101','vector-add','Vector add','cuda','abababababababababababababababababababababababababababababababab',1,0,'{"thresholds":[{"measure":"right","least":1.0,"points":10.0}]}',100.0,NULL,'// reference',1790000000000,NULL);
CREATE TABLE refused_results (
    id TEXT NOT NULL PRIMARY KEY,
    job TEXT NOT NULL,
    fence INTEGER NOT NULL,
    grader TEXT NOT NULL,
    refused_ms BIGINT NOT NULL,
    reason TEXT NOT NULL
);
INSERT INTO "refused_results" VALUES('b29ca9b079065a8de7f3','727d954e2c17cc34b718',99,'4a456f79326df8e57e7d',1790000001001,'its lease was lost');
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
INSERT INTO "results" VALUES('727d954e2c17cc34b718','d755ce7ff58cc2725864',1,'cpu',1,'4a456f79326df8e57e7d',1790000001001,1000,'abababababababababababababababababababababababababababababababab','{"verdict":"wrong","status":"failed","message":"so it went","right":1,"of":4,"error_kind":"race","is_speed_graded":false,"of_baseline":null,"of_limit":null,"not_graded":[],"flags":[]}','{}',0,NULL);
CREATE TABLE sections (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "sections" VALUES('5580351e4b1122ea7801','gpu101','main');
INSERT INTO "sections" VALUES('c3f6ef33feb7cdcfbc43','gpu101','monday');
INSERT INTO "sections" VALUES('8a49306905f03ccdff42','gpu101','tuesday');
CREATE TABLE settings (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO "settings" VALUES('receipt_key','05cec83a09eda623e3be43ade8114d7a750e9fba3cbc5872544a98c8b6228754');
CREATE TABLE submission_members (
    submission TEXT NOT NULL REFERENCES submissions (id),
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (submission, person)
);
INSERT INTO "submission_members" VALUES('d755ce7ff58cc2725864','7e0047bcfd19fbfeb93a');
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
INSERT INTO "submissions" VALUES('d755ce7ff58cc2725864','64201a0d8f654a357c76','7e0047bcfd19fbfeb93a','person:7e0047bcfd19fbfeb93a',1,'c78fc6cae58d4aa5bd38',1790000000001,'3fcdf782ecc5a16be020e00cf1b33d17364a44d3ea04ef069b32cd3813f27eba',8,'// mine
',4601809586667944202,NULL);
CREATE TABLE team_members (
    course TEXT NOT NULL REFERENCES courses (id),
    person TEXT NOT NULL REFERENCES people (id),
    team TEXT NOT NULL REFERENCES teams (id),
    PRIMARY KEY (course, person)
);
INSERT INTO "team_members" VALUES('gpu101','8106f3c7004b380457b1','1d36a998ced03fe71169');
INSERT INTO "team_members" VALUES('gpu101','327da69edd1250b526c5','1d36a998ced03fe71169');
CREATE TABLE teams (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "teams" VALUES('1d36a998ced03fe71169','gpu101','red');
CREATE TABLE turns (
    party TEXT NOT NULL,
    stage TEXT NOT NULL,
    served_ms BIGINT NOT NULL,
    PRIMARY KEY (party, stage)
);
INSERT INTO "turns" VALUES('person:7e0047bcfd19fbfeb93a','cpu',1790000000001);
CREATE TABLE windows (
    publication TEXT NOT NULL REFERENCES publications (id),
    -- '': all sections that have no window of their own
    section TEXT NOT NULL,
    opens_ms BIGINT NOT NULL,
    due_ms BIGINT NOT NULL,
    closes_ms BIGINT NOT NULL,
    PRIMARY KEY (publication, section)
);
INSERT INTO "windows" VALUES('64201a0d8f654a357c76','',1790000000000,1790360000000,1790720000000);
CREATE INDEX ix_memberships_person ON memberships (person);
CREATE INDEX ix_team_members_team ON team_members (team);
CREATE INDEX ix_submission_members_person ON submission_members (person);
CREATE INDEX ix_jobs_state ON jobs (state, stage);
CREATE INDEX ix_jobs_party ON jobs (party, publication);
CREATE INDEX ix_results_submission ON results (submission);
CREATE INDEX ix_overrides ON overrides (publication, person);
CREATE UNIQUE INDEX ux_gpu_leases_person ON gpu_leases (person)
    WHERE state <> 'ended';
CREATE UNIQUE INDEX ux_gpu_leases_gpu ON gpu_leases (gpu)
    WHERE state IN ('held', 'ending');
CREATE INDEX ix_gpu_leases_ended ON gpu_leases (ended_ms);
CREATE TRIGGER audit_kept_update BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER audit_kept_delete BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
COMMIT;
PRAGMA application_id = 2002937954;
PRAGMA user_version = 2;
