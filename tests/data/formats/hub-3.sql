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
INSERT INTO "appeals" VALUES('d04ced03f8b5b1779f86','0eb35bf1ba2b5a78c324','5e435749ea417f8339af','The race is not mine.',1790000001001,'','','',NULL);
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
INSERT INTO "audit" VALUES(1,1790000000000,'hub','course created','gpu101','gpu101','2d73b42e495da7fc4260d67fbc45ee36680815660058c7fcfb0aabaa89af3f3c','0343fa2f36b70930b19fa77ab5b7105fb63e6a8e8ccf69ef99e716fb720d078e');
INSERT INTO "audit" VALUES(2,1790000000000,'hub','staff added','9e931450816b3a985866','gpu101','1bce42731b59271b53bf465ee34f7eb7c18f663081efd6fbdf73670b861d2155','f691156c7158f49bd632ecbd0947bd26b7b96f42d985d18977930d1bbe0d8b55');
INSERT INTO "audit" VALUES(3,1790000000000,'9e931450816b3a985866','roster imported','gpu101','gpu101','13db57a6fcf129cb2ea5379bbaa3404c2f13e60f6fb0b3022ab66e524824e1f9','22eb2283db1ae8e30f776ca66b8bcec2915969d628eda92dd4c94a237a4cbd0e');
INSERT INTO "audit" VALUES(4,1790000000000,'hub','lab published','67d1eaa2913f337a0ffa','gpu101','7caee25a2b93d4f4054c48112a267af80c48d1926b311c0ddd8ca0db820ba2b4','ef5401bd177fac3b61fae0db743d2e72efe3a5d7542b50408fb7ddaf43c1ae33');
INSERT INTO "audit" VALUES(5,1790000000000,'hub','grader registered','1dc384cc2f22dfb34c1d','','c1ef6f98666617a4a18fc232bc7e8af383637f9b2d0a3fad24493feb62ce4a29','0a40ae68fbc2b10390fea4990e6173f353074519748109151e8f8f91c4723ce3');
INSERT INTO "audit" VALUES(6,1790000001001,'9e931450816b3a985866','extension granted','bf7181d0d716dd2dc55f','gpu101','e322558a46faec6cab0fec426cf1055d044a5c9c81a57999309138862b79ca66','13be9167f682a3f89beffbf374d706f711b1bdc24d4b021f4f62ed2faf266358');
INSERT INTO "audit" VALUES(7,1790000001001,'9e931450816b3a985866','points set','5e435749ea417f8339af','gpu101','bd50d9e0d5776ea81edf43a455a692ec8864f5b71ca86830d70859d68afcaad7','8530467ff87078df9eae5d2da6ff8f10679efdde23156bc74ceae2f4860d7d76');
INSERT INTO "audit" VALUES(8,1790000001001,'5e435749ea417f8339af','appeal made','d04ced03f8b5b1779f86','gpu101','f82aa9dc70216d6474909855b7116a90ec2af46ffd578516ddacacfba49291ea','94016b6c2fa3fb10253c80c8bffa89d40048c514f3a7d9e5d0f2945137604d71');
INSERT INTO "audit" VALUES(9,1790000001001,'9e931450816b3a985866','GPUs reserved','5bdb7e06b5f367664fd0','gpu101','4517d8b892186f260b3f21b861477e27b27c7f3637cb13dc74c6b18a2c03e23c','fd99bd46dd868b5e6286e79c3dbdd04b282772bab83e18b35df4458fea8141b5');
INSERT INTO "audit" VALUES(10,1790000001001,'platform','platform bound','gpu101','gpu101','0306734bea13524288d93cc4a3fa18ea55c460435b84751d9780b6d9232f31d8','462844ad58b4c57823da609ebec351e86f176ad13ccee6f04f92abbdc5fde5d2');
CREATE TABLE audit_details (
    number BIGINT NOT NULL PRIMARY KEY REFERENCES audit (number),
    salt TEXT NOT NULL,
    detail TEXT NOT NULL
);
INSERT INTO "audit_details" VALUES(1,'9694e2b34aa644a8','{"appeal_window_h":168,"id":"gpu101","late_budget_h":0,"timed_runs_per_hour":6,"title":"GPU programming"}');
INSERT INTO "audit_details" VALUES(2,'d24b3aa62e5f104f','{"course":"gpu101","role":"instructor","section":"a110ac8ce793cfc8bc53"}');
INSERT INTO "audit_details" VALUES(3,'06c278501c4dc684','{"added":3,"changed":0,"hidden":0,"returned":0}');
INSERT INTO "audit_details" VALUES(4,'1b9103623825b445','{"is_team_work":0,"is_timed":1,"lab":"vector-add","lab_digest":"","language":"cuda","late_percent_per_day":100.0,"most_attempts":null,"scheme":"{\"thresholds\":[{\"measure\":\"right\",\"least\":1.0,\"points\":10.0}]}","title":"Vector add","windows":{"":{"closes_ms":1790720000000,"due_ms":1790360000000,"opens_ms":1790000000000}},"withdrawn_ms":null}');
INSERT INTO "audit_details" VALUES(5,'db27d66162dcb400','{"name":"one"}');
INSERT INTO "audit_details" VALUES(6,'3533e015581a8aff','{"closes_ms":1790000001003,"due_ms":1790000001002,"lab":"vector-add","publication":"67d1eaa2913f337a0ffa","reason":"was ill"}');
INSERT INTO "audit_details" VALUES(7,'8dffa6f33486c7a7','{"points":7.5,"publication":"67d1eaa2913f337a0ffa","reason":"half of it is right"}');
INSERT INTO "audit_details" VALUES(8,'2c8a961cd026d200','{"job":"0eb35bf1ba2b5a78c324"}');
INSERT INTO "audit_details" VALUES(9,'508e4db839616c94','{"ends_ms":1790007201001,"gpus":1,"starts_ms":1790003601001}');
INSERT INTO "audit_details" VALUES(10,'574d0eea077dad3b','{"context":"context-9"}');
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
INSERT INTO "extensions" VALUES('67d1eaa2913f337a0ffa','bf7181d0d716dd2dc55f',1790000001002,1790000001003,'was ill','9e931450816b3a985866',1790000001001);
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
INSERT INTO "gpu_leases" VALUES('5f0bcc96858efb7681f8','gpu101','5e435749ea417f8339af','','held',20,1790000001001,'GPU-leased',1790000001001,1790001201001,1790000001001,NULL,1000,NULL,'');
CREATE TABLE gpu_sessions (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    title TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    starts_ms BIGINT NOT NULL,
    ends_ms BIGINT NOT NULL,
    made_by TEXT NOT NULL REFERENCES people (id)
);
INSERT INTO "gpu_sessions" VALUES('5bdb7e06b5f367664fd0','gpu101','exercise',1,1790003601001,1790007201001,'9e931450816b3a985866');
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
INSERT INTO "graders" VALUES('1dc384cc2f22dfb34c1d','one','66b0cbb717345863a8f2f9c703df94f848a78a6450bd9383285f44a15e6e5bea','active',1,'[{"uuid":"GPU-one-0","name":"H100"}]',1790000000000,1790000000000);
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
INSERT INTO "jobs" VALUES('0eb35bf1ba2b5a78c324','ecb18aad3b4db82f6511','67d1eaa2913f337a0ffa','person:5e435749ea417f8339af',1,'cpu','done',1,0,1790000000001,1790000000001,1,'1dc384cc2f22dfb34c1d','',1790000000001,NULL,0,0,1790000001001,'');
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
INSERT INTO "lti_contexts" VALUES('gpu101','https://lms.example.org','context-9','GPUs','https://lms.example.org/members','https://lms.example.org/items',1790000001001,NULL,'');
CREATE TABLE lti_line_items (
    publication TEXT NOT NULL PRIMARY KEY REFERENCES publications (id),
    url TEXT NOT NULL
);
INSERT INTO "lti_line_items" VALUES('67d1eaa2913f337a0ffa','https://lms.example.org/items/1');
CREATE TABLE lti_people (
    issuer TEXT NOT NULL,
    -- the platform's own id of a person
    subject TEXT NOT NULL,
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (issuer, subject),
    UNIQUE (issuer, person)
);
INSERT INTO "lti_people" VALUES('https://lms.example.org','t1','9e931450816b3a985866');
INSERT INTO "lti_people" VALUES('https://lms.example.org','s1','5e435749ea417f8339af');
CREATE TABLE lti_scores (
    id TEXT NOT NULL PRIMARY KEY,
    publication TEXT NOT NULL REFERENCES publications (id),
    person TEXT NOT NULL REFERENCES people (id),
    -- 1, 2, ... of this publication and person: the last one is what counts
    number INTEGER NOT NULL,
    points DOUBLE PRECISION NOT NULL,
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
INSERT INTO "lti_scores" VALUES('9ffea8517234805ec459','67d1eaa2913f337a0ffa','5e435749ea417f8339af',1,7.5,10.0,1790000001001,'waiting',0,1790000001001,NULL,'');
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
INSERT INTO "memberships" VALUES('gpu101','9e931450816b3a985866','a110ac8ce793cfc8bc53','instructor',NULL);
INSERT INTO "memberships" VALUES('gpu101','5e435749ea417f8339af','ae29f7d1bda0f66ee608','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','bf7181d0d716dd2dc55f','ae29f7d1bda0f66ee608','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','e784132272d8833ad90b','bc04ccf9ed756c34274d','learner',NULL);
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
INSERT INTO "overrides" VALUES('69c0e4b4ce9dc9bac623',1,'67d1eaa2913f337a0ffa','5e435749ea417f8339af',7.5,'half of it is right','9e931450816b3a985866',1790000001001);
CREATE TABLE people (
    id TEXT NOT NULL PRIMARY KEY,
    username TEXT NOT NULL UNIQUE,
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    email TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    erased_ms BIGINT
);
INSERT INTO "people" VALUES('9e931450816b3a985866','grace','','','',1790000000000,NULL);
INSERT INTO "people" VALUES('5e435749ea417f8339af','ada','Ada','Lovelace','',1790000000000,NULL);
INSERT INTO "people" VALUES('bf7181d0d716dd2dc55f','bob','Bob','Noyce','',1790000000000,NULL);
INSERT INTO "people" VALUES('e784132272d8833ad90b','cyd','Cyd','Charisse','',1790000000000,NULL);
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
INSERT INTO "publications" VALUES('67d1eaa2913f337a0ffa','gpu101','vector-add','Vector add','cuda','abababababababababababababababababababababababababababababababab',1,0,'{"thresholds":[{"measure":"right","least":1.0,"points":10.0}]}',100.0,NULL,'// reference',1790000000000,NULL);
CREATE TABLE refused_results (
    id TEXT NOT NULL PRIMARY KEY,
    job TEXT NOT NULL,
    fence INTEGER NOT NULL,
    grader TEXT NOT NULL,
    refused_ms BIGINT NOT NULL,
    reason TEXT NOT NULL
);
INSERT INTO "refused_results" VALUES('12437114ee7795a7b802','0eb35bf1ba2b5a78c324',99,'1dc384cc2f22dfb34c1d',1790000001001,'its lease was lost');
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
INSERT INTO "results" VALUES('0eb35bf1ba2b5a78c324','ecb18aad3b4db82f6511',1,'cpu',1,'1dc384cc2f22dfb34c1d',1790000001001,1000,'abababababababababababababababababababababababababababababababab','{"verdict":"wrong","status":"failed","message":"so it went","right":1,"of":4,"error_kind":"race","is_speed_graded":false,"of_baseline":null,"of_limit":null,"not_graded":[],"flags":[]}','{}',0,NULL);
CREATE TABLE sections (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "sections" VALUES('a110ac8ce793cfc8bc53','gpu101','main');
INSERT INTO "sections" VALUES('ae29f7d1bda0f66ee608','gpu101','monday');
INSERT INTO "sections" VALUES('bc04ccf9ed756c34274d','gpu101','tuesday');
CREATE TABLE settings (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO "settings" VALUES('receipt_key','cb74504d5127e308875192f063675fcfa5e2a6af1662f0ef183d8142ad2831f0');
CREATE TABLE submission_members (
    submission TEXT NOT NULL REFERENCES submissions (id),
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (submission, person)
);
INSERT INTO "submission_members" VALUES('ecb18aad3b4db82f6511','5e435749ea417f8339af');
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
INSERT INTO "submissions" VALUES('ecb18aad3b4db82f6511','67d1eaa2913f337a0ffa','5e435749ea417f8339af','person:5e435749ea417f8339af',1,'db014c901d8e76a58244',1790000000001,'3fcdf782ecc5a16be020e00cf1b33d17364a44d3ea04ef069b32cd3813f27eba',8,'// mine
',2225523613978125480,NULL);
CREATE TABLE team_members (
    course TEXT NOT NULL REFERENCES courses (id),
    person TEXT NOT NULL REFERENCES people (id),
    team TEXT NOT NULL REFERENCES teams (id),
    PRIMARY KEY (course, person)
);
INSERT INTO "team_members" VALUES('gpu101','bf7181d0d716dd2dc55f','6853d2e9733f608ad9cd');
INSERT INTO "team_members" VALUES('gpu101','e784132272d8833ad90b','6853d2e9733f608ad9cd');
CREATE TABLE teams (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "teams" VALUES('6853d2e9733f608ad9cd','gpu101','red');
CREATE TABLE turns (
    party TEXT NOT NULL,
    stage TEXT NOT NULL,
    served_ms BIGINT NOT NULL,
    PRIMARY KEY (party, stage)
);
INSERT INTO "turns" VALUES('person:5e435749ea417f8339af','cpu',1790000000001);
CREATE TABLE windows (
    publication TEXT NOT NULL REFERENCES publications (id),
    -- '': all sections that have no window of their own
    section TEXT NOT NULL,
    opens_ms BIGINT NOT NULL,
    due_ms BIGINT NOT NULL,
    closes_ms BIGINT NOT NULL,
    PRIMARY KEY (publication, section)
);
INSERT INTO "windows" VALUES('67d1eaa2913f337a0ffa','',1790000000000,1790360000000,1790720000000);
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
CREATE INDEX ix_lti_scores_state ON lti_scores (state, not_before_ms);
CREATE TRIGGER audit_kept_update BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER audit_kept_delete BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
COMMIT;
PRAGMA application_id = 2002937954;
PRAGMA user_version = 3;
