//! What the kernel sees: no answer leaves the program before the record it stands for was written and synced.
//!
//! These tests need `strace`, and a kernel that lets it trace; `./test` runs them, with the release binary, and says so where
//! it cannot. By hand:
//!
//! `cargo test -p trapline --test it strace -- --ignored`

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::Value;
use trapline_core::{Request, Timestamp};
use trapline_frontier::{Frontier, Store};
use trapline_stores::disk::files::Folder as Files;
use trapline_stores::{DiskOptions, DiskStore, Fault};

use crate::folder::Folder;

/// The binary to be watched, if it is not the one that was built with the tests.
const BINARY: &str = "TRAPLINE_BINARY";
const CHILD_FOLDER: &str = "TRAPLINE_STRACE_FOLDER";
const CHILD_FAULT: &str = "TRAPLINE_STRACE_FAULT";

/// Everything by which bytes get into files or out of the process.
const CALLS: &str =
    "trace=write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,fdatasync,fsync,msync,sync_file_range";

fn binary() -> String {
    std::env::var(BINARY).unwrap_or_else(|_| env!("CARGO_BIN_EXE_trapline").to_owned())
}

/// A program with its threads, watched: what it does goes into a file.
fn watched(trace: &Path, program: &str) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-x", "-s", "40", "-e", CALLS, "-o"]).arg(trace).arg(program);
    strace.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    strace
}

/// What is known of a segment at a moment of the trace.
#[derive(Default)]
struct Segment {
    /// Writes that no sync has covered.
    unsynced: u64,
    /// How many of the first of those each sync under way covers, by thread.
    syncing: BTreeMap<String, u64>,
}

/// What a trace shows.
#[derive(Debug, Default)]
struct Seen {
    answers: u64,
    records: u64,
    syncs: u64,
    /// Answers that came too early, with what was amiss.
    early: Vec<String>,
}

/// Reads a trace. `is_answer` knows the calls that answer somebody; with `own`, each answer stands for at least one
/// record.
fn read(trace: &Path, own: bool, is_answer: impl Fn(&str) -> bool) -> Seen {
    let text = std::fs::read_to_string(trace).expect("strace has written it");
    let mut seen = Seen::default();
    let mut segments: BTreeMap<String, Segment> = BTreeMap::new();
    let mut synced_since_answer = 0;
    // What each thread is in the middle of.
    let mut under_way: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines() {
        let (thread, rest) = line.split_once(' ').expect("strace names the thread");
        let (thread, rest) = (thread.to_owned(), rest.trim_start());
        let (call, begins, ends) = if rest.starts_with("<... ") {
            (under_way.remove(&thread).unwrap_or_default(), false, true)
        } else if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
            under_way.insert(thread.clone(), begun.to_owned());
            (begun.to_owned(), true, false)
        } else {
            (rest.to_owned(), true, true)
        };
        let has_succeeded =
            ends && rest.rsplit_once(" = ").is_some_and(|(_, result)| !result.starts_with('-'));
        if begins && is_answer(&call) {
            seen.answers += 1;
            let dirty: Vec<_> = segments.iter().filter(|(_, segment)| segment.unsynced > 0).collect();
            if let Some((name, _)) = dirty.first() {
                seen.early.push(format!("{name} is not synced: {line}"));
            } else if own && synced_since_answer == 0 {
                seen.early.push(format!("nothing was written and synced for it: {line}"));
            }
            synced_since_answer = 0;
        }
        let file = call.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(file, _)| file);
        let Some(name) = file.filter(|file| file.ends_with(".segment")) else { continue };
        let segment = segments.entry(name.to_owned()).or_default();
        let verb = call.split('(').next().unwrap_or_default();
        if verb.contains("write") {
            // Counted as soon as it begins, and synced only by what begins after its end.
            if begins {
                seen.records += 1;
                segment.unsynced += 1;
            }
        } else if verb == "fdatasync" || verb == "fsync" {
            if begins {
                segment.syncing.insert(thread.clone(), segment.unsynced);
            }
            if ends && let Some(covered) = segment.syncing.remove(&thread).filter(|_| has_succeeded) {
                seen.syncs += 1;
                let covered = covered.min(segment.unsynced);
                segment.unsynced -= covered;
                synced_since_answer += covered;
                // Another sync under way has that much less left to cover.
                segment.syncing.values_mut().for_each(|other| *other = other.saturating_sub(covered));
            }
        }
    }
    seen
}

fn to_stdout(call: &str) -> bool {
    call.starts_with("write(1<") || call.starts_with("writev(1<")
}

/// Runs a command of the binary with these lines as its input; what was seen, and what it printed.
fn run(folder: &Folder, arguments: &[&str], lines: &str) -> (Seen, String) {
    let trace = folder.path.with_extension("trace");
    let url = folder.url();
    let mut strace = watched(&trace, &binary());
    let mut child = strace
        .args(["frontier", "--store", &url, "--json"])
        .args(arguments)
        .spawn()
        .expect("strace is installed");
    child.stdin.take().expect("it is piped").write_all(lines.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{arguments:?}: {:?}", output.status);
    let seen = read(&trace, true, to_stdout);
    let _ = std::fs::remove_file(&trace);
    (seen, String::from_utf8(output.stdout).expect("text"))
}

fn urls(numbers: std::ops::Range<u32>) -> String {
    numbers.map(|number| format!("http://{}.example/{number}\n", number % 500)).collect()
}

#[test]
#[ignore = "needs strace"]
fn no_answer_is_printed_before_its_record_is_synced() {
    println!("watching {}", binary());
    let folder = Folder::new("strace");
    let mut all = Seen::default();
    let mut add = |seen: Seen| {
        assert!(seen.answers > 0 && seen.records > 0, "{seen:?}");
        assert_eq!(seen.early, [""; 0]);
        all.answers += seen.answers;
        all.records += seen.records;
        all.syncs += seen.syncs;
    };
    for batch in 0..3 {
        add(run(&folder, &["admit"], &urls(batch * 2500..(batch + 1) * 2500)).0);
    }
    for _ in 0..3 {
        let (seen, leases) = run(&folder, &["claim", "-n", "40"], "");
        add(seen);
        let settle = |line: &str| {
            let lease: Value = serde_json::from_str(line).expect("a lease");
            format!(
                "{{\"id\":{},\"outcome\":\"done\",\"links\":[\"http://l.example/{}\"]}}\n",
                lease["id"], lease["id"]
            )
        };
        let settlements: String = leases.lines().map(settle).collect();
        assert_eq!(settlements.lines().count(), 40);
        add(run(&folder, &["settle"], &settlements).0);
    }
    println!("{} answers after {} records and {} syncs", all.answers, all.records, all.syncs);
    assert!(all.answers >= 9 && all.records >= 15 && all.syncs >= 15, "{all:?}");
}

#[test]
#[ignore = "needs strace"]
fn no_answer_goes_to_a_guest_before_its_record_is_synced() {
    let folder = Folder::new("strace-guests");
    let trace = folder.path.with_extension("trace");
    let url = folder.url();
    let mut strace = watched(&trace, &binary());
    let holder = strace.args(["frontier", "--store", &url, "hold", "--json"]).spawn();
    let mut holder = holder.expect("strace is installed");
    let mut told = String::new();
    let mut out = BufReader::new(holder.stdout.take().expect("it is piped"));
    out.read_line(&mut told).expect("it says that it serves");
    let told: Value = serde_json::from_str(&told).expect("a line of JSON");
    for batch in 0..6 {
        let mut guest = Command::new(binary())
            .args(["frontier", "--store", &url, "admit", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let lines = urls(batch * 1500..(batch + 1) * 1500);
        guest.stdin.take().expect("it is piped").write_all(lines.as_bytes()).expect("it reads");
        assert!(guest.wait().expect("it ends").success());
    }
    // strace itself does not pass a signal on.
    let ended = Command::new("kill").args(["-TERM", &told["process"].to_string()]).status();
    assert!(ended.expect("there is `kill`").success());
    assert!(holder.wait().expect("it ends").success());
    let is_answer = |call: &str| {
        let to_socket =
            call.split_once('<').is_some_and(|(_, to)| to.starts_with("socket:") || to.starts_with("UNIX"));
        to_socket && (call.starts_with("write") || call.starts_with("send")) && !is_page(call)
    };
    let seen = read(&trace, false, is_answer);
    let _ = std::fs::remove_file(&trace);
    println!("{} answers after {} records and {} syncs", seen.answers, seen.records, seen.syncs);
    assert!(seen.answers >= 12 && seen.records >= 18 && seen.syncs >= 12, "{seen:?}");
    assert_eq!(seen.early, [""; 0]);
}

/// Whether it is the answer to a question: the time that one lets pass is written, but not waited for.
fn is_page(call: &str) -> bool {
    // A frame has its length in four bytes, then its kind; strace writes each byte as `\x05`.
    call.split_once('"').is_some_and(|(_, bytes)| bytes.get(16..20) == Some(PAGE))
}

/// The kind of a page, as the socket's protocol has it.
const PAGE: &str = "\\x05";

/// Would it notice? A store with a fault in it answers too early, and is seen to; one without is not.
#[test]
#[ignore = "needs strace"]
fn planted_faults_are_seen() {
    let watch = |fault: Option<Fault>| {
        let folder = Folder::new(&format!("strace-{fault:?}"));
        let trace = folder.path.with_extension("trace");
        let program = std::env::current_exe().expect("this binary has a name");
        let status = watched(&trace, &program.display().to_string())
            .args(["--exact", "strace::child", "--include-ignored", "--nocapture", "--test-threads", "1"])
            .env(CHILD_FOLDER, &folder.path)
            .env(CHILD_FAULT, fault.map_or(String::new(), |fault| format!("{fault:?}")))
            .output()
            .expect("strace is installed")
            .status;
        assert!(status.success());
        let seen = read(&trace, true, |call| to_stdout(call) && call.contains("@ answered"));
        let _ = std::fs::remove_file(&trace);
        println!("{fault:?}: {} of {} answers too early", seen.early.len(), seen.answers);
        assert_eq!(seen.answers, 20);
        seen.early
    };
    assert_eq!(watch(None), [""; 0]);
    let skipped = watch(Some(Fault::SyncSkipped));
    assert!(skipped.len() == 5 && skipped[0].contains("is not synced"), "{skipped:?}");
    let unwritten = watch(Some(Fault::AnsweredBeforeWrite));
    assert!(unwritten.len() == 5 && unwritten[0].contains("nothing was written"), "{unwritten:?}");
}

/// Admits twenty URLs, one at a time, and says so after each. Does nothing unless [`planted_faults_are_seen`] has started it.
#[test]
fn child() {
    let Ok(folder) = std::env::var(CHILD_FOLDER) else { return };
    let fault = std::env::var(CHILD_FAULT).expect("both are given");
    std::fs::create_dir_all(&folder).expect("it can be made");
    let options = DiskOptions { background: false, ..DiskOptions::default() };
    let store = match Fault::ALL.iter().find(|known| format!("{known:?}") == fault) {
        Some(fault) => DiskStore::faulty(Files::new(&folder), &options, *fault),
        None => DiskStore::open_on(Files::new(&folder), &options),
    };
    let store: Arc<dyn Store> = Arc::new(store.expect("it opens"));
    let now = Timestamp::ZERO;
    let crawl = pollster::block_on(Frontier::builder("c").open_shared(store, now)).expect("the crawl opens");
    for number in 0..20 {
        let request = Request::get(format!("http://a.example/{number}"));
        pollster::block_on(crawl.admit(now, [request])).expect("it is admitted");
        let mut out = std::io::stdout().lock();
        writeln!(out, "@ answered {number}").and_then(|()| out.flush()).expect("somebody listens");
    }
}
