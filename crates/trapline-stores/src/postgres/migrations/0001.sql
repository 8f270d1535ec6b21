-- What was applied to this schema, and when.
CREATE TABLE trapline_schema (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The frontier's tables. Times are milliseconds since the crawl's origin; the last of them means "the end of time".
-- Texts that callers choose (names, keys, notes) are bytes, because a text of PostgreSQL cannot hold every character.
--
-- A queue's row in `turns` is the lock of everything that belongs to the queue: whoever changes one of its URLs holds it.

-- What orders commands: each takes a block of numbers from it.
CREATE SEQUENCE ranks;
CREATE SEQUENCE lease_numbers;

CREATE TABLE crawls (
    id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name bytea NOT NULL,
    identity_key bytea NOT NULL,
    partitions int8 NOT NULL,
    settings bytea NOT NULL,
    started int8 NOT NULL,
    -- 0 running, 1 paused, 2 finished.
    state int8 NOT NULL DEFAULT 0,
    reason bytea NOT NULL DEFAULT '',
    -- When the length of budget periods was last set, and from when on charges counted then.
    period_set_at int8 NOT NULL,
    period_set_rank int8 NOT NULL,
    charged_before int8 NOT NULL,
    turn int8 NOT NULL DEFAULT 0,
    last_job int8 NOT NULL DEFAULT 0
);
-- Names may be longer than what an index takes.
CREATE UNIQUE INDEX crawls_by_name ON crawls (sha256(name));

-- Counts of a crawl, and the latest time seen, in several rows so that nobody waits for another to count. Their sum holds.
CREATE TABLE tallies (
    crawl int8 NOT NULL,
    slot int8 NOT NULL,
    latest int8 NOT NULL DEFAULT 0,
    pending int8 NOT NULL DEFAULT 0,
    leased int8 NOT NULL DEFAULT 0,
    done int8 NOT NULL DEFAULT 0,
    disregarded int8 NOT NULL DEFAULT 0,
    dead int8 NOT NULL DEFAULT 0,
    visits int8 NOT NULL DEFAULT 0,
    fetched int8 NOT NULL DEFAULT 0,
    bytes numeric NOT NULL DEFAULT 0,
    spent numeric NOT NULL DEFAULT 0,
    granted int8 NOT NULL DEFAULT 0,
    expired int8 NOT NULL DEFAULT 0,
    PRIMARY KEY (crawl, slot)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Queues: what seldom changes of them.
CREATE TABLE queues (
    id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    crawl int8 NOT NULL,
    key bytea NOT NULL,
    partition int8 NOT NULL,
    -- Terms that came with candidates, and those that operators set; NULL for none.
    suggested bytea,
    steered bytea,
    UNIQUE (crawl, key)
);
CREATE INDEX queues_of_crawl ON queues (crawl, id);

-- What changes with every grant and settlement, and whose turn it is.
CREATE TABLE turns (
    queue int8 PRIMARY KEY,
    crawl int8 NOT NULL,
    partition int8 NOT NULL,
    -- The group whose pace it shares, 0 for none.
    group_id int8 NOT NULL DEFAULT 0,
    -- Its place in line: -1 if it cannot be served, 0 for ready, 1 for inactive; and from when on, maybe ahead.
    tier int8 NOT NULL DEFAULT -1,
    precedence int8 NOT NULL DEFAULT 3,
    serve_at int8 NOT NULL DEFAULT 0,
    serve_rank int8 NOT NULL DEFAULT 0,
    -- Held back by its group alone.
    parked int8 NOT NULL DEFAULT 0,
    -- 0 no, 1 by hand, 2 over its budget; and since when.
    retired int8 NOT NULL DEFAULT 0,
    retired_at int8 NOT NULL DEFAULT 0,
    -- Its concurrency, -1 for the crawl's.
    concurrency int8 NOT NULL DEFAULT -1,
    active int8 NOT NULL DEFAULT 0,
    vacant int8 NOT NULL DEFAULT 1,
    free int8 NOT NULL DEFAULT 0,
    lack int8 NOT NULL DEFAULT 1,
    age_at int8 NOT NULL DEFAULT 0,
    age_rank int8 NOT NULL DEFAULT 0,
    freed_at int8 NOT NULL DEFAULT 0,
    freed_rank int8 NOT NULL DEFAULT 0,
    next_at int8 NOT NULL DEFAULT 0,
    next_rank int8 NOT NULL DEFAULT 0,
    blocked_at int8 NOT NULL DEFAULT 0,
    blocked_rank int8 NOT NULL DEFAULT 0,
    balance int8 NOT NULL DEFAULT 0,
    spent int8 NOT NULL DEFAULT 0,
    spent_at int8 NOT NULL DEFAULT 0,
    charged int8 NOT NULL DEFAULT 0,
    grants int8 NOT NULL DEFAULT 0,
    latest_cost int8 NOT NULL DEFAULT 0,
    -- Pending and due, pending and due later, done and to be visited again.
    ready int8 NOT NULL DEFAULT 0,
    waiting int8 NOT NULL DEFAULT 0,
    visits int8 NOT NULL DEFAULT 0,
    leased int8 NOT NULL DEFAULT 0,
    done int8 NOT NULL DEFAULT 0,
    disregarded int8 NOT NULL DEFAULT 0,
    dead int8 NOT NULL DEFAULT 0,
    errors int8 NOT NULL DEFAULT 0,
    -- Nothing pending lies before this place: where to begin to look for the first.
    head_class int8 NOT NULL DEFAULT 0,
    head_band int8 NOT NULL DEFAULT 0,
    head_place int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
-- Only what can be served, now or at a time.
CREATE INDEX turns_in_line ON turns (crawl, precedence, tier, serve_at, serve_rank, queue) INCLUDE (partition) WHERE tier >= 0;
CREATE INDEX turns_parked ON turns (crawl, group_id) WHERE parked = 1;
CREATE INDEX turns_over_budget ON turns (crawl, retired_at) WHERE retired = 2;

CREATE TABLE groups (
    id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    crawl int8 NOT NULL,
    name bytea NOT NULL,
    next_at int8 NOT NULL DEFAULT 0,
    next_rank int8 NOT NULL DEFAULT 0,
    -- Whether members may be parked for it.
    parked int8 NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX groups_by_name ON groups (crawl, sha256(name));
CREATE INDEX groups_to_wake ON groups (crawl, next_at) WHERE parked = 1;

-- The seen table: every URL that is known. Rows are added, and hardly ever changed.
CREATE TABLE seen (
    crawl int8 NOT NULL,
    identity uuid NOT NULL,
    -- 0, unless `dont_filter` made an entry of its own.
    nth int8 NOT NULL,
    entry int8 NOT NULL,
    queue int8 NOT NULL,
    PRIMARY KEY (crawl, identity, nth)
) PARTITION BY HASH (identity);
DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format(
            'CREATE TABLE seen_%s PARTITION OF seen FOR VALUES WITH (MODULUS 16, REMAINDER %s)
             WITH (autovacuum_vacuum_insert_scale_factor = 0.5)', part, part);
    END LOOP;
END $$;

-- The same URLs with their requests, in the order of their admission: those that are claimed together lie together.
CREATE TABLE urls (
    crawl int8 NOT NULL,
    entry int8 NOT NULL,
    queue int8 NOT NULL,
    identity uuid NOT NULL,
    nth int8 NOT NULL,
    class int8 NOT NULL,
    cost int8 NOT NULL,
    url bytea NOT NULL,
    rest bytea NOT NULL,
    PRIMARY KEY (crawl, entry)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.5);
CREATE INDEX urls_by_queue ON urls (queue, entry);

-- Where a known URL is: in one of the next five, or done if it is in none.
CREATE TABLE pending (
    crawl int8 NOT NULL,
    entry int8 NOT NULL,
    queue int8 NOT NULL,
    -- Its place in its queue: by class, then what came back (band 0) before the rest.
    class int8 NOT NULL,
    band int8 NOT NULL,
    place int8 NOT NULL,
    tie bytea NOT NULL,
    rank int8 NOT NULL,
    expiries int8 NOT NULL,
    retries int8 NOT NULL,
    PRIMARY KEY (crawl, entry)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX pending_in_order ON pending (queue, class, band, place, tie, rank);

-- Pending later, and done with a next visit.
CREATE TABLE waiting (
    crawl int8 NOT NULL,
    entry int8 NOT NULL,
    queue int8 NOT NULL,
    -- 0 a retry, 1 scheduled, 2 to be visited again.
    kind int8 NOT NULL,
    due_at int8 NOT NULL,
    due_rank int8 NOT NULL,
    rank int8 NOT NULL,
    expiries int8 NOT NULL,
    retries int8 NOT NULL,
    -- Not with the crawl before it: see `waiting_by_time`.
    PRIMARY KEY (entry)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE INDEX waiting_by_queue ON waiting (queue);
-- Who looks for an entry must not come by here: this can be full of what is gone, and to the planner it looks empty. So entries are
-- looked for without their crawl; their numbers are given once in all crawls.
CREATE INDEX waiting_by_time ON waiting (crawl, due_at, due_rank);

CREATE TABLE leases (
    id int8 PRIMARY KEY,
    crawl int8 NOT NULL,
    entry int8 NOT NULL,
    queue int8 NOT NULL,
    granted int8 NOT NULL,
    deadline int8 NOT NULL,
    deadline_rank int8 NOT NULL,
    -- Its old place, to which a release puts it back.
    band int8 NOT NULL,
    place int8 NOT NULL,
    tie bytea NOT NULL,
    rank int8 NOT NULL,
    expiries int8 NOT NULL,
    retries int8 NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX leases_by_deadline ON leases (crawl, deadline, deadline_rank);
CREATE INDEX leases_by_entry ON leases (entry);

CREATE TABLE dead (
    crawl int8 NOT NULL,
    entry int8 NOT NULL,
    queue int8 NOT NULL,
    reason bytea NOT NULL,
    at int8 NOT NULL,
    rank int8 NOT NULL,
    PRIMARY KEY (crawl, entry)
);

CREATE TABLE disregarded (
    crawl int8 NOT NULL,
    entry int8 NOT NULL,
    queue int8 NOT NULL,
    reason bytea NOT NULL,
    PRIMARY KEY (crawl, entry)
);

-- What visits left. A done URL without a row was visited once, and nothing was left.
CREATE TABLE pages (
    crawl int8 NOT NULL,
    entry int8 NOT NULL,
    visits int8 NOT NULL,
    page bytea,
    PRIMARY KEY (crawl, entry)
);

CREATE TABLE notes (
    crawl int8 NOT NULL,
    key bytea NOT NULL,
    -- The beginning of the key, by which notes are listed.
    beginning bytea NOT NULL,
    value bytea NOT NULL,
    expires int8
);
CREATE UNIQUE INDEX notes_by_key ON notes (crawl, sha256(key));
CREATE INDEX notes_in_order ON notes (crawl, beginning);
CREATE INDEX notes_by_expiry ON notes (crawl, expires) WHERE expires IS NOT NULL;

CREATE TABLE jobs (
    crawl int8 NOT NULL,
    id int8 NOT NULL,
    -- 0 purge pending URLs that match, 1 replay dead letters, 2 forget them.
    task int8 NOT NULL,
    queue int8,
    pattern bytea,
    -- What came after this is left alone.
    before_rank int8 NOT NULL,
    -- The last entry that was looked at.
    cursor int8 NOT NULL DEFAULT 0,
    passed int8 NOT NULL DEFAULT 0,
    total int8 NOT NULL DEFAULT 0,
    affected int8 NOT NULL DEFAULT 0,
    ended bool NOT NULL DEFAULT false,
    what bytea NOT NULL,
    PRIMARY KEY (crawl, id)
);
CREATE INDEX jobs_under_way ON jobs (crawl, id) WHERE NOT ended;
