-- labs.db as warpbook 0.1.0 wrote it
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE hints (
	lab TEXT NOT NULL, 
	opened INTEGER NOT NULL, 
	PRIMARY KEY (lab)
);
INSERT INTO "hints" VALUES('vector-add',1);
CREATE TABLE results (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	submission INTEGER NOT NULL, 
	graded_ms BIGINT NOT NULL, 
	passed INTEGER NOT NULL, 
	"right" INTEGER NOT NULL, 
	"of" INTEGER NOT NULL, 
	result TEXT NOT NULL, 
	FOREIGN KEY(submission) REFERENCES submissions (id)
);
INSERT INTO "results" VALUES(1,1,1795420433689,0,1,3,'{"lab":"vector-add","status":"failed","message":"no","cases":[],"right":1,"of":3,"log":"","isolation":"","not_graded":[],"resources":[],"device":null}');
CREATE TABLE submissions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	lab TEXT NOT NULL, 
	source TEXT NOT NULL, 
	seed BIGINT NOT NULL, 
	submitted_ms BIGINT NOT NULL
);
INSERT INTO "submissions" VALUES(1,'vector-add','// mine
',4611686018427387903,1795420433685);
CREATE INDEX ix_submissions_lab ON submissions (lab);
CREATE INDEX ix_results_submission ON results (submission);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('submissions',1);
INSERT INTO "sqlite_sequence" VALUES('results',1);
COMMIT;
