//! The operating commands of `trapline frontier` from outside: each command is a process of its own on one folder.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::folder::Folder;

/// What a command printed, and its exit code.
pub(crate) struct Ran {
    pub(crate) out: String,
    pub(crate) error: String,
    pub(crate) code: Option<i32>,
}

pub(crate) fn start(folder: &Folder, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["frontier", "--store", &folder.url()])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs")
}

pub(crate) fn run(folder: &Folder, arguments: &[&str], input: &[u8]) -> Ran {
    let mut child = start(folder, arguments);
    // A command that refuses its arguments may not read at all.
    let _ = child.stdin.take().expect("it is piped").write_all(input);
    let output = child.wait_with_output().expect("it ends");
    Ran {
        out: String::from_utf8(output.stdout).expect("it is text"),
        error: String::from_utf8(output.stderr).expect("it is text"),
        code: output.status.code(),
    }
}

/// Runs a command that must end with this code, and reads what it prints for programs.
#[track_caller]
pub(crate) fn ask(folder: &Folder, arguments: &[&str], input: &str, code: i32) -> Vec<Value> {
    let ran = run(folder, &[arguments, &["--json"]].concat(), input.as_bytes());
    assert_eq!(ran.code, Some(code), "{}{}", ran.out, ran.error);
    ran.out.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

#[track_caller]
pub(crate) fn check_trouble(folder: &Folder, arguments: &[&str], message: &str) {
    let ran = run(folder, arguments, b"");
    assert_eq!(ran.error, format!("trapline frontier {message}\n"));
    assert_eq!((ran.out.as_str(), ran.code), ("", Some(2)));
}

#[test]
fn urls_go_from_admission_to_settlement_across_processes() {
    let folder = Folder::new("operate");
    let input = "http://a.example/1\n\nhttp://a.example/2\r\nhttp://A.EXAMPLE/1\n\
                 {\"url\":\"http://b.example/x\",\"depth\":2,\"method\":\"POST\",\"body\":\"q=1\",\"precedence\":1}\n";
    let admitted = ask(&folder, &["admit"], input, 0);
    assert_eq!(
        admitted,
        [
            json!({"crawl": "default", "lines": 4, "added": 3, "known": 1, "rescored": 0, "restated": 0, "refused": {}, "bad": 0})
        ]
    );

    let mut leases = ask(&folder, &["claim", "-n", "5", "--lease", "1h", "--per-queue", "1"], "", 0);
    // Partitions are served in turn, and each host is in another one.
    leases.sort_by_key(|lease| std::cmp::Reverse(lease["url"].to_string()));
    let told: Vec<_> =
        leases.iter().map(|lease| [&lease["url"], &lease["key"], &lease["delivery"]]).collect();
    assert_eq!(
        json!(told),
        json!([["http://b.example/x", "b.example", 1], ["http://a.example/1", "a.example", 1]])
    );
    assert_eq!((&leases[0]["method"], &leases[0]["body"]), (&json!("POST"), &json!("q=1")));
    let out = ask(&folder, &["leases"], "", 0);
    assert_eq!(out.len(), 2);
    for lease in &leases {
        assert!(
            out.iter().any(|row| ["id", "url", "deadline"].iter().all(|name| row[*name] == lease[*name])),
            "{out:?}"
        );
    }

    let settlements = format!(
        "{{\"id\":{},\"outcome\":\"dead\",\"reason\":\"410\"}}\n\
         {{\"id\":{},\"outcome\":\"done\",\"status\":200,\"next\":\"7d\",\"links\":[\"http://a.example/3\",{{\"url\":\"http://c.example/\"}}]}}\n",
        leases[0]["id"], leases[1]["id"]
    );
    let settled = ask(&folder, &["settle"], &settlements, 0);
    assert_eq!(
        settled,
        [
            json!({"id": leases[0]["id"], "answer": "dead", "links": []}),
            json!({"id": leases[1]["id"], "answer": "done", "links": ["added", "added"]}),
        ]
    );
    let again = ask(&folder, &["settle", &leases[1]["id"].to_string(), "release"], "", 1);
    assert_eq!(again[0]["answer"], "stale");

    let stats = &ask(&folder, &["stats"], "", 0)[0];
    assert_eq!(stats["urls"], json!({"pending": 3, "leased": 0, "done": 1, "disregarded": 0, "dead": 1}));
    assert_eq!((&stats["state"], &stats["leases_granted"]), (&json!("running"), &json!(2)));
    assert_eq!(stats["recovered"]["pending"], 3);

    let link = &ask(&folder, &["url", "http://c.example"], "", 0)[0];
    assert_eq!(
        (&link["state"], &link["depth"], &link["via"]),
        (&json!("pending"), &json!(1), &json!("http://a.example/1"))
    );
    let page = &ask(&folder, &["url", "http://a.example/1"], "", 0)[0]["page"];
    assert_eq!((&page["status"], &page["visits"]), (&json!(200), &json!(1)));
    let pending = ask(&folder, &["urls", "--state", "pending", "--pattern", "http://a.*"], "", 0);
    assert_eq!(
        json!(pending.iter().map(|url| &url["url"]).collect::<Vec<_>>()),
        json!(["http://a.example/2", "http://a.example/3"])
    );
    assert_eq!(ask(&folder, &["urls", "--limit", "2"], "", 0).len(), 2);

    let dead = ask(&folder, &["dead"], "", 0);
    assert_eq!((&dead[0]["url"], &dead[0]["reason"]), (&json!("http://b.example/x"), &json!("410")));
    assert_eq!(ask(&folder, &["dead", "replay", "--all"], "", 0), [json!({"replayed": 1})]);
    assert_eq!(ask(&folder, &["dead", "purge", "--key", "b.example"], "", 1), [json!({"purged": 0})]);
}

#[test]
fn operators_steer_queues_and_the_crawl() {
    let folder = Folder::new("steer");
    let urls: String = (0..30).map(|n| format!("http://a.example/calendar/{n}\n")).collect();
    ask(&folder, &["admit"], &(urls + "http://a.example/page\n"), 0);

    let queue = |key: &str| ask(&folder, &["queue", key], "", 0).remove(0);
    let purge = ["steer", "queue", "a.example", "purge", "--pattern", "*/calendar/*"];
    let dry = &ask(&folder, &[&purge[..], &["--dry-run"]].concat(), "", 0)[0];
    assert_eq!((&dry["would_forget"], dry["among_them"].as_array().unwrap().len()), (&json!(30), 20));
    let told = run(&folder, &["steer", "queue", "a.example", "purge", "--pattern", "*/1?", "--dry-run"], b"");
    assert_eq!(told.out, "queue         a.example\nwould forget  0\namong them    -\n");
    let told =
        run(&folder, &["steer", "queue", "a.example", "purge", "--pattern", "*/*2*1", "--dry-run"], b"");
    assert_eq!(
        told.out,
        "queue         a.example\nwould forget  1\namong them    http://a.example/calendar/21\n"
    );
    let told = run(&folder, &["steer", "queue", "a.example", "purge", "--pattern", "*9", "--dry-run"], b"");
    assert!(told.out.ends_with("calendar/9\n              http://a.example/calendar/19\n              http://a.example/calendar/29\n"), "{}", told.out);
    assert_eq!(queue("a.example")["pending"], 31);
    assert_eq!(ask(&folder, &purge, "", 0)[0]["affected"], 30);

    ask(&folder, &["steer", "queue", "a.example", "delay=5s", "queue_budget=7"], "", 0);
    ask(&folder, &["steer", "queue", "a.example", "retire"], "", 0);
    let report = queue("a.example");
    assert_eq!(
        [&report["state"], &report["pending"], &report["delay"], &report["budget"]],
        [&json!("retired"), &json!(1), &json!("5s"), &json!(7)]
    );
    assert!(report["why"].as_str().unwrap().contains("retired"), "{report}");
    assert!(ask(&folder, &["claim"], "", 0).is_empty());
    ask(&folder, &["steer", "queue", "a.example", "reinstate"], "", 0);
    ask(&folder, &["steer", "queue", "a.example", "block=2h"], "", 0);
    assert_eq!(ask(&folder, &["queues", "--state", "blocked"], "", 0).len(), 1);
    ask(&folder, &["steer", "queue", "a.example", "unblock"], "", 0);

    ask(&folder, &["steer", "crawl", "pause"], "", 0);
    assert!(ask(&folder, &["claim"], "", 0).is_empty());
    ask(&folder, &["steer", "crawl", "resume"], "", 0);
    ask(&folder, &["steer", "crawl", "max_depth=0"], "", 0);
    let refused = ask(&folder, &["admit"], "{\"url\":\"http://a.example/deep\",\"depth\":1}\n", 1);
    assert_eq!(refused[0]["refused"], json!({"max_depth": 1}));
    ask(&folder, &["steer", "queue", "a.example", "delete"], "", 0);
    ask(&folder, &["steer", "crawl", "finish", "--reason", "enough"], "", 0);
    let stats = &ask(&folder, &["stats"], "", 0)[0];
    assert_eq!((&stats["finished"], &stats["urls"]["pending"]), (&json!("enough"), &json!(0)));

    check_trouble(
        &folder,
        &["steer", "crawl", "delya=1s"],
        "steer: there is no setting `delya`; did you mean `delay`?",
    );
    check_trouble(
        &folder,
        &["steer", "queue", "a.example", "retire", "--dry-run"],
        "steer: --pattern and --dry-run go with `purge` alone; nothing was changed",
    );
    check_trouble(
        &folder,
        &["steer", "queue", "a.example", "precedence=300"],
        "steer: `precedence` cannot be `300`: write a whole number, not negative, that fits; nothing was changed",
    );
}

#[test]
fn bad_lines_are_named_and_do_not_stop_the_rest() {
    let folder = Folder::new("hostile");
    let input = b"http://a.example/1\nnope\n{\"url\":\n[1]\n{\"url\":7}\n{\"url\":\"http://a.example/2\",\"score\":2}\n\xff\xfe\nhttp://a.example/3";
    let ran = run(&folder, &["admit"], input);
    let lines: Vec<&str> = ran.error.lines().collect();
    for (line, start) in lines.iter().zip([
        "line 2: cannot prepare `nope`: relative URL without a base",
        "line 3: it is not JSON: EOF",
        "line 4: cannot prepare `[1]`",
        "line 5: `url` has 7, where a text should be",
        "line 6: `score` is 2, and should be from 0.0 to 1.0",
        "line 7: it is not text in UTF-8",
    ]) {
        assert!(line.starts_with(start), "{line}");
    }
    assert_eq!((lines.len(), ran.code), (6, Some(1)));
    assert!(ran.out.contains("added     2\n") && ran.out.contains("bad       6\n"), "{}", ran.out);

    let ran = run(
        &folder,
        &["settle"],
        b"12 done\n{\"id\":99,\"outcome\":\"done\"}\n{\"id\":1}\n{\"id\":1,\"outcome\":\"retry\"}\n{\"id\":1,\"outcome\":\"won\"}\n",
    );
    assert_eq!(
        ran.error,
        "line 1: it is not a JSON object such as {\"id\":12,\"outcome\":\"done\"}\n\
         line 3: it has no `outcome`\n\
         line 4: a retry needs `at`: when, such as 10m from now\n\
         line 5: `outcome` is \"won\"; write one of done, retry, release, dead, disregard, renew\n"
    );
    assert_eq!((ran.out.as_str(), ran.code), ("ID  ANSWER  LINKS\n99  stale   -\n", Some(1)));

    let ran = run(&folder, &["queue", "x.example"], b"");
    assert_eq!(
        ran.error,
        "nobody knows a queue `x.example` in crawl `default`; `trapline frontier queues` lists those there are\n"
    );
    assert_eq!(ran.code, Some(1));
}

#[test]
fn what_is_not_there_is_told_and_not_made() {
    let folder = Folder::new("absent");
    let (path, url) = (folder.path.display(), folder.url());
    check_trouble(
        &folder,
        &["stats"],
        &format!(
            "stats: there is no store in `{path}`; `trapline frontier --store {url} admit` makes it with its first URLs"
        ),
    );
    assert!(!folder.path.exists());
    ask(&folder, &["admit"], "http://a.example/\n", 0);
    check_trouble(
        &folder,
        &["--crawl", "other", "claim"],
        &format!(
            "claim: there is no crawl `other` in {url}; there is `default`\n  \
             `trapline frontier --store {url} --crawl other admit` makes it with its first URLs"
        ),
    );
    ask(&folder, &["--crawl", "second", "admit"], "http://a.example/\nhttp://b.example/\n", 0);
    for command in
        [&["stats"][..], &["queues"], &["urls"], &["leases"], &["dead"], &["steer", "crawl", "pause"]]
    {
        let ran = run(&folder, &[&["--crawl", "defualt"], command].concat(), b"");
        let told = format!("there is no crawl `defualt` in {url}; there are `default`, `second`\n");
        assert!(ran.error.contains(&told) && ran.code == Some(2), "{command:?}: {}", ran.error);
    }
    let crawls = ask(&folder, &["crawls"], "", 0);
    let told: Vec<_> = crawls.iter().map(|crawl| (&crawl["crawl"], &crawl["pending"])).collect();
    assert_eq!(told, [(&json!("default"), &json!(1)), (&json!("second"), &json!(2))]);
}

#[test]
fn without_a_name_the_store_is_in_trapline_data() {
    let folder = Folder::new("unnamed");
    std::fs::create_dir(&folder.path).unwrap();
    let run = |arguments: &[&str], input: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_trapline"))
            .arg("frontier")
            .args(arguments)
            .current_dir(&folder.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
        let output = child.wait_with_output().expect("it ends");
        (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
    };
    let message = "trapline frontier stats: there is no store in `trapline-data`, which is meant where none is named; name yours \
                   with --store disk:PATH; `trapline frontier --store disk:trapline-data admit` makes it with its first URLs\n";
    assert_eq!(run(&["stats"], ""), (message.to_owned(), Some(2)));
    assert_eq!(run(&["admit"], "http://a.example/\n"), (String::new(), Some(0)));
    assert_eq!(run(&["url", "http://a.example/"], ""), (String::new(), Some(0)));
    assert!(folder.path.join("trapline-data/segments").is_dir());
}

#[test]
fn work_over_more_urls_than_a_step_is_waited_for() {
    let folder = Folder::new("many");
    let urls: String = (0..30_000).map(|n| format!("http://a.example/{}/{n}\n", n % 3)).collect();
    assert_eq!(ask(&folder, &["admit"], &urls, 0)[0]["added"], 30_000);
    let purged = ask(&folder, &["steer", "queue", "a.example", "purge", "--pattern", "*/2/*"], "", 0);
    assert_eq!(purged[0]["affected"], 10_000);
    assert_eq!(ask(&folder, &["urls"], "", 0).len(), 20_000);
    ask(&folder, &["steer", "queue", "a.example", "delete"], "", 0);
    assert_eq!(ask(&folder, &["stats"], "", 0)[0]["urls"]["pending"], 0);
}

#[test]
fn a_crawl_is_deleted_by_those_who_mean_it() {
    let folder = Folder::new("delete");
    for crawl in ["one", "two"] {
        ask(&folder, &["--crawl", crawl, "admit"], "http://a.example/\n", 0);
    }
    let delete = ["--crawl", "one", "steer", "crawl", "delete"];
    check_trouble(
        &folder,
        &delete,
        "steer: `delete` forgets the crawl `one` with all its URLs, for good; if that is meant, write --yes behind it; nothing \
         was changed",
    );
    check_trouble(
        &folder,
        &["steer", "crawl", "pause", "--yes"],
        "steer: --yes goes with `delete` alone; nothing was changed",
    );
    let names = || -> Vec<Value> {
        ask(&folder, &["crawls"], "", 0).iter().map(|crawl| crawl["crawl"].clone()).collect()
    };
    assert_eq!(names(), ["one", "two"]);
    ask(&folder, &[&delete[..], &["--yes"]].concat(), "", 0);
    assert_eq!(names(), ["two"]);
    let again = run(&folder, &[&delete[..], &["--yes"]].concat(), b"");
    assert_eq!(again.code, Some(2));
    assert!(
        again.error.contains("there is no crawl `one`") && again.error.contains("there is `two`"),
        "{}",
        again.error
    );
}

#[test]
fn pending_urls_are_dropped_by_pattern_once_a_dry_run_has_shown_which() {
    let folder = Folder::new("drop");
    let urls: String = (0..9_000).map(|n| format!("http://{}.example/{}/{n}\n", n % 2, n % 3)).collect();
    ask(&folder, &["admit"], &urls, 0);
    let pending = || ask(&folder, &["stats"], "", 0)[0]["urls"]["pending"].clone();
    let drop = ["drop", "--pattern", "*/2/*"];

    let dry = &ask(&folder, &[&drop[..], &["--dry-run", "--show", "2"]].concat(), "", 0)[0];
    assert_eq!(dry["would_forget"], 3_000);
    assert_eq!(dry["among_them"], json!(["http://0.example/2/2", "http://1.example/2/5"]));
    assert_eq!(pending(), 9_000, "a dry run changes nothing");
    let told = run(&folder, &["drop", "--pattern", "*/2/2", "--queue", "0.example", "--dry-run"], b"");
    assert_eq!(
        told.out,
        "crawl         default\nqueue         0.example\npattern       */2/2\nwould forget  1\n\
         among them    http://0.example/2/2\n"
    );

    let dropped = &ask(&folder, &[&drop[..], &["--queue", "1.example"]].concat(), "", 0)[0];
    assert_eq!((&dropped["forgotten"], pending()), (&json!(1_500), json!(7_500)));
    assert_eq!(ask(&folder, &drop, "", 0)[0]["forgotten"], 1_500);
    assert_eq!(ask(&folder, &drop, "", 1)[0]["forgotten"], 0);
    let jobs = ask(&folder, &["jobs"], "", 0);
    let told: Vec<_> = jobs.iter().map(|job| (&job["ended"], &job["affected"])).collect();
    assert_eq!(
        told,
        [(&json!(true), &json!(1_500)), (&json!(true), &json!(1_500)), (&json!(true), &json!(0))]
    );
    assert_eq!(jobs[1]["what"], "purge pending URLs of all queues that match */2/*");
    check_trouble(
        &folder,
        &["drop", "--pattern", "*", "--queue", "2.example"],
        "drop: nobody knows a queue `2.example` in crawl `default`; `trapline frontier queues` lists those there are",
    );
}

#[test]
fn many_urls_are_visited_again_or_forgotten_once_a_dry_run_has_shown_which() {
    let folder = Folder::new("bulk");
    let urls: String = (0..6_000).map(|n| format!("http://{}.example/{}/{n}\n", n % 2, n % 3)).collect();
    ask(&folder, &["admit"], &urls, 0);
    ask(&folder, &["steer", "crawl", "delay=0", "concurrency=0"], "", 0);
    let leases = ask(&folder, &["claim", "-n", "6000", "--lease", "1h"], "", 0);
    let done = |lease: &Value| format!("{{\"id\":{},\"outcome\":\"done\",\"status\":200}}\n", lease["id"]);
    for some in leases.chunks(500) {
        ask(&folder, &["settle"], &some.iter().map(done).collect::<String>(), 0);
    }
    let count = |state: &str| ask(&folder, &["stats"], "", 0)[0]["urls"][state].clone();
    assert_eq!(count("done"), 6_000);

    let revisit = ["revisit", "--queue", "1.example", "--pattern", "*/2/*"];
    let dry = &ask(&folder, &[&revisit[..], &["--dry-run", "--show", "1"]].concat(), "", 0)[0];
    assert_eq!((&dry["would_visit"], &dry["among_them"]), (&json!(1_000), &json!(["http://1.example/2/5"])));
    assert_eq!(count("pending"), 0, "a dry run changes nothing");
    assert_eq!(ask(&folder, &revisit, "", 0)[0]["to_be_visited"], 1_000);
    assert_eq!(ask(&folder, &revisit, "", 1)[0]["to_be_visited"], 0);
    assert_eq!(count("pending"), 1_000);

    let pages = ["forget-pages", "--all", "--older"];
    assert_eq!(ask(&folder, &[&pages[..], &["1h"]].concat(), "", 1)[0]["pages_forgotten"], 0);
    let dry = &ask(&folder, &[&pages[..], &["0", "--dry-run", "--show", "0"]].concat(), "", 0)[0];
    assert_eq!((&dry["would_forget_pages"], &dry["among_them"]), (&json!(6_000), &json!([])));
    assert_eq!(ask(&folder, &[&pages[..], &["0"]].concat(), "", 0)[0]["pages_forgotten"], 6_000);

    let forget = ["forget", "--pattern", "*/0/*"];
    assert_eq!(ask(&folder, &[&forget[..], &["--dry-run"]].concat(), "", 0)[0]["would_forget"], 2_000);
    assert_eq!(ask(&folder, &forget, "", 0)[0]["forgotten"], 2_000);
    assert_eq!(ask(&folder, &forget, "", 1)[0]["forgotten"], 0);
    assert_eq!(ask(&folder, &["forget", "--all"], "", 0)[0]["forgotten"], 4_000);
    assert_eq!((count("pending"), count("done")), (json!(0), json!(0)));

    let jobs = ask(&folder, &["jobs"], "", 0);
    assert!(jobs.iter().any(|job| job["what"] == "forget URLs of all queues that match */0/*"), "{jobs:?}");
    check_trouble(
        &folder,
        &["jobs", "--cancel", "999"],
        "jobs: there is no job 999 under way that could be stopped; `trapline frontier jobs` lists them",
    );
    check_trouble(
        &folder,
        &["revisit", "--queue", "2.example"],
        "revisit: nobody knows a queue `2.example` in crawl `default`; `trapline frontier queues` lists those there are",
    );
    check_trouble(
        &folder,
        &["forget-pages", "--all", "--older", "ever"],
        "forget-pages: --older cannot be `ever`: write an age, such as 90d or 12h, or a time, such as 2026-05-01T12:00:00Z",
    );
    for lacking in [&["forget"][..], &["forget", "--dry-run"]] {
        let told = run(&folder, lacking, b"");
        assert!(told.error.contains("<--pattern <PATTERN>|--queue <KEY>|--all>"), "{}", told.error);
    }
}

#[test]
fn every_outcome_can_be_told_by_arguments() {
    let folder = Folder::new("outcomes");
    let urls: String = (1..=6).map(|n| format!("http://{n}.example/\n")).collect();
    ask(&folder, &["admit"], &urls, 0);
    let leases = ask(&folder, &["claim", "-n", "6", "--lease", "1h"], "", 0);
    let outcomes: [(&[&str], &str, &str); 6] = [
        (&["done", "status=200", "delay=5s"], "done", "done"),
        (&["retry", "at=2100-01-01T00:00:00Z"], "retry", "pending"),
        (&["release"], "released", "pending"),
        (&["dead", "reason=no such host"], "dead", "dead"),
        (&["disregard", "reason=robots.txt"], "disregarded", "disregarded"),
        (&["renew", "for=2h"], "renewed", "leased"),
    ];
    for (lease, (outcome, answer, state)) in leases.iter().zip(outcomes) {
        let id = lease["id"].to_string();
        let settled = ask(&folder, &[&["settle", &*id], outcome].concat(), "", 0);
        assert_eq!(settled[0]["answer"], answer);
        let url = &ask(&folder, &["url", lease["url"].as_str().unwrap()], "", 0)[0];
        assert_eq!(url["state"], state);
        if answer == "retry" {
            assert_eq!(url["due"], "2100-01-01T00:00:00.000Z");
        }
    }
    let ran = run(&folder, &["settle", "1", "done", "at=5m"], b"");
    assert_eq!(
        ran.error,
        "trapline frontier settle: `at` means nothing here; fields are id, outcome, next, status, bytes, etag, last_modified, \
         delay, links\n"
    );
    assert_eq!(ran.code, Some(2));
}
