-- Format 3: a platform that launches by LTI 1.3, who is who there, and its scores.

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

CREATE TABLE lti_people (
    issuer TEXT NOT NULL,
    -- the platform's own id of a person
    subject TEXT NOT NULL,
    person TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (issuer, subject),
    UNIQUE (issuer, person)
);

CREATE TABLE lti_line_items (
    publication TEXT NOT NULL PRIMARY KEY REFERENCES publications (id),
    url TEXT NOT NULL
);

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
CREATE INDEX ix_lti_scores_state ON lti_scores (state, not_before_ms);
