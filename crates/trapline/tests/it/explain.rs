//! `trapline explain`, against crawls on this machine.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::crawl::{Running, command, crawl, error, site, until};
use crate::fetch::{ok, serve};
use crate::folder::Folder;

fn explain(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trapline"));
    command
        .arg("explain")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary was built and runs");
    child.stdin.take().expect("it was asked for").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn rows(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).expect("it is text");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn one(folder: &Path, url: &str) -> Value {
    let folder = folder.display().to_string();
    let output = explain(&["--json", "--out", &folder, url], "");
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    rows(&output).remove(0)
}

#[test]
fn every_part_of_a_decision_is_told() {
    let folder = Folder::new("explain");
    let (address, _) = site(6, "User-agent: *\nDisallow: /p4\nCrawl-delay: 0.01\n");
    let output = crawl(address, &folder.path, &["--delay", "0", "--max-pages", "3"]);
    assert_eq!(output.status.code(), Some(3), "{}", error(&output));
    let home = one(&folder.path, &format!("HTTP://{address}/#top"));
    assert_eq!(home["canonical"], format!("http://{address}/"));
    assert_eq!(home["queue"], address.to_string());
    assert_eq!(home["identity"].as_str().map(str::len), Some(32), "{home}");
    assert!(home["partition"].as_u64().is_some_and(|partition| partition < 256), "{home}");
    assert_eq!((home["class"].as_u64(), home["cost"].as_u64()), (Some(127), Some(1)));
    assert_eq!(home["state"]["name"], "done");
    assert_eq!((home["page"]["status"].as_u64(), home["page"]["visits"].as_u64()), (Some(200), Some(1)));
    assert_eq!(home["next"]["what"], "nothing: it is done, and no other visit is planned");
    assert_eq!(home["robots"]["verdict"], "allowed");
    assert_eq!(home["robots"]["crawl_delay"], "10ms");
    assert_eq!(home["budget"]["spent"].as_u64(), Some(3), "{home}");

    let forbidden = one(&folder.path, &format!("http://{address}/p4"));
    assert_eq!(forbidden["robots"]["line"], "line 2: Disallow: /p4");
    let what = forbidden["next"]["what"].as_str().unwrap();
    assert!(what.contains("robots.txt disallows it (line 2: Disallow: /p4)"), "{what}");

    let elsewhere = one(&folder.path, "http://other.test/");
    assert_eq!(
        (elsewhere["state"]["name"].as_str(), elsewhere["scope"]["in_scope"].as_bool()),
        (Some("unknown"), Some(false))
    );
    let votes = elsewhere["scope"]["votes"].as_array().unwrap();
    assert_eq!(votes[0]["vote"], "reject");
    assert_eq!(
        (votes[1]["rule"].as_str(), votes[1]["vote"].as_str()),
        (Some("accept the seeds' hosts"), Some("no opinion"))
    );
    assert_eq!(
        elsewhere["next"]["what"],
        "nothing: where it is found, the rule `scope` drops it: reject the rest"
    );

    let waiting = one(&folder.path, &format!("http://{address}/p3"));
    assert_eq!(waiting["state"]["name"], "pending");
    assert_eq!(waiting["state"]["via"], format!("http://{address}/p1"));
    assert!(waiting["next"]["earliest"].is_string() && waiting["next"]["latest"].is_string(), "{waiting}");
    assert!(waiting["next"]["what"].as_str().unwrap().starts_with("it is fetched"), "{waiting}");
}

#[test]
fn a_list_is_explained_line_by_line_and_people_can_read_it() {
    let folder = Folder::new("explain-list");
    fs::create_dir_all(&folder.path).unwrap();
    let file = folder.path.join("crawl.toml");
    let out = folder.path.join("none");
    let text = format!(
        "crawl.seeds = [\"a.test\"]\noutput.dir = {out:?}\n[scope]\nexclude = ['\\.pdf$']\nrules = [{{reject = \"prefix:http://a.test/x/\"}}]\n\
         [[host]]\nmatch = \"*.test\"\ndelay = \"7s\"\nbudget = 12\n"
    );
    fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    let hostile = "http://a.test/\u{1b}[2J\n\nno url\nhttp://a.test/a.pdf\nhttp://a.test/x/y\n";
    let output = explain(&["--config", &file, "-"], hostile);
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        !told.contains('\u{1b}')
            && !error(&explain(&["--config", &file, "x\u{1b}[2J"], "")).contains('\u{1b}'),
        "{told}"
    );
    for expected in [
        "in scope: accept the seeds' hosts",
        "drop  patterns: ",
        "not in scope: reject prefix:http://a.test/x/",
        "[[host]] match = \"*.test\"",
        "delay 7s, 1 at a time",
        "budget 12, balance 3000",
        "unknown: there is no crawl yet",
        "not known at present",
        "nothing until somebody finds it",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let output = explain(&["--config", &file, "--json", "-"], hostile);
    let rows = rows(&output);
    assert_eq!(rows.len(), 4);
    assert!(rows[1]["error"].as_str().unwrap().contains("this is no URL"), "{}", rows[1]);
    assert!(rows[0]["identity"].is_null(), "a key is drawn when a crawl is made");
}

/// What the strategy makes of a URL is told with the rest: the class it gives, and what it leaves out.
#[test]
fn the_strategy_is_asked_too() {
    let folder = Folder::new("explain-strategy");
    let out = folder.path.join("none").display().to_string();
    let settings = [
        "--set",
        "crawl.seeds=a.test",
        "--set",
        "strategy.name=score",
        "--set",
        "strategy.args=[\"rule=0.9 /news/\", \"floor=0.6\"]",
    ];
    let mut arguments = vec!["--json", "--out", &out];
    arguments.extend(settings);
    arguments.extend(["http://a.test/news/1", "http://a.test/other"]);
    let told = rows(&explain(&arguments, ""));
    assert_eq!(
        (told[0]["class"].as_u64(), told[0]["policy"]["strategy"].as_str()),
        (Some(25), Some("score"))
    );
    assert_eq!(
        told[1]["next"]["what"],
        "nothing: where it is found, the rule `strategy` drops it: its score is 0.50, and less than 0.6"
    );
}

#[test]
fn who_names_a_store_that_is_not_there_is_told() {
    let output = explain(&["--store", "disk:/nonexistent/x", "http://a.test/"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        error(&output).contains("there is no store in `/nonexistent/x`: name one with --store"),
        "{}",
        error(&output)
    );
}

#[test]
fn what_is_being_fetched_says_under_which_lease_and_a_running_crawl_is_asked() {
    let folder = Folder::new("explain-running");
    let (answer, answered) = std::sync::mpsc::channel::<()>();
    let answered = Arc::new(Mutex::new(answered));
    let address = serve(move |path, _| {
        if path == "/slow" {
            let _ = answered.lock().expect("nobody panics with it").recv_timeout(Duration::from_secs(30));
        }
        match path {
            "/robots.txt" => ok("Content-Type: text/plain\r\n", "User-agent: *\nDisallow: /x\n"),
            _ => ok("Content-Type: text/html\r\n", "<a href=/slow>x</a>"),
        }
    });
    let mut child = command(address, &folder.path, &["--delay", "0", "-q"]);
    let running = Running(child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let slow = format!("http://{address}/slow");
    let mut told = Value::Null;
    until("it is fetched", || {
        if folder.path.join("pages.jsonl").exists() {
            told = one(&folder.path, &slow);
        }
        told["state"]["name"] == "leased"
    });
    let what = told["next"]["what"].as_str().unwrap();
    assert!(what.starts_with("it is being fetched under lease "), "{what}");
    assert_eq!(told["lease"]["deadline"], told["next"]["latest"]);
    assert_eq!(told["pace"]["queue_state"], "busy");
    answer.send(()).unwrap();
    until("it is done", || one(&folder.path, &slow)["state"]["name"] == "done");
    drop(running);

    // What the crawl does not have is asked for on request, and nobody else is told.
    let out = folder.path.join("none").display().to_string();
    let open = "fetch.allow_networks=[\"127.0.0.0/8\"]";
    let asked = explain(
        &["--json", "--out", &out, "--set", open, "--fetch-robots", &format!("http://{address}/x")],
        "",
    );
    assert_eq!(asked.status.code(), Some(0), "{}", error(&asked));
    assert_eq!(rows(&asked)[0]["robots"]["line"], "line 2: Disallow: /x");
    let unknown = explain(&["--crawl", "other", "--out", &folder.path.display().to_string(), &slow], "");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(error(&unknown).contains("there is no crawl `other`"), "{}", error(&unknown));
}
