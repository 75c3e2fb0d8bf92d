-- Format 4: competitions of labs, and the learners who joined them.

CREATE TABLE competitions (
    publication TEXT NOT NULL PRIMARY KEY REFERENCES publications (id),
    opened_ms BIGINT NOT NULL,
    -- what came later is not on the learners' board
    freezes_ms BIGINT NOT NULL,
    -- when its board became final, for everybody
    ended_ms BIGINT
);

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
CREATE INDEX ix_competitors_person ON competitors (person);

-- Everybody's best, measured once more on one GPU; the last one of a lab counts.
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

CREATE TABLE final_jobs (
    job TEXT NOT NULL PRIMARY KEY REFERENCES jobs (id),
    final TEXT NOT NULL REFERENCES finals (id),
    -- 1, 2, ...
    round INTEGER NOT NULL,
    -- 0, 1, ...: they run in this order, one after another
    place INTEGER NOT NULL,
    UNIQUE (final, place)
);
