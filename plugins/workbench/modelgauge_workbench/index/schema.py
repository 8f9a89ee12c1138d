"""The tables of the index. A file of another version, or a broken one, is made again."""

VERSION = 10

TABLES = """
CREATE TABLE about (folders TEXT NOT NULL);
CREATE TABLE runs (
    number INTEGER PRIMARY KEY,           -- microseconds since 1970 when it began, so that numbers sort by time
    key TEXT NOT NULL UNIQUE,             -- its address: the name, and `~FOLDER` where another folder has that name
    folder INTEGER NOT NULL,              -- the place of its data folder
    name TEXT NOT NULL,                   -- of its own folder
    stamp TEXT NOT NULL,                  -- sizes and times of its files when they were read
    journal TEXT NOT NULL,                -- which file the journal was when it was read; another one is read again
    journal_read INTEGER NOT NULL,        -- bytes of it whose items are in the index
    first_item INTEGER, last_item INTEGER,
    began TEXT NOT NULL,
    test TEXT NOT NULL,
    subject TEXT NOT NULL,                -- its test or data set, whatever label it has
    sut TEXT NOT NULL,                    -- its label or uid
    datasets TEXT NOT NULL,               -- JSON: name, digest and version of each that its items are of
    state TEXT NOT NULL,
    headline TEXT NOT NULL,
    scored INTEGER, failed INTEGER, items INTEGER,
    passed NUMERIC, judged INTEGER,       -- of the items with a verdict, those that passed; of repeats, a part
    settings TEXT NOT NULL,               -- JSON: hyperparameters as texts
    cost REAL, seconds REAL,
    favourite INTEGER NOT NULL,
    tags TEXT NOT NULL,                   -- JSON
    note TEXT NOT NULL,
    UNIQUE (folder, name)
);
CREATE INDEX runs_by_test ON runs (test);
CREATE INDEX runs_by_sut ON runs (sut);
CREATE INDEX runs_by_state ON runs (state);
CREATE INDEX favourites ON runs (number) WHERE favourite;
CREATE TABLE labels (                     -- runs are found by: tag, dataset, digest, file, and is-NAME for settings
    name TEXT NOT NULL, value TEXT NOT NULL, run INTEGER NOT NULL, PRIMARY KEY (name, value, run)
) WITHOUT ROWID;
CREATE INDEX labels_of_runs ON labels (run);
CREATE VIRTUAL TABLE run_texts USING fts5 (name, test, sut, tags, note, headline);
CREATE TABLE items (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: `item_texts` keeps deleted ones
    run INTEGER NOT NULL,
    place INTEGER NOT NULL,               -- in the test, from 0
    start INTEGER NOT NULL, length INTEGER NOT NULL, -- of its line in the journal
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    failure TEXT NOT NULL,                -- what failures of one kind have in common; empty if nothing failed
    question TEXT NOT NULL, answer TEXT NOT NULL, expected TEXT NOT NULL, -- as far as a table shows them
    measured TEXT NOT NULL, used TEXT NOT NULL, labels TEXT NOT NULL, -- JSON
    UNIQUE (run, place)
);
CREATE INDEX items_by_state ON items (run, state, place);
CREATE INDEX items_by_id ON items (id, run);
CREATE VIRTUAL TABLE item_texts USING fts5 (id, question, answer, content='');
CREATE TABLE views (run INTEGER PRIMARY KEY, stamp TEXT NOT NULL, view TEXT NOT NULL);
"""
"""In place of a missing text stands an empty one. `views` holds what pages of ended runs show."""
