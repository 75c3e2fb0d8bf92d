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
INSERT INTO "appeals" VALUES('820b188394a3e918707a','41e9f85bae830e69161e','2efb536a7f7f2d6d0b5a','The race is not mine.',1790000001001,'','','',NULL);
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
INSERT INTO "audit" VALUES(1,1790000000000,'hub','course created','gpu101','gpu101','2a842db4990128054a03bcef301cb13671d1a93b64d306f5336f6696899f2596','fcbee1346e748b1040bd7676de63fcc2dbe360d005227ceec498a1cf3e25eadb');
INSERT INTO "audit" VALUES(2,1790000000000,'hub','staff added','baabf9250b4d153d7c3c','gpu101','00108be83002efd62ee491fe5a8526d88908464da3d4946af40ecd72c332745c','31f3bcc299692cc22e63c92a292660800967f932eba53b947d64cc1ddfca3aaf');
INSERT INTO "audit" VALUES(3,1790000000000,'baabf9250b4d153d7c3c','roster imported','gpu101','gpu101','3a6f8fcc9fc20a8a4842dbfcacd69905cad06b7e9c99e064422d9c90cec0c652','310b49d76e0f891172a9aa536d6be1486453c10d4961d0a8a3c43f1b6da7c160');
INSERT INTO "audit" VALUES(4,1790000000000,'hub','lab published','70d7f66e6bb32e65937d','gpu101','217825d6067424bc676acd070d2da1c7d77362586f4b00f799a670e95b14517c','459111de0ff338882e290657e46b24d6926166efb4836678c30b9705a14a1dd4');
INSERT INTO "audit" VALUES(5,1790000000000,'hub','grader registered','fb5c8782b0e56f76e566','','3364d58750a7a16ed624a66f0d109e17c095548fd7b994e70fe377cbb0b9ad15','4b12ce9da0267f26d13c07acb10ec75ed3f58be759720e6ef260c59bd6edf81a');
INSERT INTO "audit" VALUES(6,1790000001001,'baabf9250b4d153d7c3c','extension granted','128a451b3ee45132bed0','gpu101','f98e02e8a468e7b6e98a1a9a6b20847cb6302246ee537a5d4a80dfd6a950698d','e36279d8c8ba6e38da278f337bdda282ba1492dcd45cc0f38cccc82decb7067f');
INSERT INTO "audit" VALUES(7,1790000001001,'baabf9250b4d153d7c3c','points set','2efb536a7f7f2d6d0b5a','gpu101','1a8c2fc7063c651cfdbbbe14b1711e138576ff56d7c2d1a33ba509963afc1705','965019799b1b6bd4d5204192196a0e1ed6209520062e586f29b3529b8d59047b');
INSERT INTO "audit" VALUES(8,1790000001001,'2efb536a7f7f2d6d0b5a','appeal made','820b188394a3e918707a','gpu101','c34df71d7437b508342ca4c6b17234365af95d1457b0361280de7bee29a02362','a02780d52c7a8459e177b275a494d7161895d26cbce2bb4e4a85a86b8bd7e474');
INSERT INTO "audit" VALUES(9,1790000001001,'baabf9250b4d153d7c3c','GPUs reserved','c310b32f346f8eb5264f','gpu101','546e1c21f92bbb13dcbb3fd1f68a8d196ee519ade46ab5cc7c6a99f41ac12ed2','9c2174ed53d9c4146ba5fd0fa4559cab9fe81dac9fc0a6346d205c408cca41e4');
INSERT INTO "audit" VALUES(10,1790000001001,'platform','platform bound','gpu101','gpu101','d159cdbd63a7fce8a350814f4cd71386e62a5dd5919824e5e04b020659b0f606','b0b4c35e0c824899f951a17cb2fc95a51c8cf1129a010968328a6b43bbd63b7d');
INSERT INTO "audit" VALUES(11,1790000001001,'baabf9250b4d153d7c3c','competition opened','70d7f66e6bb32e65937d','gpu101','07204d4cc5b7ac02a8437a24ef8f804f3ad52a343fea3b37cab3a4bbaf9f1785','7cb11519ed802fb3fc3ed8ee3935f07c3d1aae2c50e321841f8d0c7ffc1bd2f2');
INSERT INTO "audit" VALUES(12,1790360000001,'baabf9250b4d153d7c3c','final started','70d7f66e6bb32e65937d','gpu101','1eaf4ca67c522cada59e240d501da92450c2b6f1b03e00723a78fd78887ba769','ba8fb352da6182e45f2dc3e0629cb9b916e151b3a80997f8d9545e6ed466138e');
CREATE TABLE audit_details (
    number BIGINT NOT NULL PRIMARY KEY REFERENCES audit (number),
    salt TEXT NOT NULL,
    detail TEXT NOT NULL
);
INSERT INTO "audit_details" VALUES(1,'de783221577ededc','{"appeal_window_h":168,"id":"gpu101","late_budget_h":0,"timed_runs_per_hour":6,"title":"GPU programming"}');
INSERT INTO "audit_details" VALUES(2,'890f980ec11af08c','{"course":"gpu101","role":"instructor","section":"9eb1368271c93e6b404c"}');
INSERT INTO "audit_details" VALUES(3,'d1f355f0a7b0d9cb','{"added":3,"changed":0,"hidden":0,"returned":0}');
INSERT INTO "audit_details" VALUES(4,'0bc396121366865b','{"is_team_work":0,"is_timed":1,"lab":"vector-add","lab_digest":"","language":"cuda","late_percent_per_day":100.0,"most_attempts":null,"scheme":"{\"thresholds\":[{\"measure\":\"right\",\"least\":1.0,\"points\":10.0}]}","title":"Vector add","windows":{"":{"closes_ms":1790720000000,"due_ms":1790360000000,"opens_ms":1790000000000}},"withdrawn_ms":null}');
INSERT INTO "audit_details" VALUES(5,'4785a2bf7691ad7a','{"name":"one"}');
INSERT INTO "audit_details" VALUES(6,'33f4779be69b5fe7','{"closes_ms":1790000001003,"due_ms":1790000001002,"lab":"vector-add","publication":"70d7f66e6bb32e65937d","reason":"was ill"}');
INSERT INTO "audit_details" VALUES(7,'3ea691e91506e95e','{"points":7.5,"publication":"70d7f66e6bb32e65937d","reason":"half of it is right"}');
INSERT INTO "audit_details" VALUES(8,'6ea7353af362f402','{"job":"41e9f85bae830e69161e"}');
INSERT INTO "audit_details" VALUES(9,'16d184cdadb043b6','{"ends_ms":1790007201001,"gpus":1,"starts_ms":1790003601001}');
INSERT INTO "audit_details" VALUES(10,'e85bb2c7168eb5b5','{"context":"context-9"}');
INSERT INTO "audit_details" VALUES(11,'f1336c0df6bd299e','{"freezes_ms":1790273600000}');
INSERT INTO "audit_details" VALUES(12,'ef1b001ea6854f96','{"device":"GPU-one-0","grader":"fb5c8782b0e56f76e566","id":"54e6522b2d6fe0c1c140","number":1,"rounds":5,"seed":250362340702839,"started_ms":1790360000001}');
CREATE TABLE competitions (
    publication TEXT NOT NULL PRIMARY KEY REFERENCES publications (id),
    opened_ms BIGINT NOT NULL,
    -- what came later is not on the learners' board
    freezes_ms BIGINT NOT NULL,
    -- when its board became final, for everybody
    ended_ms BIGINT
);
INSERT INTO "competitions" VALUES('70d7f66e6bb32e65937d',1790000001001,1790273600000,NULL);
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
INSERT INTO "competitors" VALUES('70d7f66e6bb32e65937d','6e5e2fff5fdef179d889','Warp Nine','warpnine',1790000001001);
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
INSERT INTO "extensions" VALUES('70d7f66e6bb32e65937d','128a451b3ee45132bed0',1790000001002,1790000001003,'was ill','baabf9250b4d153d7c3c',1790000001001);
CREATE TABLE final_jobs (
    job TEXT NOT NULL PRIMARY KEY REFERENCES jobs (id),
    final TEXT NOT NULL REFERENCES finals (id),
    -- 1, 2, ...
    round INTEGER NOT NULL,
    -- 0, 1, ...: they run in this order, one after another
    place INTEGER NOT NULL,
    UNIQUE (final, place)
);
INSERT INTO "final_jobs" VALUES('ce1745a219f03bb9c1d8','54e6522b2d6fe0c1c140',1,0);
INSERT INTO "final_jobs" VALUES('64700b47aaf55201aeed','54e6522b2d6fe0c1c140',2,1);
INSERT INTO "final_jobs" VALUES('29e24a34e173608a27d0','54e6522b2d6fe0c1c140',3,2);
INSERT INTO "final_jobs" VALUES('1f2fa469a09c88396091','54e6522b2d6fe0c1c140',4,3);
INSERT INTO "final_jobs" VALUES('65126450c3c730f18fe1','54e6522b2d6fe0c1c140',5,4);
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
INSERT INTO "finals" VALUES('54e6522b2d6fe0c1c140','70d7f66e6bb32e65937d',1,'fb5c8782b0e56f76e566','GPU-one-0',5,250362340702839,1790360000001);
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
INSERT INTO "gpu_leases" VALUES('d7d9913ef959eca4c3e6','gpu101','2efb536a7f7f2d6d0b5a','','held',20,1790000001001,'GPU-leased',1790000001001,1790001201001,1790000001001,NULL,1000,NULL,'');
CREATE TABLE gpu_sessions (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    title TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    starts_ms BIGINT NOT NULL,
    ends_ms BIGINT NOT NULL,
    made_by TEXT NOT NULL REFERENCES people (id)
);
INSERT INTO "gpu_sessions" VALUES('c310b32f346f8eb5264f','gpu101','exercise',1,1790003601001,1790007201001,'baabf9250b4d153d7c3c');
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
INSERT INTO "graders" VALUES('fb5c8782b0e56f76e566','one','5b640eb9c66fd394a93c066864fca22c71928a9d7a60f3a1b808355cd262c56f','active',1,'[{"uuid":"GPU-one-0","name":"H100"}]',1790000000000,1790000000000);
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
INSERT INTO "jobs" VALUES('41e9f85bae830e69161e','5978e3c4ec72526b7ce2','70d7f66e6bb32e65937d','person:2efb536a7f7f2d6d0b5a',1,'cpu','done',1,0,1790000000001,1790000000001,1,'fb5c8782b0e56f76e566','',1790000000001,NULL,0,0,1790000001001,'');
INSERT INTO "jobs" VALUES('8df6839017d4a52991fd','5643af7e1ab91b0eb346','70d7f66e6bb32e65937d','person:6e5e2fff5fdef179d889',1,'cpu','done',1,0,1790000001002,1790000001002,1,'fb5c8782b0e56f76e566','',1790000001002,NULL,0,0,1790000002002,'');
INSERT INTO "jobs" VALUES('09a17d9cf3042d415d3c','5643af7e1ab91b0eb346','70d7f66e6bb32e65937d','person:6e5e2fff5fdef179d889',1,'gpu','done',1,0,1790000002002,1790000002002,1,'fb5c8782b0e56f76e566','GPU-one-0',1790000002002,NULL,0,0,1790000003002,'');
INSERT INTO "jobs" VALUES('ce1745a219f03bb9c1d8','5643af7e1ab91b0eb346','70d7f66e6bb32e65937d','person:6e5e2fff5fdef179d889',2,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
INSERT INTO "jobs" VALUES('64700b47aaf55201aeed','5643af7e1ab91b0eb346','70d7f66e6bb32e65937d','person:6e5e2fff5fdef179d889',3,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
INSERT INTO "jobs" VALUES('29e24a34e173608a27d0','5643af7e1ab91b0eb346','70d7f66e6bb32e65937d','person:6e5e2fff5fdef179d889',4,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
INSERT INTO "jobs" VALUES('1f2fa469a09c88396091','5643af7e1ab91b0eb346','70d7f66e6bb32e65937d','person:6e5e2fff5fdef179d889',5,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
INSERT INTO "jobs" VALUES('65126450c3c730f18fe1','5643af7e1ab91b0eb346','70d7f66e6bb32e65937d','person:6e5e2fff5fdef179d889',6,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
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
INSERT INTO "lti_line_items" VALUES('70d7f66e6bb32e65937d','https://lms.example.org/items/1');
CREATE TABLE lti_people (
    issuer TEXT NOT NULL,
    -- the platform's own id of a person
    subject TEXT NOT NULL,
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (issuer, subject),
    UNIQUE (issuer, person)
);
INSERT INTO "lti_people" VALUES('https://lms.example.org','t1','baabf9250b4d153d7c3c');
INSERT INTO "lti_people" VALUES('https://lms.example.org','s1','2efb536a7f7f2d6d0b5a');
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
INSERT INTO "lti_scores" VALUES('76de041d34c614d11081','70d7f66e6bb32e65937d','2efb536a7f7f2d6d0b5a',1,7.5,10.0,1790000001001,'waiting',0,1790000001001,NULL,'');
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
INSERT INTO "memberships" VALUES('gpu101','baabf9250b4d153d7c3c','9eb1368271c93e6b404c','instructor',NULL);
INSERT INTO "memberships" VALUES('gpu101','2efb536a7f7f2d6d0b5a','262f427e30cfd7d0d89d','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','128a451b3ee45132bed0','262f427e30cfd7d0d89d','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','6e5e2fff5fdef179d889','f2766f276505ba2ae30a','learner',NULL);
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
INSERT INTO "overrides" VALUES('5694746f05cbe450989b',1,'70d7f66e6bb32e65937d','2efb536a7f7f2d6d0b5a',7.5,'half of it is right','baabf9250b4d153d7c3c',1790000001001);
CREATE TABLE people (
    id TEXT NOT NULL PRIMARY KEY,
    username TEXT NOT NULL UNIQUE,
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    email TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    erased_ms BIGINT
);
INSERT INTO "people" VALUES('baabf9250b4d153d7c3c','grace','','','',1790000000000,NULL);
INSERT INTO "people" VALUES('2efb536a7f7f2d6d0b5a','ada','Ada','Lovelace','',1790000000000,NULL);
INSERT INTO "people" VALUES('128a451b3ee45132bed0','bob','Bob','Noyce','',1790000000000,NULL);
INSERT INTO "people" VALUES('6e5e2fff5fdef179d889','cyd','Cyd','Charisse','',1790000000000,NULL);
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
INSERT INTO "publications" VALUES('70d7f66e6bb32e65937d','gpu101','vector-add','Vector add','cuda','abababababababababababababababababababababababababababababababab',1,0,'{"thresholds":[{"measure":"right","least":1.0,"points":10.0}]}',100.0,NULL,'// reference',1790000000000,NULL);
CREATE TABLE refused_results (
    id TEXT NOT NULL PRIMARY KEY,
    job TEXT NOT NULL,
    fence INTEGER NOT NULL,
    grader TEXT NOT NULL,
    refused_ms BIGINT NOT NULL,
    reason TEXT NOT NULL
);
INSERT INTO "refused_results" VALUES('8e5ffce2d61ce9385ed1','41e9f85bae830e69161e',99,'fb5c8782b0e56f76e566',1790000001001,'its lease was lost');
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
INSERT INTO "results" VALUES('41e9f85bae830e69161e','5978e3c4ec72526b7ce2',1,'cpu',1,'fb5c8782b0e56f76e566',1790000001001,1000,'abababababababababababababababababababababababababababababababab','{"verdict":"wrong","status":"failed","message":"so it went","right":1,"of":4,"error_kind":"race","is_speed_graded":false,"of_baseline":null,"of_limit":null,"not_graded":[],"flags":[]}','{}',0,NULL);
INSERT INTO "results" VALUES('8df6839017d4a52991fd','5643af7e1ab91b0eb346',1,'cpu',1,'fb5c8782b0e56f76e566',1790000002002,1000,'abababababababababababababababababababababababababababababababab','{"verdict":"right","status":"passed","message":"so it went","right":4,"of":4,"error_kind":"","is_speed_graded":false,"of_baseline":null,"of_limit":null,"not_graded":[],"flags":[]}','{}',0,NULL);
INSERT INTO "results" VALUES('09a17d9cf3042d415d3c','5643af7e1ab91b0eb346',1,'gpu',1,'fb5c8782b0e56f76e566',1790000003002,1000,'abababababababababababababababababababababababababababababababab','{"verdict":"right","status":"passed","message":"so it went","right":4,"of":4,"error_kind":"","is_speed_graded":true,"of_baseline":{"low":1.4,"middle":1.5,"high":1.6},"of_limit":{"low":1.4,"middle":1.5,"high":1.6},"not_graded":[],"flags":[]}','{}',0,NULL);
CREATE TABLE sections (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "sections" VALUES('9eb1368271c93e6b404c','gpu101','main');
INSERT INTO "sections" VALUES('262f427e30cfd7d0d89d','gpu101','monday');
INSERT INTO "sections" VALUES('f2766f276505ba2ae30a','gpu101','tuesday');
CREATE TABLE settings (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO "settings" VALUES('receipt_key','80348a5d8c8a8e1ab9fe84f21b8f50d5cbc85672b782112296b85349a5c34f4f');
CREATE TABLE submission_members (
    submission TEXT NOT NULL REFERENCES submissions (id),
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (submission, person)
);
INSERT INTO "submission_members" VALUES('5978e3c4ec72526b7ce2','2efb536a7f7f2d6d0b5a');
INSERT INTO "submission_members" VALUES('5643af7e1ab91b0eb346','6e5e2fff5fdef179d889');
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
INSERT INTO "submissions" VALUES('5978e3c4ec72526b7ce2','70d7f66e6bb32e65937d','2efb536a7f7f2d6d0b5a','person:2efb536a7f7f2d6d0b5a',1,'6087274a819cd8ea9bc1',1790000000001,'3fcdf782ecc5a16be020e00cf1b33d17364a44d3ea04ef069b32cd3813f27eba',8,'// mine
',2505051654122417068,NULL);
INSERT INTO "submissions" VALUES('5643af7e1ab91b0eb346','70d7f66e6bb32e65937d','6e5e2fff5fdef179d889','person:6e5e2fff5fdef179d889',1,'f7abe62e727769dfa65a',1790000001002,'640d54b47240a8d7c81a6f6ba8b0590e1ab8b2e3b9f61efba44e4da302d495c8',8,'// fast
',3533105844443197851,NULL);
CREATE TABLE team_members (
    course TEXT NOT NULL REFERENCES courses (id),
    person TEXT NOT NULL REFERENCES people (id),
    team TEXT NOT NULL REFERENCES teams (id),
    PRIMARY KEY (course, person)
);
INSERT INTO "team_members" VALUES('gpu101','128a451b3ee45132bed0','d327113502ed1b615784');
INSERT INTO "team_members" VALUES('gpu101','6e5e2fff5fdef179d889','d327113502ed1b615784');
CREATE TABLE teams (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "teams" VALUES('d327113502ed1b615784','gpu101','red');
CREATE TABLE turns (
    party TEXT NOT NULL,
    stage TEXT NOT NULL,
    served_ms BIGINT NOT NULL,
    PRIMARY KEY (party, stage)
);
INSERT INTO "turns" VALUES('person:2efb536a7f7f2d6d0b5a','cpu',1790000000001);
INSERT INTO "turns" VALUES('person:6e5e2fff5fdef179d889','cpu',1790000001002);
INSERT INTO "turns" VALUES('person:6e5e2fff5fdef179d889','gpu',1790000002002);
CREATE TABLE windows (
    publication TEXT NOT NULL REFERENCES publications (id),
    -- '': all sections that have no window of their own
    section TEXT NOT NULL,
    opens_ms BIGINT NOT NULL,
    due_ms BIGINT NOT NULL,
    closes_ms BIGINT NOT NULL,
    PRIMARY KEY (publication, section)
);
INSERT INTO "windows" VALUES('70d7f66e6bb32e65937d','',1790000000000,1790360000000,1790720000000);
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
CREATE INDEX ix_competitors_person ON competitors (person);
CREATE TRIGGER audit_kept_update BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER audit_kept_delete BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
COMMIT;
PRAGMA application_id = 2002937954;
PRAGMA user_version = 4;
