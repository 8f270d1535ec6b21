//! `trapline store copy` from outside, between folders: what is copied, what is refused, and what a killed command leaves.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use trapline_core::{Candidate, Request, Statement, Terms, Timestamp};
use trapline_frontier::{
    CrawlChange, Frontier, NoteWrite, Outcome, QueueChange, Settings, Settlement, Store, Visit, Want,
};
use trapline_stores::{DiskOptions, DiskStore};

use crate::folder::Folder;

/// Names that nobody would choose, and somebody will.
pub(crate) const NAMES: [&str; 4] =
    ["default", "a\u{1b}[2J\n\0 b", "'; DROP TABLE urls; --", "💡 ünï/../%2e"];

/// What a command printed, what it complained of, and its exit code.
pub(crate) fn trapline(arguments: &[&str]) -> (String, String, Option<i32>) {
    let ran = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    (text(ran.stdout), text(ran.stderr), ran.status.code())
}

/// Copies, and answers what is told of each crawl.
#[track_caller]
pub(crate) fn copy(from: &str, to: &str, arguments: &[&str], code: i32) -> Vec<Value> {
    let (out, error, ended) = trapline(&[&["store", "copy", from, to, "--json"], arguments].concat());
    assert_eq!(ended, Some(code), "{out}{error}");
    out.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

/// All that a store has, but the states of its crawls, in an order of its own.
pub(crate) fn contents(url: &str) -> Vec<String> {
    let (out, error, code) = trapline(&["frontier", "--store", url, "export"]);
    assert_eq!(code, Some(0), "{error}");
    let others = ["{\"format\"", "{\"crawl\"", "{\"end_of_crawl\""];
    let told = |line: &&str| !others.iter().any(|other| line.starts_with(other));
    let mut lines: Vec<_> = out.lines().filter(told).map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Fills a store: crawls with hostile names, in which there is something of everything, and no lease.
pub(crate) fn fill(store: &Arc<dyn Store>, now: Timestamp) {
    for (number, name) in NAMES.iter().enumerate() {
        let settings = Settings {
            order: [
                trapline_frontier::Order::Fifo,
                trapline_frontier::Order::Lifo,
                trapline_frontier::Order::Date,
            ][number % 3],
            delay: Duration::from_secs(3600),
            queue_budget: Some(40),
            lease: Duration::from_secs(900),
            ..Settings::default()
        };
        let builder = Frontier::builder(*name).settings(settings).partitions(1 + number as u32);
        let frontier = pollster::block_on(builder.open_shared(Arc::clone(store), now)).expect("it opens");
        let mut candidates: Vec<Candidate> = Vec::new();
        for host in 0..12 {
            for page in 0..30 {
                let mut request =
                    Request::get(format!("http://{host}.example/{page}?q='\"%00é{}", "x".repeat(page * 20)));
                request.metadata.insert("k\0\"".to_owned(), vec!["v\n💡".to_owned()]);
                request.opaque = vec![0, 255, page as u8];
                request.priority = (page % 7 == 0).then_some(5);
                let mut candidate = frontier.prepare(request).expect("it is a URL");
                candidate.statement = match page {
                    3 => Some(Statement::Done),
                    4 => Some(Statement::Next(now + Duration::from_secs(86_400 * (1 + host)))),
                    _ => None,
                };
                if page == 0 && host % 3 == 0 {
                    candidate.terms =
                        Terms { precedence: Some(1), group: Some("g\0".into()), ..Terms::default() };
                }
                candidates.push(candidate);
            }
        }
        candidates.push(
            frontier.prepare_in(Request::get("http://slot.example/"), Some("\0'slot\n")).expect("a URL"),
        );
        pollster::block_on(frontier.admit_candidates(now, &candidates)).expect("admitted");
        let want = Want { per_queue: Some(1), ..Want::urls(9) };
        let leases = pollster::block_on(frontier.claim(now, want)).expect("claimed").leases;
        let visit = || Visit {
            status: 200,
            bytes: 1 << 40,
            etag: Some("\"é\0\"".to_owned()),
            digest: Some(vec![0; 32]),
            simhash: Some(u64::MAX),
            ..Visit::default()
        };
        for (number, lease) in leases.iter().enumerate() {
            let later = now + Duration::from_secs(86_400 + number as u64);
            let outcome = match number % 6 {
                0 => Outcome::Done { visit: visit(), next: Some(later) },
                1 => Outcome::Done { visit: visit(), next: None },
                2 => Outcome::Retry { at: later },
                3 => Outcome::Dead { reason: "gone\0\n".to_owned() },
                4 => Outcome::Disregard { reason: "robots.txt says 'no'".to_owned() },
                _ => Outcome::Release,
            };
            let settled = frontier.settle(now, vec![Settlement::new(lease.id, outcome)]);
            pollster::block_on(settled).expect("settled");
        }
        let steer = |key: &str, change| {
            pollster::block_on(frontier.steer_queue(now, key, change)).expect("steered");
        };
        steer("10.example", QueueChange::Block(now + Duration::from_secs(86_400)));
        steer("11.example", QueueChange::Retire);
        steer("9.example", QueueChange::Terms(Terms { queue_budget: Some(7), ..Terms::default() }));
        for (key, value) in [("robots\0", vec![0, 159, 146, 150]), ("", Vec::new()), ("'\"", vec![7; 70_000])]
        {
            let note = NoteWrite { key: key.to_owned(), value: Some(value), expires: None };
            pollster::block_on(frontier.steer_crawl(now, CrawlChange::Note(note))).expect("noted");
        }
    }
    let finished = Frontier::builder("finished").open_shared(Arc::clone(store), now);
    let finished = pollster::block_on(finished).expect("it opens");
    pollster::block_on(finished.admit(now, [Request::get("http://a.example/")])).expect("admitted");
    let finish = CrawlChange::Finish("enough \0".to_owned());
    pollster::block_on(finished.steer_crawl(now, finish)).expect("finished");
}

pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(since.as_millis() as u64)
}

/// A folder with everything in it.
pub(crate) fn filled(name: &str) -> Folder {
    let folder = Folder::new(name);
    let store: Arc<dyn Store> =
        Arc::new(DiskStore::open(&folder.path, &DiskOptions::default()).expect("it opens"));
    fill(&store, now());
    folder
}

/// A folder with many URLs of plain make in one crawl.
pub(crate) fn many(name: &str, urls: usize, hosts: usize) -> Folder {
    let folder = Folder::new(name);
    let store: Arc<dyn Store> =
        Arc::new(DiskStore::open(&folder.path, &DiskOptions::default()).expect("it opens"));
    let now = now();
    let frontier =
        pollster::block_on(Frontier::builder("default").open_shared(store, now)).expect("it opens");
    let urls: Vec<_> = (0..urls)
        .map(|n| Request::get(format!("http://host-{}.example/page/with/some/length/{n:09}.html", n % hosts)))
        .collect();
    for batch in urls.chunks(10_000) {
        pollster::block_on(frontier.admit(now, batch.iter().cloned())).expect("admitted");
    }
    folder
}

/// What is the same on both sides: all of it.
#[track_caller]
pub(crate) fn check_copied(from: &str, to: &str) {
    for told in copy(from, to, &[], 0) {
        assert_eq!(told["differences"], json!([]), "{told}");
        assert_eq!(told["done"], json!("copied"), "{told}");
    }
    assert_eq!(contents(to), contents(from));
    for told in copy(from, to, &["--verify-only"], 0) {
        assert_eq!((&told["differences"], &told["done"]), (&json!([]), &json!("compared")), "{told}");
    }
}

/// Begins the same command again and again and kills it later and later, a quarter each time, until it comes to its end: however
/// quick a machine is, most kills come while it is at work.
#[track_caller]
pub(crate) fn check_killed(from: &str, to: &str) {
    let mut killed = 0;
    let mut patience = Duration::from_millis(10);
    loop {
        let mut process = Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args(["store", "copy", from, to, "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let until = std::time::Instant::now() + patience;
        while std::time::Instant::now() < until && process.try_wait().expect("it can be asked").is_none() {
            std::thread::yield_now();
        }
        let is_ended = process.try_wait().expect("it can be asked").is_some();
        let _ = process.kill();
        let ran = process.wait_with_output().expect("it ends");
        if is_ended {
            let error = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(ran.status.code(), Some(0), "{error}");
            break;
        }
        killed += 1;
        patience = patience * 5 / 4;
    }
    assert!(killed > 3, "it was too quick to be killed");
    assert_eq!(contents(to), contents(from));
}

#[test]
fn folders_are_copied_with_everything_in_them() {
    let (one, two) = (filled("copy-from"), Folder::new("copy-to"));
    check_copied(&one.url(), &two.url());
    let (out, _, _) = trapline(&["frontier", "--store", &two.url(), "crawls", "--json"]);
    let states: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for crawl in &states {
        let state = if crawl["crawl"] == "finished" { "finished" } else { "running" };
        assert_eq!(crawl["state"], json!(state), "{crawl}");
    }
    assert_eq!(states.len(), NAMES.len() + 1);
    let again = copy(&one.url(), &two.url(), &[], 0);
    assert!(again.iter().all(|told| told["done"] == "there already"), "{again:?}");
}

/// Stores that earlier versions wrote are taken along.
#[test]
fn old_formats_are_copied() {
    for name in ["format-1", "format-1.1"] {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trapline-stores/testdata").join(name);
        let (one, two) = (Folder::new(&format!("copy-{name}")), Folder::new(&format!("copied-{name}")));
        std::fs::create_dir_all(one.path.join("segments")).expect("a folder");
        for file in std::fs::read_dir(fixture.join("segments")).expect("it is there") {
            let file = file.expect("it can be read");
            std::fs::copy(file.path(), one.path.join("segments").join(file.file_name())).expect("copied");
        }
        check_copied(&one.url(), &two.url());
    }
}

#[test]
fn a_copy_that_was_killed_goes_on() {
    let (one, two) = (many("kill-from", 30_000, 700), Folder::new("kill-to"));
    check_killed(&one.url(), &two.url());
}

#[test]
fn what_cannot_be_copied_is_told() {
    let (one, two) = (filled("refuse-from"), Folder::new("refuse-to"));
    let (from, to) = (one.url(), two.url());
    let check = |arguments: &[&str], message: &str| {
        let (out, error, code) = trapline(&[&["store", "copy"], arguments].concat());
        assert_eq!((out.as_str(), code), ("", Some(2)), "{error}");
        assert_eq!(error, format!("trapline store copy: {message}\n"));
    };
    let memory = "`memory:` keeps nothing from one command to the next";
    let instead = "name a store that does, such as disk:crawl";
    check(
        &["memory:", &to],
        &format!("{memory}: there is nothing in it yet when a command begins; {instead}"),
    );
    check(&[&from, "memory:"], &format!("{memory}: the copy would be gone with this command; {instead}"));
    check(&["disk:not-there", &to], "there is no store in `not-there`: there is nothing to copy");
    check(
        &[&from, &to, "--verify-only"],
        &format!("there is no store in `{}`: there is nothing to compare with", two.path.display()),
    );
    check(
        &[&from, &format!("{from}/.")],
        &format!(
            "`'; DROP TABLE urls; --` would be copied onto itself: {from} and {from}/. are one store; give the copy another \
             name with --as"
        ),
    );
    check(
        &[&from, &to, "--as", "x"],
        "--as names one crawl, and 5 are to be copied: choose one with --crawl",
    );
    let (_, error, code) = trapline(&["store", "copy", &from, &to, "--crawl", "new\u{1b}"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("there is no crawl `new\\u{1b}` in disk:"), "{error}");
    assert!(!two.path.exists(), "nothing was made");

    // Somebody else's crawl is left alone; so is an earlier copy that has gone on.
    let (_, error, code) = trapline(&["frontier", "--store", &to, "claim"]);
    assert_eq!(code, Some(2), "{error}");
    let other = many("refuse-other", 3, 1);
    check(
        &[&other.url(), &from, "--crawl", "default"],
        &format!(
            "there is a crawl `default` in {from} already, and it is another one; give the copy another name with --as, or \
             choose others with --crawl"
        ),
    );
    copy(&from, &to, &["--crawl", "default"], 0);
    let (_, _, code) = trapline(&["frontier", "--store", &to, "claim"]);
    assert_eq!(code, Some(0));
    check(
        &[&from, &to, "--crawl", "default"],
        &format!(
            "there is a crawl `default` in {to} already, and it is not the same any more, or was never copied to its end; give \
             the copy another name with --as, or choose others with --crawl"
        ),
    );
    let told = copy(&from, &to, &["--crawl", "default", "--verify-only"], 1);
    let kinds: Vec<_> =
        told[0]["differences"].as_array().expect("a list").iter().map(|one| &one["kind"]).collect();
    assert!(kinds.contains(&&json!("url")) && kinds.contains(&&json!("counts")), "{told:?}");
    let told = copy(&from, &to, &["--crawl", "default", "--as", "second"], 0);
    assert_eq!((&told[0]["as"], &told[0]["state"]), (&json!("second"), &json!("paused")));
}

/// Leases are waited for, and come over as pending if they are still out then.
#[test]
fn leases_are_waited_for() {
    let (one, two, three) = (many("lease-from", 30, 3), Folder::new("lease-to"), Folder::new("lease-wait"));
    let (_, _, code) = trapline(&["frontier", "--store", &one.url(), "claim", "--lease", "1s"]);
    assert_eq!(code, Some(0));
    let told = copy(&one.url(), &two.url(), &["--wait", "0", "--leave-running"], 0);
    assert_eq!((&told[0]["leases_left_behind"], &told[0]["state"]), (&json!(1), &json!("paused")));
    let told = copy(&one.url(), &three.url(), &[], 0);
    assert_eq!((&told[0]["leases_left_behind"], &told[0]["state"]), (&json!(0), &json!("running")));
    assert_eq!(contents(&three.url()), contents(&one.url()));
}

/// Ctrl-C ends it after the page at hand, and says how to go on.
#[test]
fn ctrl_c_says_how_to_go_on() {
    let (one, two) = (many("stop-from", 100_000, 1_000), Folder::new("stop-to"));
    let process = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["store", "copy", &one.url(), &two.url()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // By the time there is a log in the folder, signals are listened to.
    while !two.path.join("segments").exists() {
        std::thread::yield_now();
    }
    let kill = Command::new("kill").args(["-INT", &process.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
    let ran = process.wait_with_output().expect("it ends");
    let error = String::from_utf8(ran.stderr).expect("it is text");
    assert_eq!(ran.status.code(), Some(2), "{error}");
    assert!(error.starts_with("trapline store copy: it was interrupted\n"), "{error}");
    assert!(
        error.contains("is not whole yet, and paused. The same command goes on where it is.\n"),
        "{error}"
    );
    check_copied(&one.url(), &two.url());
}
