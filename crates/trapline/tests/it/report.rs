//! `trapline report` and the crawl log, of crawls on this machine.

mod servers;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::crawl::{command, crawl, error, lines, site};
use crate::fetch::{ok, serve};
use crate::folder::Folder;

pub(crate) fn report(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trapline"));
    command.arg("report").args(arguments).output().expect("the binary was built and runs")
}

pub(crate) fn rows(arguments: &[&str]) -> Vec<Value> {
    let output = report(&[arguments, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let text = String::from_utf8(output.stdout).expect("it is text");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn of(folder: &Path) -> &str {
    folder.to_str().expect("the path is text")
}

fn counts(rows: &[Value], name: &str, count: &str) -> BTreeMap<String, u64> {
    let pair = |row: &Value| {
        (row[name].as_str().unwrap_or_default().to_owned(), row[count].as_u64().expect("it is counted"))
    };
    rows.iter().map(pair).collect()
}

/// What `pages.jsonl` says.
fn visits(folder: &Path, name: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in lines(folder, "pages.jsonl") {
        let value = &line[name];
        if !value.is_null() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            *counts.entry(value).or_insert(0) += 1;
        }
    }
    counts
}

#[test]
fn reports_agree_with_what_was_fetched_from_folder_and_store() {
    let folder = Folder::new("report");
    let dir = of(&folder.path).to_owned();
    let (address, _) = site(6, "User-agent: *\nDisallow: /p4\n");
    let output = crawl(address, &folder.path, &["--delay", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let store = format!("disk:{dir}/store");
    for at in [&[dir.as_str()][..], &["--store", &store]] {
        let rows = |what: &str| rows(&[&[what], at].concat());
        assert_eq!(counts(&rows("status"), "status", "visits"), visits(&folder.path, "status"));
        assert_eq!(counts(&rows("mime"), "mime", "visits"), visits(&folder.path, "mime"));
        let all = lines(&folder.path, "pages.jsonl").len();
        let whole = &rows("crawl")[0];
        assert_eq!(whole["visits"].as_u64(), Some(all as u64));
        assert_eq!(whole["state"], "nothing is left to do");
        assert_eq!(whole["urls"]["disregarded"], 1);
        let hosts = rows("hosts");
        assert_eq!((hosts.len(), hosts[0]["host"].as_str()), (1, Some(&*address.to_string())));
        assert_eq!(hosts[0]["done"].as_u64(), Some(all as u64));
        assert_eq!(hosts[0]["refused"].as_u64(), visits(&folder.path, "status").get("404").copied());
        let seeds = rows("seeds");
        let home = format!("http://{address}/");
        assert_eq!(
            (seeds.len(), seeds[0]["seed"].as_str(), seeds[0]["status"].as_u64()),
            (1, Some(&*home), Some(200))
        );
        assert_eq!(seeds[0]["urls"], hosts[0]["urls"]);
        let sources = rows("sources");
        assert_eq!((sources[0]["source"].as_str(), &sources[0]["urls"]), (Some(&*home), &hosts[0]["urls"]));
        let errors = rows("errors");
        let robots = errors.iter().find(|row| row["kind"] == "disregarded").unwrap();
        assert_eq!((robots["reason"].as_str(), robots["count"].as_u64()), (Some("robots"), Some(1)));
        assert_eq!(robots["example"], format!("{home}p4"));
        assert!(
            errors.iter().any(|row| row["kind"] == "dropped" && row["reason"] == "nofollow"),
            "{errors:?}"
        );
        let queues = rows("queues");
        assert_eq!(
            (queues[0]["state"].as_str(), queues[0]["why"].as_str()),
            (Some("empty"), Some("nothing is pending"))
        );
        for name in [
            "pending",
            "leased",
            "done",
            "disregarded",
            "dead",
            "errors",
            "spent",
            "balance",
            "latest_cost",
            "average_cost",
            "precedence",
        ] {
            assert!(queues[0][name].is_number(), "{name}: {}", queues[0]);
        }
    }
    let csv = report(&["hosts", &dir, "--format", "csv"]);
    let csv = String::from_utf8(csv.stdout).unwrap();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 2, "{csv}");
    assert_eq!(lines[0], "urls,pending,leased,done,refused,disregarded,dead,bytes,host");
    assert!(lines[1].ends_with(&format!(",{address}")), "{csv}");
    let text = String::from_utf8(report(&["status", &dir]).stdout).unwrap();
    assert!(text.starts_with("VISITS  BYTES  STATUS\n"), "{text}");
    assert_eq!(rows(&["queues", &dir, "--limit", "0"]).len(), 0);
}

#[test]
fn a_crawl_that_runs_is_reported_on_with_why_its_queues_wait() {
    let folder = Folder::new("report-running");
    let dir = of(&folder.path).to_owned();
    let (address, _) = site(50, "");
    let mut child = command(address, &folder.path, &["--delay", "3s", "-q"]);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let told = loop {
        let snoozed = |row: &Value| row["state"] == "snoozed" && row["done"].as_u64() > Some(0);
        let ready = folder.path.join("store").exists() && folder.path.join("pages.jsonl").exists();
        let queues = if ready { rows(&["queues", &dir]) } else { Vec::new() };
        if let Some(row) = queues.into_iter().find(snoozed) {
            break row;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it never waited");
        std::thread::sleep(Duration::from_millis(50));
    };
    let why = told["why"].as_str().unwrap().to_owned();
    let whole = rows(&["crawl", &dir]).remove(0);
    let process = child.id();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(why.starts_with("not to be fetched from before 20") && why.ends_with('Z'), "{why}");
    assert_eq!((whole["state"].as_str(), whole["process"].as_u64()), (Some("running"), Some(process.into())));
    assert_eq!(whole["pages"].as_u64(), Some(1), "{whole}");
    let after = rows(&["crawl", &dir]).remove(0);
    assert_eq!(
        (after["state"].as_str(), after["process"].as_u64(), after["pages"].as_u64()),
        (Some("not finished"), None, Some(1))
    );
}

#[test]
fn what_reports_count_survives_kills_to_the_visit() {
    let folder = Folder::new("report-killed");
    let dir = of(&folder.path).to_owned();
    let (address, asked) = site(60, "");
    for kill in 1..4 {
        let mut child = command(address, &folder.path, &["--delay", "1ms", "-q"]);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while asked.lock().unwrap().len() < 12 * kill && begun.elapsed() < Duration::from_secs(20) {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let sum = |counts: BTreeMap<String, u64>| counts.values().sum::<u64>();
        let told = sum(counts(&rows(&["status", &dir]), "status", "visits"));
        let written = sum(visits(&folder.path, "status"));
        // One may have been written and not settled.
        assert!(told > 0 && (told..=told + 1).contains(&written), "{told} of {written}");
    }
    let output = crawl(address, &folder.path, &["--delay", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    assert_eq!(counts(&rows(&["status", &dir]), "status", "visits"), visits(&folder.path, "status"));
    let store = format!("disk:{dir}/store");
    assert_eq!(
        counts(&rows(&["status", "--store", &store]), "status", "visits"),
        visits(&folder.path, "status")
    );
    let again = crawl(address, &folder.path, &["--delay", "0"]);
    assert_eq!(again.status.code(), Some(0), "{}", error(&again));
    assert_eq!(
        counts(&rows(&["status", "--store", &store]), "status", "visits"),
        visits(&folder.path, "status")
    );
}

#[test]
fn a_crawl_in_memory_leaves_what_can_be_told_without_its_store() {
    let folder = Folder::new("report-memory");
    let dir = of(&folder.path).to_owned();
    let (address, _) = site(3, "");
    crawl(address, &folder.path, &["--delay", "0", "--store", "memory:"]);
    assert_eq!(counts(&rows(&["mime", &dir]), "mime", "visits"), visits(&folder.path, "mime"));
    assert_eq!(rows(&["crawl", &dir])[0]["state"], "ended");
    let output = report(&["queues", &dir]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("name its store with --store URL"), "{}", error(&output));
    let output = report(&["queues", "/nonexistent"]);
    assert!(error(&output).contains("there is no crawl in /nonexistent"), "{}", error(&output));
    let output = report(&["queues", "--store", "memory:"]);
    assert!(error(&output).contains("name the crawl's folder instead"), "{}", error(&output));
}

#[test]
fn the_crawl_log_has_a_line_for_each_settlement_in_heritrixs_columns() {
    let folder = Folder::new("crawl-log");
    fs::create_dir_all(&folder.path).unwrap();
    let log = folder.path.join("crawl.log");
    let address = serve(|path, _| match path {
        "/robots.txt" => ok("Content-Type: text/plain\r\n", "User-agent: *\nDisallow: /private\n"),
        "/" => ok(
            "Content-Type: text/html\r\n",
            "<a href=/private>1</a><a href='/a b\u{2028}c'>2</a><a href=/gone>3</a><a href=/odd>4</a><a href=/broken>5</a>",
        ),
        "/gone" => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/odd" => ok("Content-Type: text/x\t y\r\n", "x"),
        "/broken" => "no HTTP\r\n\r\n".to_owned(),
        _ => ok("Content-Type: text/plain\r\n", "hello"),
    });
    let more = ["--delay", "0", "--crawl-log", of(&log), "--set", "retry.max=1", "--set", "retry.wait=10ms"];
    let output = crawl(address, &folder.path, &more);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split(' ').filter(|field| !field.is_empty()).collect()).collect();
    assert!(lines.iter().all(|fields| fields.len() == 12), "{text}");
    let of = |path: &str| -> Vec<&Vec<&str>> {
        let url = format!("http://{address}{path}");
        lines.iter().filter(|fields| fields[3] == url).collect()
    };
    let home = of("/")[0];
    let seed = format!("http://{address}/");
    assert_eq!((home[1], home[4], home[5], home[6], home[7]), ("200", "-", "-", "text/html", "#000"));
    assert_eq!((home[10], home[11]), (&*seed, "-"));
    assert!(home[0].ends_with('Z') && home[0].len() == 24 && home[9].starts_with("blake3:"), "{home:?}");
    let (start, took) = home[8].split_once('+').unwrap();
    assert!(start.len() == 17 && took.parse::<u64>().is_ok(), "{home:?}");
    assert_eq!((of("/private")[0][1], of("/private")[0][11]), ("-9998", "disregarded:robots"));
    assert_eq!((of("/gone")[0][1], of("/gone")[0][4], of("/gone")[0][5]), ("404", "L", &*seed));
    let broken: Vec<_> = of("/broken").iter().map(|fields| (fields[1], fields[11])).collect();
    assert_eq!(broken, [("-3", "retry,error:bad_response"), ("-3", "dead,2t,error:bad_response")]);
    assert_eq!(lines.len(), 7, "{text}");
    // A line that is fixed in width, as tools expect it.
    assert_eq!(&text.lines().next().unwrap()[24..30], "   200");
}
