//! A crawl whose database goes away.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use trapline_testing::{PostgresServer, Stop};

use crate::crawl::{Running, command, crawl, error, paths, site, trapline, until};
use crate::folder::Folder;

#[test]
fn a_crawl_without_its_database_tells_so_obeys_and_goes_on_later() {
    let server = PostgresServer::builder().careless().start().unwrap();
    let store = server.url(&server.create_database().unwrap());
    assert_eq!(super::store(&["migrate", &store]).2, Some(0));
    let folder = Folder::new("crawl-away");
    let (address, asked) = site(120, "");
    let more =
        ["--delay", "10ms", "--store", &store, "--set", "crawl.lease=5s", "--set", "output.progress=1s"];
    fs::create_dir_all(&folder.path).unwrap();
    let log = folder.path.join("log");
    let mut running = Running(
        command(address, &folder.path, &more)
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap(),
    );
    until("some pages", || asked.lock().unwrap().len() > 10);
    server.stop(Stop::Immediate).unwrap();
    let status = || {
        let text = fs::read_to_string(folder.path.join("status.json")).unwrap_or_default();
        serde_json::from_str::<Value>(&text).unwrap_or_default()
    };
    let away = |text: &str| text.contains("the store is away since 2");
    until("the status tells of it", || status()["trouble"].as_str().is_some_and(away));
    until("the lines tell of it", || away(&fs::read_to_string(&log).unwrap()));
    let told = status()["at"].clone();
    until("the status goes on", || status()["at"] != told && !status()["at"].is_null());
    let shown = trapline(&["status"], &folder.path);
    assert!(away(&String::from_utf8_lossy(&shown.stdout)), "{shown:?}");

    // Once is not enough while there is no store to save to; twice is.
    let pid = Pid::from_child(&running.0);
    kill_process(pid, Signal::INT).unwrap();
    until("it has heard", || fs::read_to_string(&log).unwrap().contains("once more to stop now"));
    assert!(running.0.try_wait().unwrap().is_none());
    let begun = Instant::now();
    kill_process(pid, Signal::INT).unwrap();
    let code = running.0.wait().unwrap().code();
    println!("stopped in {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let log_text = fs::read_to_string(&log).unwrap();
    assert_eq!(code, Some(4), "{log_text}");
    assert!(
        log_text.contains("what was in flight comes back when its leases have ended, after 5s"),
        "{log_text}"
    );
    let report = fs::read_to_string(folder.path.join("report.txt")).unwrap();
    assert!(report.contains("URLs: not known, because the store is away"), "{report}");

    server.start_again().unwrap();
    let output = crawl(address, &folder.path, &[&more[..], &["-q"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let pages = paths(&folder.path);
    let set: std::collections::BTreeSet<_> = pages.iter().collect();
    let missing: Vec<_> = (1..122)
        .map(|number| format!("/p{number}"))
        .chain(["/".to_owned(), "/p1?sort=up".to_owned()])
        .filter(|path| !set.contains(path))
        .collect();
    assert_eq!((missing, pages.len()), (Vec::new(), 123));
}
