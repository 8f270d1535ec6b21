//! Formats that were released keep opening: stores that earlier versions wrote lie in `testdata/`, with what is in them.
//!
//! A fixture is never made again; when anything in the files changes, others are added beside them, one with something of
//! everything and one with a job under way:
//!
//! `TRAPLINE_FIXTURE=testdata/format-6 cargo test -p trapline-stores --test it formats -- --ignored`
//!
//! When the engine's rules change, those of earlier rules open from their snapshots only if nothing follows them.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Candidate, IdentityKey, Request, Terms, Timestamp};
use trapline_frontier::{
    CrawlChange, Frontier, Lease, NoteWrite, Outcome, Pattern, Query, QueueChange, Rows, Scan, Settings,
    Settlement, Steer, Store, StoreError, UrlFilter, UrlsChange, Visit, Want,
};
use trapline_stores::DiskStore;
use trapline_stores::disk::files::Files;
use trapline_stores::disk::{Rewrite, verify};

use crate::disk::SMALL;
use crate::folder::TestFolder;
use crate::sim_files::{Fault, FaultKind, SimFiles};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

/// When everything is looked at: leases are live, waits not over.
const LATER: Timestamp = Timestamp::from_millis(100_000);

fn open(path: &Path) -> Arc<DiskStore> {
    Arc::new(DiskStore::open(path, &SMALL).unwrap_or_else(|error| panic!("it opens: {error}")))
}

fn crawl(store: &Arc<DiskStore>, name: &str, settings: Settings) -> Frontier {
    let builder = Frontier::builder(name).partitions(2).key(IdentityKey::from_seed(4)).settings(settings);
    pollster::block_on(builder.open_shared(Arc::clone(store) as Arc<dyn Store>, at(0))).expect("it opens")
}

/// Fills a store with something of everything, over two segments, with a snapshot in the middle.
fn fill(path: &Path) {
    let store = open(path);
    let settings = Settings { queue_budget: Some(3), max_depth: Some(9), ..Settings::default() };
    let docs = crawl(&store, "docs", settings);
    let news = crawl(&store, "news", Settings { delay: Duration::ZERO, ..Settings::default() });
    let admit = |crawl: &Frontier, seconds: u64, urls: &[&str]| {
        pollster::block_on(crawl.admit(at(seconds), urls.iter().copied().map(Request::get)))
            .expect("it is admitted");
    };
    let claim = |crawl: &Frontier, seconds: u64, queue: &str| -> Lease {
        let want = Want {
            keys: Some(vec![queue.to_owned()]),
            lease: Some(Duration::from_secs(500)),
            ..Want::urls(1)
        };
        let mut leases = pollster::block_on(crawl.claim(at(seconds), want)).expect("it is claimed").leases;
        leases.pop().expect("there is one")
    };
    let settle = |crawl: &Frontier, seconds: u64, lease: &Lease, outcome: Outcome, links: &[&str]| {
        let prepare = |link: &&str| crawl.prepare(Request::get(*link)).expect("a URL");
        let links: Vec<Candidate> = links.iter().map(prepare).collect();
        let settlement = Settlement { links, ..Settlement::new(lease.id, outcome) };
        pollster::block_on(crawl.settle(at(seconds), vec![settlement])).expect("it is settled");
    };
    let visit = Visit {
        status: 200,
        bytes: 1234,
        etag: Some("\"abc\"".to_owned()),
        last_modified: Some("Thu, 01 Jan 2026 00:00:00 GMT".to_owned()),
        digest: Some(vec![1, 2, 3]),
        simhash: Some(0xfeed),
    };
    let note = |crawl: &Frontier, key: &str, value: &[u8], expires| {
        let note = NoteWrite { key: key.to_owned(), value: Some(value.to_vec()), expires };
        pollster::block_on(crawl.steer_crawl(at(3), CrawlChange::Note(note))).expect("it is noted");
    };
    // Done with a page record, its next visit, and a link; one that is delayed by that.
    admit(
        &docs,
        1,
        &["http://a.example/", "http://a.example/2", "http://b.example/", "http://b.example/ä?q=1#f"],
    );
    settle(
        &docs,
        2,
        &claim(&docs, 2, "a.example"),
        Outcome::Done { visit, next: Some(at(90_000)) },
        &["http://a.example/link"],
    );
    // Dead, disregarded, retried, released.
    let dead = Outcome::Dead { reason: "410".to_owned() };
    settle(&docs, 3, &claim(&docs, 3, "b.example"), dead, &[]);
    admit(&docs, 3, &["http://c.example/", "http://d.example/", "http://e.example/1"]);
    let disregard = Outcome::Disregard { reason: "robots".to_owned() };
    settle(&docs, 4, &claim(&docs, 4, "c.example"), disregard, &[]);
    settle(&docs, 4, &claim(&docs, 4, "d.example"), Outcome::Retry { at: at(70_000) }, &[]);
    settle(&docs, 4, &claim(&docs, 4, "e.example"), Outcome::Release, &[]);
    note(&docs, "robots:a.example", b"User-agent: *", Some(at(80_000)));
    note(&docs, "seen", &[0, 255], None);
    note(&docs, "robots:b.example", &b"User-agent: *\nDisallow: /private\n".repeat(9), None);
    // A request with everything, and texts enough to fill a segment.
    let mut whole = Request::get("http://f.example/form");
    whole.method = "POST".into();
    whole.body = b"a=1&b=2".to_vec();
    whole.headers = vec![("accept".to_owned(), b"text/html".to_vec())];
    whole.depth = 3;
    whole.via = Some("http://a.example/".to_owned());
    whole.priority = Some(-7);
    whole.cookies = vec![("session".to_owned(), "1".to_owned())];
    whole.metadata.insert("k".to_owned(), vec!["v".to_owned()]);
    whole.seed = Some("http://a.example/".to_owned());
    pollster::block_on(docs.admit(at(5), [whole])).expect("it is admitted");
    store.snapshot().expect("it is taken");
    // After the snapshot: a lease, terms with a group, queues that are retired, blocked and over their budget.
    claim(&docs, 6, "e.example");
    let steer = |crawl: &Frontier, key: &str, change| {
        pollster::block_on(crawl.steer_queue(at(7), key, change)).expect("it is steered");
    };
    let terms = Terms {
        delay: Some(Duration::from_secs(40)),
        group: Some("10.0.0.1".into()),
        queue_budget: Some(50),
        precedence: Some(1),
        concurrency: Some(2),
        balance_replenish: None,
    };
    steer(&docs, "f.example", QueueChange::Terms(terms));
    steer(&docs, "b.example", QueueChange::Retire);
    admit(
        &docs,
        8,
        &[
            "http://g.example/1",
            "http://h.example/1",
            "http://h.example/2",
            "http://h.example/3",
            "http://h.example/4",
        ],
    );
    steer(&docs, "g.example", QueueChange::Block(at(60_000)));
    for seconds in [10, 20, 30] {
        settle(&docs, seconds, &claim(&docs, seconds, "h.example"), Outcome::done(), &[]);
    }
    // A queue that waits.
    admit(&docs, 30, &["http://i.example/1", "http://i.example/2"]);
    let slow = Settlement {
        delay: Some(Duration::from_secs(10_000)),
        ..Settlement::new(claim(&docs, 30, "i.example").id, Outcome::done())
    };
    pollster::block_on(docs.settle(at(30), vec![slow])).expect("it is settled");
    for number in 0..3 {
        let mut large = Request::get(format!("http://n.example/{number}"));
        large.opaque = vec![number; 16_000];
        pollster::block_on(news.admit(at(31), [large])).expect("it is admitted");
    }
    // Another segment; the other crawl is paused.
    admit(&news, 32, &["http://n.example/x", "http://m.example/"]);
    claim(&news, 33, "m.example");
    pollster::block_on(news.steer_crawl(at(34), CrawlChange::Pause)).expect("it is paused");
    pollster::block_on(docs.forget(at(35), "http://a.example/2")).expect("it is forgotten");
    // What was moved is in shorthand.
    store.snapshot().expect("it is taken");
    let rewritten = store.rewrite(Rewrite::All).expect("it is rewritten");
    assert!(rewritten.urls > 5, "{rewritten:?}");
    store.close().expect("it closes");
}

/// Fills a store with work over many URLs that has not come to its end: in the snapshot, and when it is closed.
fn fill_with_a_job(path: &Path) {
    let store = open(path);
    let settings = Settings { delay: Duration::ZERO, ..Settings::default() };
    let docs = crawl(&store, "docs", settings.clone());
    let news = crawl(&store, "news", settings);
    let page = |number: u32| Request::get(format!("http://{}.example/{number}", number % 7));
    // Something in the first segment that is needed, so that it stays.
    pollster::block_on(docs.admit(at(1), [page(3)])).expect("it is admitted");
    pollster::block_on(news.admit(at(1), (0..4200).map(page))).expect("it is admitted");
    let purge = CrawlChange::Purge(Pattern::new("*9"));
    let steered = pollster::block_on(news.steer_crawl(at(2), purge)).expect("it begins");
    assert!(steered.job.is_some(), "it takes several steps");
    let forget = Steer::Urls(UrlFilter { key: None, pattern: Some(Pattern::new("*8")) }, UrlsChange::Forget);
    let steered = pollster::block_on(news.steer(at(2), forget)).expect("it begins");
    assert!(steered.job.is_some(), "so does this");
    store.snapshot().expect("it is taken");
    pollster::block_on(docs.admit(at(3), [page(1)])).expect("it is admitted");
    // This one refers to that one's files for the other crawl.
    store.snapshot().expect("it is taken");
    pollster::block_on(docs.admit(at(4), [page(2)])).expect("it is admitted");
    store.close().expect("it closes");
}

/// All that is in a store, line by line.
fn tell(path: &Path) -> String {
    tell_of(&open(path))
}

fn tell_of(store: &Arc<DiskStore>) -> String {
    let mut text = String::new();
    for name in ["docs", "news"] {
        let frontier = Frontier::builder(name).attach(Arc::clone(store) as Arc<dyn Store>, LATER);
        let frontier = pollster::block_on(frontier).expect("the crawl is there");
        let queries = [
            Query::Jobs,
            Query::Crawl,
            Query::Queues { keys: None, state: None },
            Query::Urls { key: None, pattern: None, state: None },
            Query::Leases,
            Query::Dead,
            Query::Notes { prefix: String::new() },
        ];
        for query in queries {
            let scan = Scan { limit: 300, ..Scan::new(query) };
            let rows = pollster::block_on(frontier.scan(LATER, &scan)).expect("it answers").rows;
            tell_rows(&mut text, &rows).expect("a string takes everything");
        }
        let stats = pollster::block_on(frontier.stats(LATER)).expect("it counts");
        let _ = writeln!(
            text,
            "counts queues={:?} urls={:?} waiting={} fetched={} bytes={} spent={} granted={} expired={}\n",
            stats.queues,
            stats.urls,
            stats.visits_waiting,
            stats.fetched,
            stats.bytes,
            stats.spent,
            stats.granted,
            stats.expired
        );
        // What would be claimed next, in its order: as much of the state as no report shows.
        let claimed = pollster::block_on(frontier.claim(at(100_001), 50)).expect("it is claimed");
        for lease in claimed.leases {
            let _ = writeln!(
                text,
                "next {} {} {} delivery={}",
                lease.id.0, lease.key, lease.request.url, lease.delivery
            );
        }
        let _ = writeln!(text, "next {:?} exhausted={}\n", claimed.next, claimed.exhausted);
    }
    text
}

fn request(request: &Request) -> String {
    let Request { url, method, headers, cookies, body, metadata, depth, via, priority, seed, opaque, .. } =
        request;
    format!(
        "{method} {url} headers={headers:?} cookies={cookies:?} body={} metadata={metadata:?} depth={depth} via={via:?} \
         priority={priority:?} seed={seed:?} opaque={}",
        String::from_utf8_lossy(body),
        opaque.len()
    )
}

fn tell_rows(text: &mut String, rows: &Rows) -> std::fmt::Result {
    match rows {
        Rows::Crawl(crawl) => {
            let settings = Settings::NAMES.map(|name| format!("{name}={}", crawl.settings.get(name).unwrap_or_default()));
            writeln!(text, "crawl {} {} partitions={} {}", crawl.name, crawl.state, crawl.partitions, settings.join(" "))
        }
        Rows::Queues(rows) => rows.iter().try_for_each(|row| {
            writeln!(
                text,
                "queue {} {:?} pending={} leased={} done={} disregarded={} dead={} errors={} budget={:?} spent={} balance={} \
                 precedence={} group={:?} concurrency={} delay={:?} next_fetch={:?}",
                row.key, row.state, row.pending, row.leased, row.done, row.disregarded, row.dead, row.errors, row.budget,
                row.spent, row.balance, row.precedence, row.group, row.concurrency, row.delay, row.next_fetch
            )
        }),
        Rows::Urls(rows) => rows.iter().try_for_each(|row| {
            let page = row.page.as_ref().map(|page| {
                (page.visited, page.visit.status, page.visit.bytes, &page.visit.etag, &page.visit.digest, page.visits, page.next)
            });
            writeln!(
                text,
                "url {:032x} {:?} {} class={} cost={} reason={:?} due={:?} page={page:?} {}",
                row.identity.0, row.state, row.key.as_deref().unwrap_or("-"), row.class, row.cost, row.reason, row.due,
                row.request.as_ref().map_or_else(String::new, |known| request(known))
            )
        }),
        Rows::Leases(rows) => rows.iter().try_for_each(|row| {
            writeln!(
                text,
                "lease {} {} {} granted={:?} deadline={:?} delivery={}",
                row.id.0, row.key, row.request.url, row.granted, row.deadline, row.delivery
            )
        }),
        Rows::Dead(rows) => rows.iter().try_for_each(|row| {
            writeln!(text, "dead {} {} {} at={:?}", row.key, row.request.url, row.reason, row.at)
        }),
        Rows::Notes(rows) => rows.iter().try_for_each(|row| {
            writeln!(text, "note {} {:?} expires={:?}", row.key, row.value, row.expires)
        }),
        Rows::Jobs(rows) => rows.iter().try_for_each(|row| {
            writeln!(
                text,
                "job {} {} passed={} of={} affected={} ended={}",
                row.id, row.what, row.passed, row.total, row.affected, row.ended
            )
        }),
        other => panic!("not asked for: {other:?}"),
    }
}

fn copy(fixture: &Path) -> TestFolder {
    let folder = TestFolder::new();
    fs::create_dir_all(folder.path().join("segments")).expect("it can be made");
    for file in files(fixture) {
        let name = file.file_name().expect("a file has a name");
        fs::copy(&file, folder.path().join("segments").join(name)).expect("it can be copied");
    }
    folder
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("segments")).expect("a store has segments");
    entries.map(|entry| entry.expect("it can be read").path()).collect()
}

fn is_snapshot(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "snapshot")
}

#[test]
fn stores_of_earlier_versions_open_with_all_that_is_in_them() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let fixtures =
        fs::read_dir(&testdata).expect("there are some").map(|entry| entry.expect("it can be read").path());
    let mut checked = 0;
    for fixture in fixtures {
        let expected = fs::read_to_string(fixture.join("contents.txt")).expect("it says what is in it");
        let folder = copy(&fixture);
        let found = verify(folder.path(), &mut |_| ()).expect("it can be read");
        assert_eq!((found.damages.len(), found.crawls), (0, 2), "{found:?}");
        assert!(found.snapshots > 0, "{found:?}");
        assert!(found.segments > 1, "{found:?}");
        assert!(open(folder.path()).recovered().0.snapshot.is_some());
        assert_eq!(tell(folder.path()), expected, "{}, from its snapshot", fixture.display());
        let folder = copy(&fixture);
        for file in files(folder.path()).iter().filter(|file| is_snapshot(file)) {
            fs::remove_file(file).expect("it can be removed");
        }
        assert_eq!(tell(folder.path()), expected, "{}, from its log alone", fixture.display());
        assert_eq!(verify(folder.path(), &mut |_| ()).expect("it can be read").damages, []);
        checked += 1;
    }
    assert!(checked > 0);
}

/// The same files, in memory.
fn simulated(fixture: &Path) -> SimFiles {
    let simulated = SimFiles::default();
    for file in files(fixture) {
        let bytes = fs::read(&file).expect("it can be read");
        let name = file.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let copy = simulated.create(&name, bytes.len() as u64).expect("it can be made");
        copy.write(0, &bytes).and_then(|()| copy.sync()).expect("it can be written");
    }
    simulated.sync_folder().expect("it can be synced");
    simulated
}

/// Opens a store, moves all it has to the present format, and lets go of what was.
fn upgrade(files: &SimFiles) -> Result<Arc<DiskStore>, StoreError> {
    let store = Arc::new(DiskStore::open_on(files.clone(), &SMALL)?);
    let news = Frontier::builder("news").attach(Arc::clone(&store) as Arc<dyn Store>, LATER);
    let news = pollster::block_on(news)?;
    // What was the last segment is not any more, when a snapshot goes on behind it.
    for round in 0..3 {
        let note = NoteWrite { key: "filling".to_owned(), value: Some(vec![round; 60_000]), expires: None };
        pollster::block_on(news.steer_crawl(LATER, CrawlChange::Note(note)))?;
        store.snapshot()?;
        store.rewrite(Rewrite::All)?;
    }
    let note = NoteWrite { key: "filling".to_owned(), value: None, expires: None };
    pollster::block_on(news.steer_crawl(LATER, CrawlChange::Note(note)))?;
    store.snapshot()?;
    Ok(store)
}

/// A store of an earlier version is rewritten while it is used, and may be killed at any moment of that.
#[test]
fn stores_of_earlier_versions_are_rewritten_on_the_way_and_may_be_killed_there() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let fixture = testdata.join("format-1.1");
    let expected = fs::read_to_string(fixture.join("contents.txt")).expect("it says what is in it");
    let files = simulated(&fixture);
    let before = files.names(".segment");
    files.set_fault(None);
    let store = upgrade(&files).expect("it is rewritten");
    let calls = files.calls();
    let after = files.names(".segment");
    assert!(before.iter().all(|name| !after.contains(name)), "{before:?} became {after:?}");
    store.abandon();
    let store = Arc::new(DiskStore::open_on(files.copy(), &SMALL).expect("it opens"));
    assert_eq!(tell_of(&store), expected);
    let store = Arc::new(DiskStore::open_on(files, &SMALL).expect("it opens"));
    assert_eq!(tell_of(&store), expected);
    assert!(calls > 20, "{calls} calls");
    for call in 1..=calls {
        let files = simulated(&fixture);
        files.set_fault(Some(Fault { call, for_ever: true, kind: FaultKind::Half }));
        if let Ok(store) = upgrade(&files) {
            store.abandon();
        }
        files.set_fault(None);
        files.lose_power(call);
        let store = upgrade(&files).unwrap_or_else(|error| panic!("killed at call {call}: {error}"));
        assert_eq!(tell_of(&store), expected, "killed at call {call}");
        store.abandon();
    }
}

/// Makes the fixtures of the present format, in the folder that is named and in one beside it.
#[test]
#[ignore = "makes fixtures"]
fn make_fixtures() {
    let Ok(path) = std::env::var("TRAPLINE_FIXTURE") else { panic!("TRAPLINE_FIXTURE names its folder") };
    for (ending, has_job) in [("", false), ("-jobs", true)] {
        let path = PathBuf::from(format!("{path}{ending}"));
        assert!(!path.exists(), "fixtures are never made again");
        if has_job {
            fill_with_a_job(&path);
        } else {
            fill(&path);
        }
        let copy = copy(&path);
        fs::write(path.join("contents.txt"), tell(copy.path())).expect("it can be written");
        fs::remove_file(path.join("lock")).expect("it is not needed");
    }
}
