-- Format 1. A later format is a file of its own, which changes this one.

CREATE TABLE submissions (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    lab TEXT NOT NULL,
    source TEXT NOT NULL,
    seed BIGINT NOT NULL,
    submitted_ms BIGINT NOT NULL
);
CREATE INDEX ix_submissions_lab ON submissions (lab);

CREATE TABLE results (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    submission INTEGER NOT NULL,
    graded_ms BIGINT NOT NULL,
    passed INTEGER NOT NULL,
    "right" INTEGER NOT NULL,
    "of" INTEGER NOT NULL,
    -- a CheckResult as JSON
    result TEXT NOT NULL,
    FOREIGN KEY (submission) REFERENCES submissions (id)
);
CREATE INDEX ix_results_submission ON results (submission);

CREATE TABLE hints (
    lab TEXT NOT NULL,
    opened INTEGER NOT NULL,
    PRIMARY KEY (lab)
);
