//! Strategies, and crawls whose options change while they run: `trapline steer`, `trapline reload`.

use std::fs;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{Running, command, crawl, error, lines, paths, site, trapline, until};
use crate::fetch::{ok, serve};
use crate::folder::Folder;

fn start(mut command: std::process::Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary was built and runs")
}

/// A `trapline` command whose folder stands before its flags.
fn on(folder: &Folder, verb: &str, more: &[&str]) -> std::process::Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_trapline"));
    command.arg(verb).arg(&folder.path).args(more).output().expect("the binary was built and runs")
}

#[test]
fn a_strategy_is_chosen_by_name_and_says_when_it_is_enough() {
    let folder = Folder::new("crawl-strategy");
    let (address, _) = site(1000, "");
    let output =
        crawl(address, &folder.path, &["--delay", "0", "--strategy", "basic", "--strategy-arg", "pages=7"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.starts_with("Ended: the strategy has reached its goal: 7 pages are done\n"), "{report}");
    assert_eq!(paths(&folder.path).len(), 7);
    let json: Value = serde_json::from_slice(&fs::read(folder.path.join("report.json")).unwrap()).unwrap();
    assert_eq!(json["ended"], "goal");

    // The order of a crawl is fixed: it was begun with another.
    let output = crawl(address, &folder.path, &["--delay", "0", "--strategy", "lifo"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("begin another crawl for it"), "{}", error(&output));

    for (more, message) in [
        (&["--strategy", "deph_first"][..], "did you mean `depth_first`?"),
        (&["--strategy", "lifo", "--set", "queue.order=fifo"], "the strategy `lifo` needs \"lifo\""),
        (&["--strategy", "revisit", "--strategy-arg", "interval"], "write a name, = and a value"),
    ] {
        let output = crawl(address, &folder.path, more);
        assert_eq!(output.status.code(), Some(2));
        assert!(error(&output).contains(message), "{}", error(&output));
    }
}

#[test]
fn a_crawl_is_steered_while_it_runs_and_remembers_it() {
    let folder = Folder::new("crawl-steer");
    let (address, asked) = site(100_000, "");
    let mut running = Running(start(command(address, &folder.path, &["--delay", "5ms", "-q"])));
    until("some pages", || asked.lock().unwrap().len() > 5);

    // What cannot be meant changes nothing.
    for (more, message) in [
        (&["--strategy", "nonsense"][..], "there is no strategy `nonsense`"),
        (&["--strategy", "lifo"], "needs the order `lifo`"),
        (&["--set", "pace.dely=1s"], "did you mean `delay`?"),
        (&["--host", "127.0.0.1", "--set", "dely=1s"], "did you mean `delay`?"),
        (&["--set", "pace.delay"], "sets nothing"),
    ] {
        let steered = on(&folder, "steer", more);
        assert_eq!(steered.status.code(), Some(2), "{more:?}");
        assert!(error(&steered).contains(message), "{}", error(&steered));
    }
    let shown = on(&folder, "steer", &[]);
    assert!(String::from_utf8_lossy(&shown.stdout).starts_with("nothing was steered"));

    let steered = on(&folder, "steer", &["--strategy", "depth_first", "--set", "scope.exclude=(0|2|4|6|8)$"]);
    assert_eq!(steered.status.code(), Some(0), "{}", error(&steered));
    until("even pages are left out", || {
        lines(&folder.path, "skipped.jsonl").iter().any(|line| line["reason"] == "patterns")
    });
    // A policy for a host that has its queue already: enough of it.
    let steered = on(&folder, "steer", &["--host", "127.0.0.1", "--set", "budget=3"]);
    assert_eq!(steered.status.code(), Some(0), "{}", error(&steered));
    let ended = running.0.wait().unwrap();
    assert_eq!(ended.code(), Some(3), "the budget is used up");

    let again = crawl(address, &folder.path, &["--delay", "5ms"]);
    assert_eq!(again.status.code(), Some(3), "{}", error(&again));
    let said = error(&again);
    assert!(said.contains("this crawl was steered: strategy.name=depth_first,"), "{said}");
    assert!(said.contains("127.0.0.1: budget=3; `trapline steer"), "{said}");

    // Without a crawl that runs, it counts for the next.
    let forgot = on(&folder, "steer", &["--forget"]);
    assert_eq!(forgot.status.code(), Some(0), "{}", error(&forgot));
    let before = paths(&folder.path).len();
    let more = crawl(address, &folder.path, &["--delay", "0", "--max-pages", &(before + 20).to_string()]);
    assert_eq!(more.status.code(), Some(3), "{}", error(&more));
    assert!(!error(&more).contains("was steered"), "{}", error(&more));
    assert_eq!(paths(&folder.path).len(), before + 20, "the budget is forgotten, too");

    // What cannot be is told before the next run fails by it.
    let refused = on(&folder, "steer", &["--strategy", "lifo"]);
    assert!(error(&refused).contains("needs the order `lifo`"), "{}", error(&refused));
    let refused = on(&folder, "steer", &["--set", "strategy.name=lifo"]);
    assert!(error(&refused).contains("needs the order `lifo`"), "{}", error(&refused));
    let refused = on(&folder, "steer", &["--set", "output.dir=elsewhere"]);
    assert!(error(&refused).contains("`output.dir` cannot be steered"), "{}", error(&refused));
}

#[test]
fn a_crawl_that_runs_reads_its_configuration_anew() {
    let folder = Folder::new("crawl-reload");
    let file = Folder::new("crawl-reload-config");
    fs::create_dir_all(&file.path).unwrap();
    let config = file.path.join("crawl.toml");
    let agents = Arc::new(Mutex::new(Vec::<String>::new()));
    let log = Arc::clone(&agents);
    let address = serve(move |path, head| {
        let agent = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("user-agent: ").map(str::to_owned));
        log.lock().unwrap().push(agent.unwrap_or_default());
        let number: u64 = path.trim_start_matches("/p").parse().unwrap_or(0);
        ok("Content-Type: text/html\r\n", &format!("<a href=/p{}>next</a>", number + 1))
    });
    fs::write(&config, "[pace]\ndelay = \"5ms\"\n[fetch]\nuser_agent = \"One/1.0\"\n").unwrap();
    let config_flag = config.display().to_string();
    let mut running = Running(start(command(address, &folder.path, &["-q", "--config", &config_flag])));
    let saw = |agent: &str| agents.lock().unwrap().iter().any(|seen| seen.starts_with(agent));
    until("the first agent", || saw("one/1.0"));

    fs::write(
        &config,
        "[pace]\ndelay = \"5ms\"\n[fetch]\nuser_agent = \"Two/2.0\"\n[output]\nskipped = false\n",
    )
    .unwrap();
    let reloaded = trapline(&["reload"], &folder.path);
    assert_eq!(reloaded.status.code(), Some(0), "{}", error(&reloaded));
    let said = String::from_utf8_lossy(&reloaded.stdout).into_owned();
    assert_eq!(said, "done, but for output.skipped: it holds from the next run or crawl on\n");
    until("the second agent", || saw("two/2.0"));

    // A file that cannot be meant changes nothing, and says where it is wrong.
    fs::write(&config, "[pace]\ndely = \"5ms\"\n").unwrap();
    let refused = trapline(&["reload"], &folder.path);
    assert_eq!(refused.status.code(), Some(2));
    assert!(error(&refused).contains("crawl.toml:2: there is no option `dely`"), "{}", error(&refused));
    let before = agents.lock().unwrap().len();
    until("it goes on", || agents.lock().unwrap().len() > before + 5);
    assert!(agents.lock().unwrap()[before..].iter().all(|agent| agent.starts_with("two/2.0")));

    assert_eq!(trapline(&["stop"], &folder.path).status.code(), Some(0));
    let _ = running.0.wait();
    let nobody = trapline(&["reload"], &folder.path);
    assert_eq!(nobody.status.code(), Some(2));
    assert!(
        error(&nobody).contains("the next one that does reads the configuration anyway"),
        "{}",
        error(&nobody)
    );
}
