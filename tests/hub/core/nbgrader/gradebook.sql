-- Of nbgrader 0.9.6: written by its own commands for a course of five students, who were
-- graded by tests, by hand and with a task; without sources and comments, with short ids.
BEGIN TRANSACTION;
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL);
INSERT INTO "alembic_version" VALUES('e43177bfe90b');
CREATE TABLE assignment (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	duedate DATETIME, 
	course_id VARCHAR(128) NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name), 
	FOREIGN KEY(course_id) REFERENCES course (id)
);
INSERT INTO "assignment" VALUES('id0','ps1','2026-09-10 12:00:00.000000','gpu101');
INSERT INTO "assignment" VALUES('id1','Essay 2','2026-09-20 12:00:00.000000','gpu101');
INSERT INTO "assignment" VALUES('id2','ps3',NULL,'gpu101');
CREATE TABLE base_cell (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	notebook_id VARCHAR(32) NOT NULL, 
	type VARCHAR(50), 
	PRIMARY KEY (id), 
	UNIQUE (name, notebook_id, type), 
	FOREIGN KEY(notebook_id) REFERENCES notebook (id)
);
INSERT INTO "base_cell" VALUES('id3','test_small','id4','GradeCell');
INSERT INTO "base_cell" VALUES('id5','test_negative','id4','GradeCell');
INSERT INTO "base_cell" VALUES('id6','double','id4','SolutionCell');
INSERT INTO "base_cell" VALUES('id7','essay','id8','GradeCell');
INSERT INTO "base_cell" VALUES('id9','essay','id8','SolutionCell');
INSERT INTO "base_cell" VALUES('id10','test_3','id11','GradeCell');
INSERT INTO "base_cell" VALUES('id12','double3','id11','SolutionCell');
INSERT INTO "base_cell" VALUES('id13','report','id11','TaskCell');
CREATE TABLE comment (
	id VARCHAR(32) NOT NULL, 
	notebook_id VARCHAR(32), 
	cell_id VARCHAR(32), 
	auto_comment TEXT, 
	manual_comment TEXT, 
	PRIMARY KEY (id), 
	UNIQUE (cell_id, notebook_id), 
	FOREIGN KEY(notebook_id) REFERENCES submitted_notebook (id), 
	FOREIGN KEY(cell_id) REFERENCES base_cell (id)
);
CREATE TABLE course (
	id VARCHAR(128) NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (id)
);
INSERT INTO "course" VALUES('gpu101');
INSERT INTO "course" VALUES('default_course');
CREATE TABLE grade (
	id VARCHAR(32) NOT NULL, 
	notebook_id VARCHAR(32), 
	cell_id VARCHAR(32), 
	auto_score FLOAT, 
	manual_score FLOAT, 
	extra_credit FLOAT, 
	needs_manual_grade BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (cell_id, notebook_id), 
	FOREIGN KEY(notebook_id) REFERENCES submitted_notebook (id), 
	FOREIGN KEY(cell_id) REFERENCES base_cell (id)
);
INSERT INTO "grade" VALUES('id14','id15','id3',2.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('id16','id15','id5',3.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('id17','id18','id3',2.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('id19','id18','id5',3.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('id20','id21','id3',2.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('id22','id21','id5',0.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('id23','id24','id3',2.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('id25','id24','id5',3.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('id26','id27','id7',NULL,9.0,2.0,0);
INSERT INTO "grade" VALUES('id28','id29','id7',NULL,6.5,NULL,0);
INSERT INTO "grade" VALUES('id30','id31','id7',NULL,7.0,NULL,0);
INSERT INTO "grade" VALUES('id32','id33','id10',4.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('id34','id33','id13',NULL,6.0,NULL,0);
INSERT INTO "grade" VALUES('id35','id36','id10',4.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('id37','id36','id13',NULL,2.5,NULL,0);
INSERT INTO "grade" VALUES('id38','id39','id10',4.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('id40','id39','id13',NULL,NULL,NULL,1);
CREATE TABLE grade_cells (
	id VARCHAR(32) NOT NULL, 
	max_score FLOAT NOT NULL, 
	cell_type VARCHAR(8) NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(id) REFERENCES base_cell (id)
);
INSERT INTO "grade_cells" VALUES('id3',2.0,'code');
INSERT INTO "grade_cells" VALUES('id5',3.0,'code');
INSERT INTO "grade_cells" VALUES('id7',10.0,'markdown');
INSERT INTO "grade_cells" VALUES('id10',4.0,'code');
CREATE TABLE notebook (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	assignment_id VARCHAR(32), 
	kernelspec VARCHAR(1024), 
	PRIMARY KEY (id), 
	UNIQUE (name, assignment_id), 
	FOREIGN KEY(assignment_id) REFERENCES assignment (id)
);
INSERT INTO "notebook" VALUES('id4','functions','id0','{"display_name": "Python 3", "language": "python", "name": "python3"}');
INSERT INTO "notebook" VALUES('id8','essay','id1','{"display_name": "Python 3", "language": "python", "name": "python3"}');
INSERT INTO "notebook" VALUES('id11','task','id2','{"display_name": "Python 3", "language": "python", "name": "python3"}');
CREATE TABLE solution_cells (
	id VARCHAR(32) NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(id) REFERENCES base_cell (id)
);
INSERT INTO "solution_cells" VALUES('id6');
INSERT INTO "solution_cells" VALUES('id9');
INSERT INTO "solution_cells" VALUES('id12');
CREATE TABLE source_cell (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	cell_type VARCHAR(8) NOT NULL, 
	locked BOOLEAN NOT NULL, 
	source TEXT, 
	checksum VARCHAR(128), 
	notebook_id VARCHAR(32), 
	PRIMARY KEY (id), 
	UNIQUE (name, notebook_id), 
	FOREIGN KEY(notebook_id) REFERENCES notebook (id)
);
CREATE TABLE student (
	id VARCHAR(128) NOT NULL, 
	first_name VARCHAR(128), 
	last_name VARCHAR(128), 
	email VARCHAR(128), 
	lms_user_id VARCHAR(128), 
	PRIMARY KEY (id)
);
INSERT INTO "student" VALUES('ada','Ada','Lovelace','ada@uni.example',NULL);
INSERT INTO "student" VALUES('ben','Ben','Böhm','ben@uni.example',NULL);
INSERT INTO "student" VALUES('cy','Cy','Yun','cy@uni.example',NULL);
INSERT INTO "student" VALUES('Dora','Dora','=HYPERLINK(1)','dora@uni.example',NULL);
INSERT INTO "student" VALUES('eve','Eve',NULL,'eve@uni.example',NULL);
CREATE TABLE submitted_assignment (
	id VARCHAR(32) NOT NULL, 
	assignment_id VARCHAR(32), 
	student_id VARCHAR(128), 
	timestamp DATETIME, 
	extension DATETIME, 
	PRIMARY KEY (id), 
	UNIQUE (assignment_id, student_id), 
	FOREIGN KEY(assignment_id) REFERENCES assignment (id), 
	FOREIGN KEY(student_id) REFERENCES student (id)
);
INSERT INTO "submitted_assignment" VALUES('id41','id0','ada','2026-09-09 10:00:00.000000',NULL);
INSERT INTO "submitted_assignment" VALUES('id42','id0','ben','2026-09-11 10:00:00.000000',NULL);
INSERT INTO "submitted_assignment" VALUES('id43','id0','cy','2026-09-10 11:00:00.000000',NULL);
INSERT INTO "submitted_assignment" VALUES('id44','id0','Dora','2026-09-11 09:00:00.000000','1970-01-03 00:00:00.000000');
INSERT INTO "submitted_assignment" VALUES('id45','id1','ada','2026-09-19 10:00:00.000000',NULL);
INSERT INTO "submitted_assignment" VALUES('id46','id1','ben','2026-09-19 10:00:00.000000',NULL);
INSERT INTO "submitted_assignment" VALUES('id47','id1','Dora','2026-09-19 10:00:00.000000',NULL);
INSERT INTO "submitted_assignment" VALUES('id48','id2','ada','2026-10-01 10:00:00.000000',NULL);
INSERT INTO "submitted_assignment" VALUES('id49','id2','cy','2026-10-01 10:00:00.000000',NULL);
INSERT INTO "submitted_assignment" VALUES('id50','id2','eve','2026-10-01 10:00:00.000000',NULL);
CREATE TABLE submitted_notebook (
	id VARCHAR(32) NOT NULL, 
	assignment_id VARCHAR(32), 
	notebook_id VARCHAR(32), 
	flagged BOOLEAN, 
	late_submission_penalty FLOAT, 
	PRIMARY KEY (id), 
	UNIQUE (notebook_id, assignment_id), 
	FOREIGN KEY(assignment_id) REFERENCES submitted_assignment (id), 
	FOREIGN KEY(notebook_id) REFERENCES notebook (id)
);
INSERT INTO "submitted_notebook" VALUES('id15','id41','id4',0,NULL);
INSERT INTO "submitted_notebook" VALUES('id18','id42','id4',0,1.0);
INSERT INTO "submitted_notebook" VALUES('id21','id43','id4',0,NULL);
INSERT INTO "submitted_notebook" VALUES('id24','id44','id4',0,NULL);
INSERT INTO "submitted_notebook" VALUES('id27','id45','id8',0,NULL);
INSERT INTO "submitted_notebook" VALUES('id29','id46','id8',0,NULL);
INSERT INTO "submitted_notebook" VALUES('id31','id47','id8',0,NULL);
INSERT INTO "submitted_notebook" VALUES('id33','id48','id11',0,NULL);
INSERT INTO "submitted_notebook" VALUES('id36','id49','id11',0,NULL);
INSERT INTO "submitted_notebook" VALUES('id39','id50','id11',0,NULL);
CREATE TABLE task_cells (
	id VARCHAR(32) NOT NULL, 
	max_score FLOAT NOT NULL, 
	cell_type VARCHAR(8) NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(id) REFERENCES base_cell (id)
);
INSERT INTO "task_cells" VALUES('id13',6.0,'markdown');
COMMIT;
