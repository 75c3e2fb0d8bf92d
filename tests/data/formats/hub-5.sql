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
INSERT INTO "appeals" VALUES('a9afc11bb5c47654d271','8a37f06698138e4dc816','7b7f289a423eb8671fd1','The race is not mine.',1790000001001,'','','',NULL);
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
INSERT INTO "audit" VALUES(1,1790000000000,'hub','course created','gpu101','gpu101','a2f4bdcc3c3507ff6c2cf68635a654770ef0dc4807ae31dd0b88cdda797053b7','c78d59ef891e4fe038620d47199eab176806d70d76bce13accb5c944673e5299');
INSERT INTO "audit" VALUES(2,1790000000000,'hub','staff added','d4995ee024474611c50e','gpu101','97f2ed287369747eba48eb22d437ecd6b151ec913f49f57fa9dabfd0197c6bb6','a1a21000f14a1b5028e6a1dfbc18bfe6e35be660cb3ff81474ec9d1c8047f24f');
INSERT INTO "audit" VALUES(3,1790000000000,'d4995ee024474611c50e','roster imported','gpu101','gpu101','2cf3d73c9d39206483d4e898a12c2f7af679c7450b62f2cbe8264a447b25e839','9ff34da877e7b78a5105dcc81787bfb239428784e26e9b939ae2cb6def0d5466');
INSERT INTO "audit" VALUES(4,1790000000000,'hub','lab published','cee5b3ebbac39bc0a079','gpu101','3aa4711d959fe29263c161a15c3c17e8b5af69fe524a5cce85c52c7c72239f7e','4b1bce83ebae3a2ed3b77258e691cc99d6bd757eac1ffce3d1ee0543faf8dfa2');
INSERT INTO "audit" VALUES(5,1790000000000,'hub','grader registered','0e989c69a264232794f9','','4246579f92202db15350dea1aeecf30f867beca6ae8aa2b5e344874dcc6b63bd','5cd3deeaec03bfcb4fcb9565fe8e839fdfd79ce8d2f7bb56cea12ff2ef156aba');
INSERT INTO "audit" VALUES(6,1790000001001,'d4995ee024474611c50e','extension granted','fdbb6a21d8446e856bb8','gpu101','bc91dc1cb27e8f07f19300dd2f7844008c581d345d371292fc7e7aaca01b245f','1ca315293619b4992d53673f3dd448b1f96c85cfa73d21b8af67e99795a3a6e6');
INSERT INTO "audit" VALUES(7,1790000001001,'d4995ee024474611c50e','points set','7b7f289a423eb8671fd1','gpu101','c4a8825008ca694dccaefbc3d8b90e1a7da2ab15e77e5ba4977010f82fcac100','70db3a497e8f001232580cdc99f374f2b618538bb567464524a548fed7f10016');
INSERT INTO "audit" VALUES(8,1790000001001,'7b7f289a423eb8671fd1','appeal made','a9afc11bb5c47654d271','gpu101','0e5d848b5b930c64fd009bd5ea1dc604873414a337eb8538f585c3d3eaa2f1d7','16d87a268a5cedf4e30bc49912b6cb8aa7e908adab4136a52acf8bfc046d0016');
INSERT INTO "audit" VALUES(9,1790000001001,'d4995ee024474611c50e','GPUs reserved','b962eb3142b450cc27fa','gpu101','e7cc92cff15b789ec2de1294b52d009a8ce978370acfd48865e25895cf14aada','642070ecff15a00b465be27b1f76122429c0e18f88eeed4df4110bbcd8e8fcfd');
INSERT INTO "audit" VALUES(10,1790000001001,'platform','platform bound','gpu101','gpu101','8379718635c53834558a32411f6285883edbefb00bb67129af454eaada9c94e5','d2bee78bef3a8a5fe36d7a1dfb4a9f88747fd1c5e42607fa5a21621d465fd595');
INSERT INTO "audit" VALUES(11,1790000001001,'d4995ee024474611c50e','competition opened','cee5b3ebbac39bc0a079','gpu101','2088d83e3de395397d33bbe58ede3fdddfaefdda9aa33115e1f127716a61c0fb','a9c6747309598ffca3e2e094c44636f5d579e9b0abc07ae1956dad98adec8d9d');
INSERT INTO "audit" VALUES(12,1790360000001,'d4995ee024474611c50e','final started','cee5b3ebbac39bc0a079','gpu101','7cfc6b60face758cba882455822cccb1d9933a323c28c53736d04139838e6280','9f1da1628da219089fd47d700c816fb4ae153dd8dd25c76c7ad63c524cac504d');
INSERT INTO "audit" VALUES(13,1790360000001,'d4995ee024474611c50e','node registered','e2c26a3b9e0e62a3b932','','b46bea05d8a5899d3f32cd17653d2fe638c56ef99741ce7d1ed0d112d0dbedaf','0a63c495f94d6e05de9643c5a0e4ac6ed802b723dd0d9a338f65d1c1bf3b187a');
CREATE TABLE audit_details (
    number BIGINT NOT NULL PRIMARY KEY REFERENCES audit (number),
    salt TEXT NOT NULL,
    detail TEXT NOT NULL
);
INSERT INTO "audit_details" VALUES(1,'142184c1130b2736','{"appeal_window_h":168,"id":"gpu101","late_budget_h":0,"timed_runs_per_hour":6,"title":"GPU programming"}');
INSERT INTO "audit_details" VALUES(2,'2f63eb36c237d5ad','{"course":"gpu101","role":"instructor","section":"c925615809a374032263"}');
INSERT INTO "audit_details" VALUES(3,'d74833bd101c5b20','{"added":3,"changed":0,"hidden":0,"returned":0}');
INSERT INTO "audit_details" VALUES(4,'05a934625201b80c','{"is_team_work":0,"is_timed":1,"lab":"vector-add","lab_digest":"","language":"cuda","late_percent_per_day":100.0,"most_attempts":null,"scheme":"{\"thresholds\":[{\"measure\":\"right\",\"least\":1.0,\"points\":10.0}]}","title":"Vector add","windows":{"":{"closes_ms":1790720000000,"due_ms":1790360000000,"opens_ms":1790000000000}},"withdrawn_ms":null}');
INSERT INTO "audit_details" VALUES(5,'cff1edb456c71931','{"name":"one"}');
INSERT INTO "audit_details" VALUES(6,'dd3d1b19c8659f1c','{"closes_ms":1790000001003,"due_ms":1790000001002,"lab":"vector-add","publication":"cee5b3ebbac39bc0a079","reason":"was ill"}');
INSERT INTO "audit_details" VALUES(7,'644e128545e7f108','{"points":7.5,"publication":"cee5b3ebbac39bc0a079","reason":"half of it is right"}');
INSERT INTO "audit_details" VALUES(8,'7466f792ea9d8a02','{"job":"8a37f06698138e4dc816"}');
INSERT INTO "audit_details" VALUES(9,'51475355887ead76','{"ends_ms":1790007201001,"gpus":1,"starts_ms":1790003601001}');
INSERT INTO "audit_details" VALUES(10,'02e2a36f0cd7171f','{"context":"context-9"}');
INSERT INTO "audit_details" VALUES(11,'63b626f2fdc92618','{"freezes_ms":1790273600000}');
INSERT INTO "audit_details" VALUES(12,'3781258478d8b758','{"device":"GPU-one-0","grader":"0e989c69a264232794f9","id":"4dec63fa5fa9483f9e8e","number":1,"rounds":5,"seed":192081009187772,"started_ms":1790360000001}');
INSERT INTO "audit_details" VALUES(13,'b8ce9f492c473a38','{"name":"n7"}');
CREATE TABLE competitions (
    publication TEXT NOT NULL PRIMARY KEY REFERENCES publications (id),
    opened_ms BIGINT NOT NULL,
    -- what came later is not on the learners' board
    freezes_ms BIGINT NOT NULL,
    -- when its board became final, for everybody
    ended_ms BIGINT
);
INSERT INTO "competitions" VALUES('cee5b3ebbac39bc0a079',1790000001001,1790273600000,NULL);
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
INSERT INTO "competitors" VALUES('cee5b3ebbac39bc0a079','69b5b1daab92fdfb33d5','Warp Nine','warpnine',1790000001001);
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
INSERT INTO "extensions" VALUES('cee5b3ebbac39bc0a079','fdbb6a21d8446e856bb8',1790000001002,1790000001003,'was ill','d4995ee024474611c50e',1790000001001);
CREATE TABLE final_jobs (
    job TEXT NOT NULL PRIMARY KEY REFERENCES jobs (id),
    final TEXT NOT NULL REFERENCES finals (id),
    -- 1, 2, ...
    round INTEGER NOT NULL,
    -- 0, 1, ...: they run in this order, one after another
    place INTEGER NOT NULL,
    UNIQUE (final, place)
);
INSERT INTO "final_jobs" VALUES('1405a9ca79c1b7fe6f04','4dec63fa5fa9483f9e8e',1,0);
INSERT INTO "final_jobs" VALUES('e2e5c9e23e7aa82c6552','4dec63fa5fa9483f9e8e',2,1);
INSERT INTO "final_jobs" VALUES('d603d8dc8930768805df','4dec63fa5fa9483f9e8e',3,2);
INSERT INTO "final_jobs" VALUES('2de27a2c3a4b5dbcea33','4dec63fa5fa9483f9e8e',4,3);
INSERT INTO "final_jobs" VALUES('8f374648e9f39b67aec5','4dec63fa5fa9483f9e8e',5,4);
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
INSERT INTO "finals" VALUES('4dec63fa5fa9483f9e8e','cee5b3ebbac39bc0a079',1,'0e989c69a264232794f9','GPU-one-0',5,192081009187772,1790360000001);
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
INSERT INTO "gpu_leases" VALUES('575da596b5954d05deed','gpu101','7b7f289a423eb8671fd1','','held',20,1790000001001,'GPU-leased',1790000001001,1790001201001,1790000001001,NULL,1000,NULL,'');
CREATE TABLE gpu_sessions (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    title TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    starts_ms BIGINT NOT NULL,
    ends_ms BIGINT NOT NULL,
    made_by TEXT NOT NULL REFERENCES people (id)
);
INSERT INTO "gpu_sessions" VALUES('b962eb3142b450cc27fa','gpu101','exercise',1,1790003601001,1790007201001,'d4995ee024474611c50e');
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
INSERT INTO "gpu_spans" VALUES('e2c26a3b9e0e62a3b932','GPU-node',60000,1790359980000,15000,9000,6000,3000,1500);
INSERT INTO "gpu_spans" VALUES('e2c26a3b9e0e62a3b932','GPU-node',3600000,1790359200000,15000,9000,6000,3000,1500);
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
INSERT INTO "graders" VALUES('0e989c69a264232794f9','one','f045bb28bd9193e13ce6afda931f962cac37a93e8037b0bed117b719fa0405fb','active',1,'[{"uuid":"GPU-one-0","name":"H100"}]',1790000000000,1790000000000);
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
INSERT INTO "holder_spans" VALUES('c9637495cbd946f152dd','GPU-node',60000,1790359980000,15000,7500,1500);
INSERT INTO "holder_spans" VALUES('c9637495cbd946f152dd','GPU-node',3600000,1790359200000,15000,7500,1500);
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
INSERT INTO "jobs" VALUES('8a37f06698138e4dc816','a15aeea9107a81071445','cee5b3ebbac39bc0a079','person:7b7f289a423eb8671fd1',1,'cpu','done',1,0,1790000000001,1790000000001,1,'0e989c69a264232794f9','',1790000000001,NULL,0,0,1790000001001,'');
INSERT INTO "jobs" VALUES('f3fcdf1cbf7853636539','e532ffe0da1416e83007','cee5b3ebbac39bc0a079','person:69b5b1daab92fdfb33d5',1,'cpu','done',1,0,1790000001002,1790000001002,1,'0e989c69a264232794f9','',1790000001002,NULL,0,0,1790000002002,'');
INSERT INTO "jobs" VALUES('2446ae1ad58afc4375ad','e532ffe0da1416e83007','cee5b3ebbac39bc0a079','person:69b5b1daab92fdfb33d5',1,'gpu','done',1,0,1790000002002,1790000002002,1,'0e989c69a264232794f9','GPU-one-0',1790000002002,NULL,0,0,1790000003002,'');
INSERT INTO "jobs" VALUES('1405a9ca79c1b7fe6f04','e532ffe0da1416e83007','cee5b3ebbac39bc0a079','person:69b5b1daab92fdfb33d5',2,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
INSERT INTO "jobs" VALUES('e2e5c9e23e7aa82c6552','e532ffe0da1416e83007','cee5b3ebbac39bc0a079','person:69b5b1daab92fdfb33d5',3,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
INSERT INTO "jobs" VALUES('d603d8dc8930768805df','e532ffe0da1416e83007','cee5b3ebbac39bc0a079','person:69b5b1daab92fdfb33d5',4,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
INSERT INTO "jobs" VALUES('2de27a2c3a4b5dbcea33','e532ffe0da1416e83007','cee5b3ebbac39bc0a079','person:69b5b1daab92fdfb33d5',5,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
INSERT INTO "jobs" VALUES('8f374648e9f39b67aec5','e532ffe0da1416e83007','cee5b3ebbac39bc0a079','person:69b5b1daab92fdfb33d5',6,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
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
INSERT INTO "lti_line_items" VALUES('cee5b3ebbac39bc0a079','https://lms.example.org/items/1');
CREATE TABLE lti_people (
    issuer TEXT NOT NULL,
    -- the platform's own id of a person
    subject TEXT NOT NULL,
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (issuer, subject),
    UNIQUE (issuer, person)
);
INSERT INTO "lti_people" VALUES('https://lms.example.org','t1','d4995ee024474611c50e');
INSERT INTO "lti_people" VALUES('https://lms.example.org','s1','7b7f289a423eb8671fd1');
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
INSERT INTO "lti_scores" VALUES('92a08b1941dece46ec7f','cee5b3ebbac39bc0a079','7b7f289a423eb8671fd1',1,7.5,10.0,1790000001001,'waiting',0,1790000001001,NULL,'');
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
INSERT INTO "memberships" VALUES('gpu101','d4995ee024474611c50e','c925615809a374032263','instructor',NULL);
INSERT INTO "memberships" VALUES('gpu101','7b7f289a423eb8671fd1','e2102a238e25874b7aca','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','fdbb6a21d8446e856bb8','e2102a238e25874b7aca','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','69b5b1daab92fdfb33d5','4d2bbd50a936bdaece76','learner',NULL);
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
INSERT INTO "node_gpus" VALUES('e2c26a3b9e0e62a3b932','GPU-node',0,'H100','ok','',1790360000001,15000,9000,6000,3000,1073741824,85899345920,NULL,'[{"holder":"c9637495cbd946f152dd","processes":1,"memory_bytes":1073741824,"held_ms":15000,"busy_ms":7500,"idle_since_ms":null}]');
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
INSERT INTO "node_holders" VALUES('c9637495cbd946f152dd','e2c26a3b9e0e62a3b932','5e98415084ca59edf1bbb03e0a92e3ab76204aca369c7e4f281b9967de1948ae',1007,'7b7f289a423eb8671fd1','fdbb6a21d8446e856bb8','systemd','jupyter-ada.service',1790360000001);
CREATE TABLE node_streams (
    node TEXT NOT NULL REFERENCES nodes (id),
    stream TEXT NOT NULL,
    number BIGINT NOT NULL,
    seen_ms BIGINT NOT NULL,
    PRIMARY KEY (node, stream)
);
INSERT INTO "node_streams" VALUES('e2c26a3b9e0e62a3b932','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',1,1790360000001);
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
INSERT INTO "nodes" VALUES('e2c26a3b9e0e62a3b932','n7','04a4caa48d7e917647b1a17501c2a8b98ee82efd8665ee6bf740496faa397b27','active',1790360000001,1790360000001,0);
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
INSERT INTO "overrides" VALUES('d9ca7bca3125d46543ac',1,'cee5b3ebbac39bc0a079','7b7f289a423eb8671fd1',7.5,'half of it is right','d4995ee024474611c50e',1790000001001);
CREATE TABLE people (
    id TEXT NOT NULL PRIMARY KEY,
    username TEXT NOT NULL UNIQUE,
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    email TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    erased_ms BIGINT
);
INSERT INTO "people" VALUES('d4995ee024474611c50e','grace','','','',1790000000000,NULL);
INSERT INTO "people" VALUES('7b7f289a423eb8671fd1','ada','Ada','Lovelace','',1790000000000,NULL);
INSERT INTO "people" VALUES('fdbb6a21d8446e856bb8','bob','Bob','Noyce','',1790000000000,NULL);
INSERT INTO "people" VALUES('69b5b1daab92fdfb33d5','cyd','Cyd','Charisse','',1790000000000,NULL);
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
INSERT INTO "publications" VALUES('cee5b3ebbac39bc0a079','gpu101','vector-add','Vector add','cuda','abababababababababababababababababababababababababababababababab',1,0,'{"thresholds":[{"measure":"right","least":1.0,"points":10.0}]}',100.0,NULL,'// reference',1790000000000,NULL);
CREATE TABLE refused_results (
    id TEXT NOT NULL PRIMARY KEY,
    job TEXT NOT NULL,
    fence INTEGER NOT NULL,
    grader TEXT NOT NULL,
    refused_ms BIGINT NOT NULL,
    reason TEXT NOT NULL
);
INSERT INTO "refused_results" VALUES('59a70f1b913e6116db62','8a37f06698138e4dc816',99,'0e989c69a264232794f9',1790000001001,'its lease was lost');
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
INSERT INTO "results" VALUES('8a37f06698138e4dc816','a15aeea9107a81071445',1,'cpu',1,'0e989c69a264232794f9',1790000001001,1000,'abababababababababababababababababababababababababababababababab','{"verdict":"wrong","status":"failed","message":"so it went","right":1,"of":4,"error_kind":"race","is_speed_graded":false,"of_baseline":null,"of_limit":null,"not_graded":[],"flags":[]}','{}',0,NULL);
INSERT INTO "results" VALUES('f3fcdf1cbf7853636539','e532ffe0da1416e83007',1,'cpu',1,'0e989c69a264232794f9',1790000002002,1000,'abababababababababababababababababababababababababababababababab','{"verdict":"right","status":"passed","message":"so it went","right":4,"of":4,"error_kind":"","is_speed_graded":false,"of_baseline":null,"of_limit":null,"not_graded":[],"flags":[]}','{}',0,NULL);
INSERT INTO "results" VALUES('2446ae1ad58afc4375ad','e532ffe0da1416e83007',1,'gpu',1,'0e989c69a264232794f9',1790000003002,1000,'abababababababababababababababababababababababababababababababab','{"verdict":"right","status":"passed","message":"so it went","right":4,"of":4,"error_kind":"","is_speed_graded":true,"of_baseline":{"low":1.4,"middle":1.5,"high":1.6},"of_limit":{"low":1.4,"middle":1.5,"high":1.6},"not_graded":[],"flags":[]}','{}',0,NULL);
CREATE TABLE sections (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "sections" VALUES('c925615809a374032263','gpu101','main');
INSERT INTO "sections" VALUES('e2102a238e25874b7aca','gpu101','monday');
INSERT INTO "sections" VALUES('4d2bbd50a936bdaece76','gpu101','tuesday');
CREATE TABLE settings (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO "settings" VALUES('receipt_key','d0e8b0d1edccaf976545e6f012de127a9912fcf65eee9c4265869a7e61469ff4');
INSERT INTO "settings" VALUES('nodes_pruned_ms','1790360000001');
CREATE TABLE submission_members (
    submission TEXT NOT NULL REFERENCES submissions (id),
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (submission, person)
);
INSERT INTO "submission_members" VALUES('a15aeea9107a81071445','7b7f289a423eb8671fd1');
INSERT INTO "submission_members" VALUES('e532ffe0da1416e83007','69b5b1daab92fdfb33d5');
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
INSERT INTO "submissions" VALUES('a15aeea9107a81071445','cee5b3ebbac39bc0a079','7b7f289a423eb8671fd1','person:7b7f289a423eb8671fd1',1,'59fe7887da53081ef45c',1790000000001,'3fcdf782ecc5a16be020e00cf1b33d17364a44d3ea04ef069b32cd3813f27eba',8,'// mine
',1050944535166885266,NULL);
INSERT INTO "submissions" VALUES('e532ffe0da1416e83007','cee5b3ebbac39bc0a079','69b5b1daab92fdfb33d5','person:69b5b1daab92fdfb33d5',1,'c89c33e70aabb6b3a965',1790000001002,'640d54b47240a8d7c81a6f6ba8b0590e1ab8b2e3b9f61efba44e4da302d495c8',8,'// fast
',4026765775842677531,NULL);
CREATE TABLE team_members (
    course TEXT NOT NULL REFERENCES courses (id),
    person TEXT NOT NULL REFERENCES people (id),
    team TEXT NOT NULL REFERENCES teams (id),
    PRIMARY KEY (course, person)
);
INSERT INTO "team_members" VALUES('gpu101','fdbb6a21d8446e856bb8','247f92ebca749d916a43');
INSERT INTO "team_members" VALUES('gpu101','69b5b1daab92fdfb33d5','247f92ebca749d916a43');
CREATE TABLE teams (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "teams" VALUES('247f92ebca749d916a43','gpu101','red');
CREATE TABLE turns (
    party TEXT NOT NULL,
    stage TEXT NOT NULL,
    served_ms BIGINT NOT NULL,
    PRIMARY KEY (party, stage)
);
INSERT INTO "turns" VALUES('person:7b7f289a423eb8671fd1','cpu',1790000000001);
INSERT INTO "turns" VALUES('person:69b5b1daab92fdfb33d5','cpu',1790000001002);
INSERT INTO "turns" VALUES('person:69b5b1daab92fdfb33d5','gpu',1790000002002);
CREATE TABLE windows (
    publication TEXT NOT NULL REFERENCES publications (id),
    -- '': all sections that have no window of their own
    section TEXT NOT NULL,
    opens_ms BIGINT NOT NULL,
    due_ms BIGINT NOT NULL,
    closes_ms BIGINT NOT NULL,
    PRIMARY KEY (publication, section)
);
INSERT INTO "windows" VALUES('cee5b3ebbac39bc0a079','',1790000000000,1790360000000,1790720000000);
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
CREATE INDEX ix_node_holders_node ON node_holders (node);
CREATE INDEX ix_gpu_spans_time ON gpu_spans (width_ms, from_ms);
CREATE INDEX ix_holder_spans_time ON holder_spans (width_ms, from_ms);
CREATE TRIGGER audit_kept_update BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER audit_kept_delete BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
COMMIT;
PRAGMA application_id = 2002937954;
PRAGMA user_version = 5;
