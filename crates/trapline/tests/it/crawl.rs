//! `trapline crawl` and what goes with it, against servers on this machine.

mod killed;
mod service;
mod steering;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) use killed::leased;

use crate::fetch::{ok, serve};
use crate::folder::Folder;

/// The paths that were asked for, in order.
pub(crate) type Asked = Arc<Mutex<Vec<String>>>;

const HTML: &str = "Content-Type: text/html\r\n";

/// A site of so many pages, each of which leads to the next two and to itself, and what was asked of it.
pub(crate) fn site(pages: usize, robots: &'static str) -> (SocketAddr, Asked) {
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    let address = site_that(pages, robots, move |path| {
        log.lock().expect("nobody panics with it").push(path.to_owned());
    });
    (address, asked)
}

/// The same site, which does something of the test's own before it answers.
pub(crate) fn site_that(
    pages: usize,
    robots: &'static str,
    before: impl Fn(&str) + Send + Clone + 'static,
) -> SocketAddr {
    serve(move |path, _| {
        before(path);
        if path == "/robots.txt" {
            return ok("Content-Type: text/plain\r\n", robots);
        }
        let number =
            if path == "/" { Some(0) } else { path.strip_prefix("/p").and_then(|n| n.parse::<usize>().ok()) };
        match number.filter(|number| *number < pages) {
            Some(number) => ok(
                HTML,
                &format!(
                    "<title>Page {number}</title><a href=/p{}>1</a><a href=/p{}>2</a><a href=#top>3</a>\
                     <a rel=nofollow href=/never>4</a><a href=/p1?sort=up>5</a><a href=http://other.test/>6</a>",
                    number + 1,
                    number + 2
                ),
            ),
            None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        }
    })
}

pub(crate) fn command(address: SocketAddr, out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trapline"));
    command
        .arg("crawl")
        .arg(format!("http://{address}/"))
        .args(["--allow-network", "127.0.0.0/8", "--no-sitemaps", "--contact", "a@b.test", "--out"])
        .arg(out)
        .args(more)
        .stdin(Stdio::null());
    command
}

pub(crate) fn crawl(address: SocketAddr, out: &Path, more: &[&str]) -> Output {
    command(address, out, more).output().expect("the binary was built and runs")
}

pub(crate) fn trapline(arguments: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trapline"));
    command.args(arguments).arg(dir).output().expect("the binary was built and runs")
}

pub(crate) fn lines(out: &Path, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(out.join(file)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

pub(crate) fn paths(out: &Path) -> Vec<String> {
    let path = |line: &Value| {
        let url = line["url"].as_str().expect("a line has a URL").to_owned();
        url[url[8..].find('/').expect("a path") + 8..].to_owned()
    };
    lines(out, "pages.jsonl").iter().map(path).collect()
}

pub(crate) fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_site_is_crawled_and_told_of() {
    let folder = Folder::new("crawl-site");
    let (address, asked) = site(6, "User-agent: *\nDisallow: /p4\n");
    let output = crawl(address, &folder.path, &["--delay", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let all: BTreeSet<String> = paths(&folder.path).into_iter().collect();
    let expected = ["/", "/p1", "/p1?sort=up", "/p2", "/p3", "/p5", "/p6", "/p7"];
    // Those that are not there were asked for as well.
    let expected: BTreeSet<String> = expected
        .map(str::to_owned)
        .into_iter()
        .filter(|path| path != "/p5" && path != "/p6" && path != "/p7")
        .collect();
    assert!(all.is_superset(&expected), "{all:?}");
    assert!(!all.contains("/p4") && !all.contains("/never"), "{all:?}");
    let asked = asked.lock().unwrap().clone();
    assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), asked.len(), "each once: {asked:?}");
    let home = &lines(&folder.path, "pages.jsonl")[0];
    assert_eq!(home["status"], 200);
    assert_eq!(home["title"], "Page 0");
    assert_eq!(
        (home["v"].as_u64(), home["depth"].as_u64(), home["outcome"].as_str()),
        (Some(1), Some(0), Some("done"))
    );
    let skipped = lines(&folder.path, "skipped.jsonl");
    let reason = |end: &str| {
        let line = skipped.iter().find(|line| line["url"].as_str().unwrap().ends_with(end));
        line.map(|line| {
            (line["reason"].as_str().unwrap().to_owned(), line["detail"].as_str().unwrap().to_owned())
        })
    };
    assert_eq!(reason("/p4"), Some(("robots".to_owned(), "line 2: Disallow: /p4".to_owned())));
    assert_eq!(reason("other.test/"), Some(("scope".to_owned(), "reject the rest".to_owned())));
    assert_eq!(reason("/never").map(|(rule, _)| rule), Some("nofollow".to_owned()));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.starts_with("Ended: all is done\n"), "{report}");
    assert_eq!(fs::read_to_string(folder.path.join("report.txt")).unwrap(), report);
    let json: Value =
        serde_json::from_str(&fs::read_to_string(folder.path.join("report.json")).unwrap()).unwrap();
    assert_eq!(json["ended"], "exhausted");
    assert_eq!(json["pages"].as_u64(), Some(all.len() as u64));

    let last = &lines(&folder.path, "status.json")[0];
    assert_eq!(
        (&last["state"], &last["ended"], &last["pending"]),
        (&"ended".into(), &"exhausted".into(), &0.into())
    );

    // Once more: nothing is left to do, and nothing is asked for.
    let before = asked.len();
    let output = crawl(address, &folder.path, &["--delay", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    assert_eq!(asked.len(), before);
}

#[test]
fn processors_are_left_out_reordered_and_added_by_the_configuration() {
    let (address, _) = site(4, "");
    let visited = |name: &str, chains: &str| {
        let folder = Folder::new(name);
        fs::create_dir_all(&folder.path).unwrap();
        let file = folder.path.join("crawl.toml");
        fs::write(&file, format!("[chains]\n{chains}\n[pace]\ndelay = \"0\"\n")).unwrap();
        let output = crawl(address, &folder.path, &["--config", file.to_str().unwrap()]);
        let skipped: Vec<_> = lines(&folder.path, "skipped.jsonl")
            .iter()
            .map(|line| format!("{} {}", line["reason"].as_str().unwrap(), line["url"].as_str().unwrap()))
            .collect();
        (output.status.code(), error(&output), paths(&folder.path), skipped)
    };
    // As it is.
    let (code, complaint, pages, _) = visited("chains-usual", "");
    assert_eq!(code, Some(0), "{complaint}");
    assert!(pages.iter().any(|path| path == "/p1?sort=up") && !pages.contains(&"/never".to_owned()));
    // Without `nofollow`.
    let (_, _, pages, _) = visited(
        "chains-less",
        "candidate = [\"scheme\", \"kinds\", \"scope\", \"limits\", \"traps\", \"patterns\", \"queue\"]",
    );
    assert!(pages.contains(&"/never".to_owned()), "{pages:?}");
    // With `no_query`.
    let more =
        "candidate = [\"scheme\", \"kinds\", \"nofollow\", \"scope\", \"no_query\", \"limits\", \"queue\"]";
    let (_, _, pages, skipped) = visited("chains-more", more);
    assert!(!pages.iter().any(|path| path.contains('?')), "{pages:?}");
    assert!(skipped.iter().any(|line| line.starts_with("no_query ")), "{skipped:?}");
    // A link that two rules drop: who comes first has the say.
    let drops = |name: &str, order: &str| {
        let (_, _, _, skipped) =
            visited(name, &format!("candidate = [{order}]\n[scope]\nexclude = ['/never']"));
        skipped.into_iter().find(|line| line.contains("/never")).unwrap_or_default()
    };
    let first = drops("chains-first", r#""scope", "nofollow", "patterns", "queue""#);
    assert!(first.starts_with("nofollow "), "{first}");
    let last = drops("chains-last", r#""scope", "patterns", "nofollow", "queue""#);
    assert!(last.starts_with("patterns "), "{last}");
    // Without `extract` there are no links.
    let (code, _, pages, _) = visited("chains-fetch", "fetch = [\"scope\", \"robots\", \"fetch\"]");
    assert_eq!((code, pages), (Some(0), vec!["/".to_owned()]));
    // What comes too late, or too early, makes no sense.
    let odd = r#"fetch = ["scope", "extract", "fetch", "robots"]"#;
    let (code, complaint, pages, _) = visited("chains-fetch-order", odd);
    assert_eq!((code, pages), (Some(2), Vec::new()), "{complaint}");
    for wrong in [
        "the fetch chain has `robots` behind `fetch`, and it stands before it: what robots.txt forbids would be fetched",
        "the fetch chain has `fetch` behind `extract`, and it stands before it: nothing would be found in what has not come yet",
    ] {
        assert!(complaint.contains(wrong), "{complaint}");
    }
    // Who does without robots.txt is told so as loudly as with --ignore-robots.
    let (code, complaint, _, _) = visited("chains-fetch-robots", r#"fetch = ["scope", "fetch"]"#);
    assert_eq!(code, Some(0), "{complaint}");
    assert!(complaint.contains("trapline crawl: robots.txt is IGNORED, because chains.fetch"), "{complaint}");
    // Who tells of a page before its links were considered knows of none that were kept; they are followed all the same.
    let kept = |name: &str, order: &str| {
        let folder = Folder::new(name);
        fs::create_dir_all(&folder.path).unwrap();
        let file = folder.path.join("crawl.toml");
        fs::write(&file, format!("[chains]\ndisposition = [{order}]\n[pace]\ndelay = \"0\"\n")).unwrap();
        let output = crawl(address, &folder.path, &["--config", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", error(&output));
        let pages = lines(&folder.path, "pages.jsonl");
        (pages[0]["links_kept"].as_u64(), pages.len())
    };
    let (before, pages) = kept("chains-disposition", r#""outcome", "links", "sitemaps", "pace", "output""#);
    assert!(before.is_some_and(|kept| kept > 0), "{before:?}");
    let after = kept("chains-disposition-order", r#""outcome", "output", "pace", "sitemaps", "links""#);
    assert_eq!(after, (Some(0), pages));
    // What is not there.
    let (code, complaint, _, _) = visited("chains-wrong", "fetch = [\"scope\", \"robot\", \"fetch\"]");
    assert_eq!(code, Some(2));
    assert!(
        complaint.contains("the fetch chain has no processor `robot`; did you mean `robots`?"),
        "{complaint}"
    );
}

/// A crawl that runs, and is killed with its test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what} did not happen");
        std::thread::yield_now();
    }
}

#[test]
fn a_running_crawl_is_paused_resumed_fed_and_stopped_through_its_folder() {
    let folder = Folder::new("crawl-control");
    let (address, asked) = site(100_000, "");
    let mut running = Running(
        command(address, &folder.path, &["--delay", "5ms", "-q"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let asked = || asked.lock().unwrap().len();
    until("a page", || asked() > 3);

    let paused = trapline(&["pause"], &folder.path);
    let after = asked();
    assert_eq!(paused.status.code(), Some(0), "{}", error(&paused));
    until("the status tells of it", || {
        let status = trapline(&["status", "--json"], &folder.path);
        assert_eq!(status.status.code(), Some(0), "{}", error(&status));
        let status: Value = serde_json::from_slice(&status.stdout).expect("it is JSON");
        status["state"] == "paused" && status["in_flight"] == 0
    });
    // Seeds are taken while it is paused.
    fs::write(
        folder.path.join("inject/more.txt"),
        format!("# more\nhttp://{address}/extra\nftp://x.test/\n"),
    )
    .unwrap();
    until("the seeds were taken up", || folder.path.join("inject/done/more.txt").exists());
    assert_eq!(asked(), after, "nothing is asked for after the acknowledgement");
    assert_eq!(trapline(&["resume"], &folder.path).status.code(), Some(0));
    until("it goes on", || asked() > after + 3);

    let second = crawl(address, &folder.path, &[]);
    assert_eq!(second.status.code(), Some(2));
    assert!(error(&second).contains("already crawls into"), "{}", error(&second));

    assert_eq!(trapline(&["stop"], &folder.path).status.code(), Some(0));
    let mut first = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "Ended: stopped; run the same command again to go on\n");
    assert_eq!(running.0.wait().unwrap().code(), Some(4));
    let last = &lines(&folder.path, "status.json")[0];
    assert_eq!(
        (&last["state"], &last["ended"], &last["in_flight"]),
        (&"ended".into(), &"stopped".into(), &0.into())
    );
    assert_eq!(last["pages"], lines(&folder.path, "pages.jsonl").len());
    let stopped = trapline(&["stop"], &folder.path);
    assert_eq!(stopped.status.code(), Some(2));
    assert!(error(&stopped).contains("no crawl runs in"), "{}", error(&stopped));
    let status = trapline(&["status"], &folder.path);
    assert!(String::from_utf8_lossy(&status.stdout).contains("not running; `trapline crawl`"));
}

#[test]
fn limits_are_kept_to_the_page_and_can_be_raised() {
    let folder = Folder::new("crawl-limit");
    let (address, asked) = site(1000, "");
    let more = ["--delay", "0", "--per-host", "8", "-q", "--max-pages"];
    for limit in ["7", "20"] {
        let output = crawl(address, &folder.path, &[&more[..], &[limit]].concat());
        assert_eq!(output.status.code(), Some(3), "{}", error(&output));
        assert_eq!(paths(&folder.path).len().to_string(), limit);
        // And robots.txt, once.
        assert_eq!((asked.lock().unwrap().len() - 1).to_string(), limit);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(told.contains("as were wanted; a higher --max-pages goes on\n"), "{told}");
    }
    let lost = Folder::new("crawl-limit-memory");
    // As on a full disk, there is no room beside the old status for a new one.
    fs::create_dir_all(lost.path.join("status.part")).unwrap();
    let output = crawl(address, &lost.path, &[&more[..], &["7", "--store", "memory:"]].concat());
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("as were wanted; a crawl in memory: cannot go on\n"), "{told}");
    assert_eq!(lines(&lost.path, "status.json")[0]["ended"], "max_pages");
    let budget = Folder::new("crawl-budget");
    asked.lock().unwrap().clear();
    let output = crawl(address, &budget.path, &["--delay", "0", "--per-host", "8", "-q", "--budget", "9"]);
    assert_eq!(output.status.code(), Some(3), "{}", error(&output));
    assert_eq!(asked.lock().unwrap().len(), 9 + 1);
    // What is held back is told, also later, with what lets it go on.
    let json = || -> Value {
        serde_json::from_str(&fs::read_to_string(budget.path.join("report.json")).unwrap()).unwrap()
    };
    let held = format!(
        "{} URLs wait because the budgets of their queues are used up; a higher --budget goes on",
        json()["pending"]
    );
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.starts_with(&format!("Ended: {held}\n")), "{told}");
    assert_eq!(json()["ended"], "budgets");
    let status = trapline(&["status"], &budget.path);
    assert!(String::from_utf8_lossy(&status.stdout).contains(&held), "{status:?}");
    let more = ["--delay", "0", "-q", "--budget", "12"];
    assert_eq!(crawl(address, &budget.path, &more).status.code(), Some(3));
    assert_eq!(asked.lock().unwrap().len(), 12 + 1);
    // A queue that somebody has retired holds its URLs back whatever its budget.
    let store = format!("disk:{}", budget.path.join("store").display());
    let key = address.to_string();
    let retired = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["frontier", "--store", &store, "steer", "queue", &key, "retire"])
        .output()
        .unwrap();
    assert_eq!(retired.status.code(), Some(0), "{}", error(&retired));
    let output = crawl(address, &budget.path, &["--delay", "0", "-q"]);
    assert_eq!(output.status.code(), Some(3), "{}", error(&output));
    assert_eq!((json()["ended"].as_str(), asked.lock().unwrap().len()), (Some("retired"), 12 + 1));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains(" in queues that are retired; "), "{told}");
}

#[test]
fn a_seed_that_was_typed_is_fetched_before_the_next_one_comes() {
    let folder = Folder::new("crawl-typed");
    let (address, asked) = site(1, "");
    let mut running = Running(
        Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args([
                "crawl",
                "--seeds",
                "-",
                "--allow-network",
                "127.0.0.0/8",
                "--no-sitemaps",
                "-q",
                "--delay",
            ])
            .args(["0", "--contact", "a@b.test", "--out"])
            .arg(&folder.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let mut typing = running.0.stdin.take().unwrap();
    for page in ["/x", "/y"] {
        writeln!(typing, "http://{address}{page}  # mine").unwrap();
        until("the page is asked for", || asked.lock().unwrap().iter().any(|path| path == page));
    }
    drop(typing);
    // Neither is there.
    assert_eq!(running.0.wait().unwrap().code(), Some(1));
}

#[test]
fn what_is_different_for_a_host_may_be_said_of_an_address() {
    let folder = Folder::new("crawl-address");
    let (address, asked) = site(1000, "");
    fs::create_dir_all(&folder.path).unwrap();
    let file = folder.path.join("crawl.toml");
    fs::write(
        &file,
        "[pace]\ndelay = \"1h\"\n[[host]]\nmatch = \"127.0.0.1\"\ndelay = \"0\"\nbudget = 5\nuser_agent = \"Other/1\"\n\
         [[host]]\nmatch = \"::1\"\nbudget = 7\n[[host]]\nmatch = \"[2001:db8::1]\"\nbudget = 7\n",
    )
    .unwrap();
    let output = crawl(address, &folder.path, &["-q", "--config", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "{}", error(&output));
    assert_eq!(asked.lock().unwrap().len(), 5 + 1);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("`trapline steer DIR --host HOST --set budget=N` lets a host go on"), "{told}");
    let store = format!("disk:{}", folder.path.join("store").display());
    let steered = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["frontier", "--store", &store, "steer", "queue", &address.to_string(), "queue_budget=8"])
        .output()
        .unwrap();
    assert_eq!(steered.status.code(), Some(0), "{}", error(&steered));
    let output = crawl(address, &folder.path, &["-q", "--config", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "{}", error(&output));
    assert_eq!(asked.lock().unwrap().len(), 8 + 1);
}

#[test]
fn bad_input_is_told_of_and_hurts_nobody() {
    let folder = Folder::new("crawl-bad");
    let (address, _) = site(2, "");
    fs::create_dir_all(&folder.path).unwrap();
    let seeds = folder.path.join("seeds.txt");
    fs::write(&seeds, format!("# seeds\nftp://x.test/\n{address}/p1\n\n\u{1b}[31m\n")).unwrap();
    let output = crawl(address, &folder.path, &["--delay", "0", "-q", "--seeds", seeds.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    assert!(
        error(&output).contains("seeds.txt:2: `ftp:` is not fetched; write an http or https URL"),
        "{}",
        error(&output)
    );
    assert!(error(&output).contains("seeds.txt:5: this is no URL"), "{}", error(&output));
    assert!(!error(&output).contains('\u{1b}'), "{}", error(&output));

    let check = |more: &[&str], message: &str| {
        let output = crawl(address, &folder.path, more);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", error(&output));
        assert!(error(&output).contains(message), "{more:?}: {}", error(&output));
    };
    check(&["http://"], "`http://`: this is no URL");
    check(&["--delay", "soon"], "--delay");
    check(&["--scope", "planet"], "--scope");
    check(&["--exclude", "("], "--exclude");
    check(&["--set", "pace.dely=1s"], "did you mean `delay`?");
    check(&["--config", "/nowhere/crawl.toml"], "cannot read the configuration");
    check(&["--store", "disc:x"], "--store");
    check(&["mailto:a@b.test"], "`mailto:` is not fetched");
    check(&["--seeds", "/nowhere/seeds.txt"], "cannot read seeds from /nowhere/seeds.txt");
    check(&["--set", "chains.fetch=[\"scope\"]"], "the fetch chain needs `fetch`");
    // What is wrong is told before anything is removed.
    for wrong in [&["--set", "chains.fetch=[\"scope\"]"][..], &[]] {
        let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args(["crawl", "--fresh", "--yes", "--out"])
            .arg(&folder.path)
            .args(wrong)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", error(&output));
        assert!(!lines(&folder.path, "pages.jsonl").is_empty(), "{wrong:?}");
    }
    // An address that may not be dialled is told of at once, and what can be done.
    let guarded = Folder::new("crawl-guarded");
    let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["crawl", &format!("http://{address}/"), "--contact", "a@b.test", "--out"])
        .arg(&guarded.path)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    let refused = "the host has no address that may be dialled; --allow-network NETWORK, such as 127.0.0.0/8, allows it";
    assert!(error(&output).contains(&format!("robots.txt cannot be had: {refused}")), "{}", error(&output));
    let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["crawl", &format!("http://{address}/"), "--ignore-robots", "--fresh", "--out"])
        .arg(&guarded.path)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    let skipped = &lines(&guarded.path, "skipped.jsonl")[0];
    assert_eq!((&skipped["reason"], &skipped["detail"]), (&"address_refused".into(), &refused.into()));
    // Seeds that were dropped in before the start are taken up.
    let dropped = Folder::new("crawl-dropped");
    fs::create_dir_all(dropped.path.join("inject")).unwrap();
    fs::write(dropped.path.join("inject/seeds.txt"), format!("{address}/p1\n")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["crawl", "--allow-network", "127.0.0.0/8", "--delay", "0", "--contact", "a@b.test", "--out"])
        .arg(&dropped.path)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    assert!(
        lines(&dropped.path, "pages.jsonl").iter().any(|line| line["url"] == format!("http://{address}/p1"))
    );
    // Somebody else's results are not written over.
    let other = Folder::new("crawl-other");
    fs::create_dir_all(&other.path).unwrap();
    fs::write(other.path.join("pages.jsonl"), "{}\n").unwrap();
    let output = crawl(address, &other.path, &["--delay", "0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("holds results of another crawl"), "{}", error(&output));
    assert_eq!(fs::read_to_string(other.path.join("pages.jsonl")).unwrap(), "{}\n");
    let output = crawl(address, &other.path, &["--delay", "0", "--fresh"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    // A crawl in memory is always a new one. It asks for --fresh where there are results, and that removes only them.
    assert!(other.path.join("store").is_dir());
    for (more, code, message) in [
        (
            &[][..],
            2,
            "holds results of another crawl: choose another folder with --out, or remove them with --fresh",
        ),
        (&["--fresh"], 0, ""),
    ] {
        let output =
            crawl(address, &other.path, &[&["--delay", "0", "-q", "--store", "memory:"], more].concat());
        assert_eq!(output.status.code(), Some(code), "{}", error(&output));
        assert!(error(&output).contains(message), "{}", error(&output));
    }
    assert!(other.path.join("store").is_dir());
    // What is kept elsewhere is not removed with the folder.
    let elsewhere = format!("disk:{}", other.path.join("elsewhere").display());
    let output = crawl(address, &other.path, &["--fresh", "--store", &elsewhere]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("--fresh removes only what is in the folder"), "{}", error(&output));
    // Results before the first settlement are this crawl's too: it can be run again.
    let excluded = Folder::new("crawl-excluded");
    for _ in 0..2 {
        let output = crawl(address, &excluded.path, &["--exclude", "127"]);
        assert_eq!(output.status.code(), Some(1), "{}", error(&output));
        assert_eq!(lines(&excluded.path, "skipped.jsonl")[0]["reason"], "patterns");
    }
    // Nothing to begin with.
    let empty = Folder::new("crawl-empty");
    let output = trapline(&["crawl", "--out"], &empty.path);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("no seeds: name a URL to begin with"), "{}", error(&output));
    assert!(!empty.path.exists(), "nothing is left behind");
    let elsewhere = Folder::new("crawl-empty-store");
    let store = format!("disk:{}", elsewhere.path.display());
    let output = trapline(&["crawl", "--store", &store, "--out"], &empty.path);
    assert!(error(&output).contains("no seeds: name a URL to begin with"), "{}", error(&output));
    assert!(!empty.path.exists(), "nothing is left behind");
    // What is hidden is no seeds file.
    fs::create_dir_all(empty.path.join("inject")).unwrap();
    fs::write(empty.path.join("inject/.seeds.txt.swp"), "x").unwrap();
    let output = trapline(&["crawl", "--out"], &empty.path);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    assert!(error(&output).contains("no seeds: name a URL to begin with"), "{}", error(&output));
    // A seed that is not there: the server answers, and nothing was fetched. The same where nobody writes pages down.
    let missing = Folder::new("crawl-missing");
    for more in [&[][..], &["--fresh", "--set", "output.pages=false"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args(["crawl", &format!("http://{address}/missing"), "--delay", "0", "--contact", "a@b.test"])
            .args(["--allow-network", "127.0.0.0/8", "--no-sitemaps", "-q", "--out"])
            .arg(&missing.path)
            .args(more)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    }
    // Once one page has come, an error is only an error, also in a later run.
    let output = crawl(address, &missing.path, &["--delay", "0", "-q", "--fresh"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let output = crawl(address, &missing.path, &["--delay", "0", "-q", &format!("http://{address}/missing")]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    // A host that is not there: all is done, and nothing worked.
    let nobody = Folder::new("crawl-nobody");
    let gone: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let output = crawl(gone, &nobody.path, &["--ignore-robots", "--set", "retry.max=0", "--delay", "0"]);
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    assert!(error(&output).contains("robots.txt is IGNORED"), "{}", error(&output));
}

#[test]
fn pages_and_errors_are_counted_alike_wherever_they_are_told() {
    let folder = Folder::new("crawl-counts");
    // A page that fails, one that is gone, and one that moved.
    let address = serve(|path, _| match path {
        "/" => ok(HTML, "<a href=/gone>1</a><a href=/broken>2</a><a href=/moved>3</a>"),
        "/moved" => "HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/broken" => "HTTP/1.1 500 Oh no\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
    });
    let more = ["--delay", "0", "--set", "retry.max=1", "--set", "retry.wait=10ms", "-q"];
    let output = crawl(address, &folder.path, &more);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let [status, report] = ["status.json", "report.json"].map(|name| -> Value {
        serde_json::from_str(&fs::read_to_string(folder.path.join(name)).unwrap()).unwrap()
    });
    assert_eq!((status["pages"].as_u64(), status["errors"].as_u64()), (Some(3), Some(2)), "{status}");
    assert_eq!((report["pages"].as_u64(), report["failed"].as_u64()), (Some(3), Some(2)), "{report}");
    let host = &report["hosts"][0];
    assert_eq!((host["pages"].as_u64(), host["errors"].as_u64()), (Some(3), Some(2)), "{host}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("\nPages: 3 of 1 hosts, 2 errors, "), "{text}");
}

#[test]
fn a_sitemap_alone_is_not_what_was_wanted() {
    // The seed is gone, and the sitemap has moved.
    let address = serve(|path, _| match path {
        "/sitemap.xml" => "HTTP/1.1 301 Moved\r\nLocation: /map.xml\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/map.xml" => ok("Content-Type: text/xml\r\n", "<urlset></urlset>"),
        _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
    });
    let folder = Folder::new("crawl-sitemap-alone");
    for more in [&[][..], &["--fresh", "--set", "output.pages=false"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args(["crawl", &format!("http://{address}/"), "--delay", "0", "--contact", "a@b.test"])
            .args(["--allow-network", "127.0.0.0/8", "-q", "--out"])
            .arg(&folder.path)
            .args(more)
            .output()
            .unwrap();
        if more.is_empty() {
            let paths = paths(&folder.path);
            assert!(paths.contains(&"/map.xml".to_owned()), "{paths:?}");
        }
        assert_eq!(output.status.code(), Some(1), "{more:?}: {}", error(&output));
    }
}
