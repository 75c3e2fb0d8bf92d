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
INSERT INTO "appeals" VALUES('88043824ce09649b58a2','9139099347949129dc39','26e275313f1827346d6b','The race is not mine.',1790000001001,'','','',NULL);
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
INSERT INTO "audit" VALUES(1,1790000000000,'hub','course created','gpu101','gpu101','df4c6c617f85ffdcab2b191c1b3c68fb32fdc5d39cc05b12895cf7d00ba3bf80','cd7812e358d49b695e47203ce9d05a2591f9aa61f6df0bf0baffd62c64225d09');
INSERT INTO "audit" VALUES(2,1790000000000,'hub','staff added','58665a53bb84582a7b58','gpu101','60316bd1110141291ed4f04d1eba80288daccb8992205e50bd16f2d94eaa8680','c6e97bdd4c6f36d5c5670e64d1dc2af6678ffd7e91660cba617e5208544c40f4');
INSERT INTO "audit" VALUES(3,1790000000000,'58665a53bb84582a7b58','roster imported','gpu101','gpu101','6324d73ca964ff84a5a434cc5981d6b4ad4392cccc0054d92ab87bd3f49337fb','735eafa52bad6d74312e3635509720aae6833ab57b4838a2824d42157eeac9c5');
INSERT INTO "audit" VALUES(4,1790000000000,'hub','lab published','d5b47891f202ec392baa','gpu101','ca72bc5152590f3566f8172db579a1bdc393e9b4e2d69022c825b641dabc1f2c','2b9a809a500914e56d1a50d4f7ee3664660f3e0d28498ad73e15c5b5c1170743');
INSERT INTO "audit" VALUES(5,1790000000000,'hub','grader registered','dd0cebd4691584ef0ddc','','23524520e91fd97cfa01303e5990a41658171c3cb7c77cbe575345bb9009d9f6','c8802b06a18fb34fbc074df32aaff78bb66a4291b68ce097c595274da78d1859');
INSERT INTO "audit" VALUES(6,1790000001001,'58665a53bb84582a7b58','extension granted','a73cfd675fe1d3c7a791','gpu101','2b322c316ae373cb1a235c7d8d6e6e1aa0a1610bd96ad4c5e7b11428372937e8','3a8263379c6fa70357d7d30d226595c86cc8dba4aa9bfcac4bb75e64d8a9b5cb');
INSERT INTO "audit" VALUES(7,1790000001001,'58665a53bb84582a7b58','points set','26e275313f1827346d6b','gpu101','63da0f8e11c59280d04be017855abf883c944da0001deede794fb38d51976601','c8d5d3dbfd19bc1c09ab8234712602265d2f66024d9459b69ccccf4b67167a8d');
INSERT INTO "audit" VALUES(8,1790000001001,'26e275313f1827346d6b','appeal made','88043824ce09649b58a2','gpu101','7974e6dcdfbf4bad62f7bae5f991f498c74cec2c9b3529459416cfe7872b2749','d26f11d86aeffc2bc72c918967900d36b0bb5677671e08a6d017ae859c315d88');
INSERT INTO "audit" VALUES(9,1790000001001,'58665a53bb84582a7b58','GPUs reserved','67f1b9c4a7d09d9708fc','gpu101','72d7350022dcd44d1c49376c8b1d1519a6e8862d6b5a89c8a107fea41247a753','97464f2e9a0765675aa28882e1ccbdaa80789df027cdfd036ba36fd794007654');
INSERT INTO "audit" VALUES(10,1790000001001,'platform','platform bound','gpu101','gpu101','1f406cd4bc19cd322a5e86c93e87e47f6d249219ddf4d53f2ae11f59d4d50884','0d930921735e16bc8dd9bde162180631eb73e1ffae8cfaf2ede6fd67d07bd07f');
INSERT INTO "audit" VALUES(11,1790000001001,'58665a53bb84582a7b58','competition opened','d5b47891f202ec392baa','gpu101','34552b3e1545f77ec48a5cf0c016531aa89e7bf5fde222b2e5bc1f5dad7ece68','949446b492028ffa86a63c2e4938d86d53ab82195bc2a213bb8cd3f03dc46c6d');
INSERT INTO "audit" VALUES(12,1790360000001,'58665a53bb84582a7b58','final started','d5b47891f202ec392baa','gpu101','f3bd57213ef7908a40bb84d6935b3d336a883c21ed99e8d98b9fa09b7bbefc20','df55e1e38c6e92d1e25eeccbad3e8db95ec71afe24eaaf12250251d61611ab60');
INSERT INTO "audit" VALUES(13,1790360000001,'58665a53bb84582a7b58','node registered','8d1b62a555a88ad01d2c','','07466ccbac854fad6b3d64a62082f8aadd05c1f58fab8f3d090d8e6fd278076b','ff7b3f964156d117aa0bb504fe4da51929df881bf05ca895d0ae9f360efb051b');
CREATE TABLE audit_details (
    number BIGINT NOT NULL PRIMARY KEY REFERENCES audit (number),
    salt TEXT NOT NULL,
    detail TEXT NOT NULL
);
INSERT INTO "audit_details" VALUES(1,'41bc4ed2ea261318','{"appeal_window_h":168,"id":"gpu101","late_budget_h":0,"timed_runs_per_hour":6,"title":"GPU programming"}');
INSERT INTO "audit_details" VALUES(2,'0954f86f29bf4133','{"course":"gpu101","role":"instructor","section":"658c5b1189d11b09408b"}');
INSERT INTO "audit_details" VALUES(3,'ed0fd437256b64a1','{"added":3,"changed":0,"hidden":0,"returned":0}');
INSERT INTO "audit_details" VALUES(4,'0ba034176327505b','{"is_team_work":0,"is_timed":1,"lab":"vector-add","lab_digest":"","language":"cuda","late_percent_per_day":100.0,"most_attempts":null,"scheme":"{\"thresholds\":[{\"measure\":\"right\",\"least\":1.0,\"points\":10.0}]}","title":"Vector add","windows":{"":{"closes_ms":1790720000000,"due_ms":1790360000000,"opens_ms":1790000000000}},"withdrawn_ms":null}');
INSERT INTO "audit_details" VALUES(5,'29ed591a5540ce2e','{"name":"one"}');
INSERT INTO "audit_details" VALUES(6,'38e2dd58d916ef74','{"closes_ms":1790000001003,"due_ms":1790000001002,"lab":"vector-add","publication":"d5b47891f202ec392baa","reason":"was ill"}');
INSERT INTO "audit_details" VALUES(7,'1239e95aec40073a','{"points":7.5,"publication":"d5b47891f202ec392baa","reason":"half of it is right"}');
INSERT INTO "audit_details" VALUES(8,'5cd8634c8926610a','{"job":"9139099347949129dc39"}');
INSERT INTO "audit_details" VALUES(9,'53bd5f95c389164e','{"ends_ms":1790007201001,"gpus":1,"starts_ms":1790003601001}');
INSERT INTO "audit_details" VALUES(10,'d1a673ca5cd9ac29','{"context":"context-9"}');
INSERT INTO "audit_details" VALUES(11,'158e0a38e36ea775','{"freezes_ms":1790273600000}');
INSERT INTO "audit_details" VALUES(12,'951614b670c54857','{"device":"GPU-one-0","grader":"dd0cebd4691584ef0ddc","id":"51f1599a1d4ccc4d27c2","number":1,"rounds":5,"seed":179464501103637,"started_ms":1790360000001}');
INSERT INTO "audit_details" VALUES(13,'d2717f7692cc040f','{"name":"n7"}');
CREATE TABLE competitions (
    publication TEXT NOT NULL PRIMARY KEY REFERENCES publications (id),
    opened_ms BIGINT NOT NULL,
    -- what came later is not on the learners' board
    freezes_ms BIGINT NOT NULL,
    -- when its board became final, for everybody
    ended_ms BIGINT
);
INSERT INTO "competitions" VALUES('d5b47891f202ec392baa',1790000001001,1790273600000,NULL);
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
INSERT INTO "competitors" VALUES('d5b47891f202ec392baa','a82b74bd9a016b305c55','Warp Nine','warpnine',1790000001001);
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
INSERT INTO "extensions" VALUES('d5b47891f202ec392baa','a73cfd675fe1d3c7a791',1790000001002,1790000001003,'was ill','58665a53bb84582a7b58',1790000001001);
CREATE TABLE final_jobs (
    job TEXT NOT NULL PRIMARY KEY REFERENCES jobs (id),
    final TEXT NOT NULL REFERENCES finals (id),
    -- 1, 2, ...
    round INTEGER NOT NULL,
    -- 0, 1, ...: they run in this order, one after another
    place INTEGER NOT NULL,
    UNIQUE (final, place)
);
INSERT INTO "final_jobs" VALUES('a0c36e4d4365bf4bea3c','51f1599a1d4ccc4d27c2',1,0);
INSERT INTO "final_jobs" VALUES('0fec7e8d64b0fa22ecdf','51f1599a1d4ccc4d27c2',2,1);
INSERT INTO "final_jobs" VALUES('787e05f1cb53b5cff81a','51f1599a1d4ccc4d27c2',3,2);
INSERT INTO "final_jobs" VALUES('bd06809d8bfe2bee0e34','51f1599a1d4ccc4d27c2',4,3);
INSERT INTO "final_jobs" VALUES('4174f351836a308d9a28','51f1599a1d4ccc4d27c2',5,4);
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
INSERT INTO "finals" VALUES('51f1599a1d4ccc4d27c2','d5b47891f202ec392baa',1,'dd0cebd4691584ef0ddc','GPU-one-0',5,179464501103637,1790360000001);
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
INSERT INTO "gpu_leases" VALUES('ad1f52c054ca14d22e33','gpu101','26e275313f1827346d6b','','held',20,1790000001001,'GPU-leased',1790000001001,1790001201001,1790000001001,NULL,1000,NULL,'');
CREATE TABLE gpu_sessions (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    title TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    starts_ms BIGINT NOT NULL,
    ends_ms BIGINT NOT NULL,
    made_by TEXT NOT NULL REFERENCES people (id)
);
INSERT INTO "gpu_sessions" VALUES('67f1b9c4a7d09d9708fc','gpu101','exercise',1,1790003601001,1790007201001,'58665a53bb84582a7b58');
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
INSERT INTO "gpu_spans" VALUES('8d1b62a555a88ad01d2c','GPU-node',60000,1790359980000,15000,9000,6000,3000,1500);
INSERT INTO "gpu_spans" VALUES('8d1b62a555a88ad01d2c','GPU-node',3600000,1790359200000,15000,9000,6000,3000,1500);
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
INSERT INTO "graders" VALUES('dd0cebd4691584ef0ddc','one','31728692d4ac66bacd3c58f8adfdc5855b47d7c4ee9444751d979283614aea58','active',1,'[{"uuid":"GPU-one-0","name":"H100"}]',1790000000000,1790000000000);
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
INSERT INTO "holder_spans" VALUES('ca5e720c9f485ab7372f','GPU-node',60000,1790359980000,15000,7500,1500);
INSERT INTO "holder_spans" VALUES('ca5e720c9f485ab7372f','GPU-node',3600000,1790359200000,15000,7500,1500);
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
INSERT INTO "jobs" VALUES('9139099347949129dc39','c84703f294a8285a0415','d5b47891f202ec392baa','person:26e275313f1827346d6b',1,'cpu','done',1,0,1790000000001,1790000000001,1,'dd0cebd4691584ef0ddc','',1790000000001,NULL,0,0,1790000001001,'');
INSERT INTO "jobs" VALUES('400ef499e721533e65c8','109fc91a775f6f2e3797','d5b47891f202ec392baa','person:a82b74bd9a016b305c55',1,'cpu','done',1,0,1790000001002,1790000001002,1,'dd0cebd4691584ef0ddc','',1790000001002,NULL,0,0,1790000002002,'');
INSERT INTO "jobs" VALUES('1ca7c0e97ac8a0e11e7c','109fc91a775f6f2e3797','d5b47891f202ec392baa','person:a82b74bd9a016b305c55',1,'gpu','done',1,0,1790000002002,1790000002002,1,'dd0cebd4691584ef0ddc','GPU-one-0',1790000002002,NULL,0,0,1790000003002,'');
INSERT INTO "jobs" VALUES('a0c36e4d4365bf4bea3c','109fc91a775f6f2e3797','d5b47891f202ec392baa','person:a82b74bd9a016b305c55',2,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
INSERT INTO "jobs" VALUES('0fec7e8d64b0fa22ecdf','109fc91a775f6f2e3797','d5b47891f202ec392baa','person:a82b74bd9a016b305c55',3,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
INSERT INTO "jobs" VALUES('787e05f1cb53b5cff81a','109fc91a775f6f2e3797','d5b47891f202ec392baa','person:a82b74bd9a016b305c55',4,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
INSERT INTO "jobs" VALUES('bd06809d8bfe2bee0e34','109fc91a775f6f2e3797','d5b47891f202ec392baa','person:a82b74bd9a016b305c55',5,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
INSERT INTO "jobs" VALUES('4174f351836a308d9a28','109fc91a775f6f2e3797','d5b47891f202ec392baa','person:a82b74bd9a016b305c55',6,'gpu','queued',2,1,1790360000001,1790360000001,0,NULL,'',NULL,NULL,0,0,NULL,'');
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
INSERT INTO "lti_line_items" VALUES('d5b47891f202ec392baa','https://lms.example.org/items/1');
CREATE TABLE lti_people (
    issuer TEXT NOT NULL,
    -- the platform's own id of a person
    subject TEXT NOT NULL,
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (issuer, subject),
    UNIQUE (issuer, person)
);
INSERT INTO "lti_people" VALUES('https://lms.example.org','t1','58665a53bb84582a7b58');
INSERT INTO "lti_people" VALUES('https://lms.example.org','s1','26e275313f1827346d6b');
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
INSERT INTO "lti_scores" VALUES('12c6ec49594feeb6952e','d5b47891f202ec392baa','26e275313f1827346d6b',1,7.5,10.0,1790000001001,'waiting',0,1790000001001,NULL,'');
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
INSERT INTO "memberships" VALUES('gpu101','58665a53bb84582a7b58','658c5b1189d11b09408b','instructor',NULL);
INSERT INTO "memberships" VALUES('gpu101','26e275313f1827346d6b','2a7f48fba05640b4e989','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','a73cfd675fe1d3c7a791','2a7f48fba05640b4e989','learner',NULL);
INSERT INTO "memberships" VALUES('gpu101','a82b74bd9a016b305c55','4461c90b80f040705833','learner',NULL);
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
INSERT INTO "node_gpus" VALUES('8d1b62a555a88ad01d2c','GPU-node',0,'H100','ok','',1790360000001,15000,9000,6000,3000,1073741824,85899345920,NULL,'[{"holder":"ca5e720c9f485ab7372f","processes":1,"memory_bytes":1073741824,"held_ms":15000,"busy_ms":7500,"idle_since_ms":null}]');
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
INSERT INTO "node_holders" VALUES('ca5e720c9f485ab7372f','8d1b62a555a88ad01d2c','578791c8c60d0376f6f9dbc00acd7305109214ccaa5347d134c3f080c2a6e021',1007,'26e275313f1827346d6b','a73cfd675fe1d3c7a791','systemd','jupyter-ada.service',1790360000001);
CREATE TABLE node_streams (
    node TEXT NOT NULL REFERENCES nodes (id),
    stream TEXT NOT NULL,
    number BIGINT NOT NULL,
    seen_ms BIGINT NOT NULL,
    PRIMARY KEY (node, stream)
);
INSERT INTO "node_streams" VALUES('8d1b62a555a88ad01d2c','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',1,1790360000001);
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
INSERT INTO "nodes" VALUES('8d1b62a555a88ad01d2c','n7','bf0553f08e64eb7b4ba7570696fe8c502a2321d7deaac3b6e299143bcf115a1e','active',1790360000001,1790360000001,0);
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
INSERT INTO "overrides" VALUES('3ce2bb85e0fd09711bee',1,'d5b47891f202ec392baa','26e275313f1827346d6b',7.5,'half of it is right','58665a53bb84582a7b58',1790000001001);
CREATE TABLE people (
    id TEXT NOT NULL PRIMARY KEY,
    username TEXT NOT NULL UNIQUE,
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    email TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    erased_ms BIGINT
);
INSERT INTO "people" VALUES('58665a53bb84582a7b58','grace','','','',1790000000000,NULL);
INSERT INTO "people" VALUES('26e275313f1827346d6b','ada','Ada','Lovelace','',1790000000000,NULL);
INSERT INTO "people" VALUES('a73cfd675fe1d3c7a791','bob','Bob','Noyce','',1790000000000,NULL);
INSERT INTO "people" VALUES('a82b74bd9a016b305c55','cyd','Cyd','Charisse','',1790000000000,NULL);
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
INSERT INTO "publications" VALUES('d5b47891f202ec392baa','gpu101','vector-add','Vector add','cuda','abababababababababababababababababababababababababababababababab',1,0,'{"thresholds":[{"measure":"right","least":1.0,"points":10.0}]}',100.0,NULL,'// reference',1790000000000,NULL);
CREATE TABLE refused_results (
    id TEXT NOT NULL PRIMARY KEY,
    job TEXT NOT NULL,
    fence INTEGER NOT NULL,
    grader TEXT NOT NULL,
    refused_ms BIGINT NOT NULL,
    reason TEXT NOT NULL
);
INSERT INTO "refused_results" VALUES('ecf44493a77257483e40','9139099347949129dc39',99,'dd0cebd4691584ef0ddc',1790000001001,'its lease was lost');
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
INSERT INTO "results" VALUES('9139099347949129dc39','c84703f294a8285a0415',1,'cpu',1,'dd0cebd4691584ef0ddc',1790000001001,1000,'abababababababababababababababababababababababababababababababab','{"verdict":"wrong","status":"failed","message":"so it went","right":1,"of":4,"error_kind":"race","is_speed_graded":false,"of_baseline":null,"of_limit":null,"not_graded":[],"flags":[]}','{}',0,NULL);
INSERT INTO "results" VALUES('400ef499e721533e65c8','109fc91a775f6f2e3797',1,'cpu',1,'dd0cebd4691584ef0ddc',1790000002002,1000,'abababababababababababababababababababababababababababababababab','{"verdict":"right","status":"passed","message":"so it went","right":4,"of":4,"error_kind":"","is_speed_graded":false,"of_baseline":null,"of_limit":null,"not_graded":[],"flags":[]}','{}',0,NULL);
INSERT INTO "results" VALUES('1ca7c0e97ac8a0e11e7c','109fc91a775f6f2e3797',1,'gpu',1,'dd0cebd4691584ef0ddc',1790000003002,1000,'abababababababababababababababababababababababababababababababab','{"verdict":"right","status":"passed","message":"so it went","right":4,"of":4,"error_kind":"","is_speed_graded":true,"of_baseline":{"low":1.4,"middle":1.5,"high":1.6},"of_limit":{"low":1.4,"middle":1.5,"high":1.6},"not_graded":[],"flags":[]}','{}',0,NULL);
CREATE TABLE sections (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "sections" VALUES('658c5b1189d11b09408b','gpu101','main');
INSERT INTO "sections" VALUES('2a7f48fba05640b4e989','gpu101','monday');
INSERT INTO "sections" VALUES('4461c90b80f040705833','gpu101','tuesday');
CREATE TABLE settings (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO "settings" VALUES('receipt_key','77d6c261c953e4173183a56481314c42ebeed3323a51a9aaf435c9130c21111f');
INSERT INTO "settings" VALUES('nodes_pruned_ms','1790360000001');
CREATE TABLE submission_members (
    submission TEXT NOT NULL REFERENCES submissions (id),
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (submission, person)
);
INSERT INTO "submission_members" VALUES('c84703f294a8285a0415','26e275313f1827346d6b');
INSERT INTO "submission_members" VALUES('109fc91a775f6f2e3797','a82b74bd9a016b305c55');
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
INSERT INTO "submissions" VALUES('c84703f294a8285a0415','d5b47891f202ec392baa','26e275313f1827346d6b','person:26e275313f1827346d6b',1,'b6ead226fd4bfc7ced21',1790000000001,'3fcdf782ecc5a16be020e00cf1b33d17364a44d3ea04ef069b32cd3813f27eba',8,'// mine
',2517495926169406545,NULL);
INSERT INTO "submissions" VALUES('109fc91a775f6f2e3797','d5b47891f202ec392baa','a82b74bd9a016b305c55','person:a82b74bd9a016b305c55',1,'ad50e107e5a11b8b8cd6',1790000001002,'640d54b47240a8d7c81a6f6ba8b0590e1ab8b2e3b9f61efba44e4da302d495c8',8,'// fast
',3142264470122172293,NULL);
CREATE TABLE team_members (
    course TEXT NOT NULL REFERENCES courses (id),
    person TEXT NOT NULL REFERENCES people (id),
    team TEXT NOT NULL REFERENCES teams (id),
    PRIMARY KEY (course, person)
);
INSERT INTO "team_members" VALUES('gpu101','a73cfd675fe1d3c7a791','b1555420c4e3fd00e3c7');
INSERT INTO "team_members" VALUES('gpu101','a82b74bd9a016b305c55','b1555420c4e3fd00e3c7');
CREATE TABLE teams (
    id TEXT NOT NULL PRIMARY KEY,
    course TEXT NOT NULL REFERENCES courses (id),
    name TEXT NOT NULL,
    UNIQUE (course, name)
);
INSERT INTO "teams" VALUES('b1555420c4e3fd00e3c7','gpu101','red');
CREATE TABLE turns (
    party TEXT NOT NULL,
    stage TEXT NOT NULL,
    served_ms BIGINT NOT NULL,
    PRIMARY KEY (party, stage)
);
INSERT INTO "turns" VALUES('person:26e275313f1827346d6b','cpu',1790000000001);
INSERT INTO "turns" VALUES('person:a82b74bd9a016b305c55','cpu',1790000001002);
INSERT INTO "turns" VALUES('person:a82b74bd9a016b305c55','gpu',1790000002002);
CREATE TABLE windows (
    publication TEXT NOT NULL REFERENCES publications (id),
    -- '': all sections that have no window of their own
    section TEXT NOT NULL,
    opens_ms BIGINT NOT NULL,
    due_ms BIGINT NOT NULL,
    closes_ms BIGINT NOT NULL,
    PRIMARY KEY (publication, section)
);
INSERT INTO "windows" VALUES('d5b47891f202ec392baa','',1790000000000,1790360000000,1790720000000);
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
