//! `trapline frontier export` and `import` from outside: files that are whole, cut off, foreign, or hostile.

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::operate::{Ran, ask, run};

/// A store with a URL in every state, in two crawls.
fn source(name: &str) -> Folder {
    let folder = Folder::new(name);
    let urls: String = (1..=6).map(|n| format!("http://{n}.example/\n")).collect();
    let more = "{\"url\":\"http://1.example/post\",\"method\":\"POST\",\"body\":{\"hex\":\"00ff\"},\"cookies\":{\"c\":\"d\"},\"opaque\":\"o\",\
                \"fingerprint\":\"f\",\"delay\":\"10s\"}\n\
                {\"url\":\"http://1.example/later\",\"next\":\"2100-01-01T00:00:00Z\"}\n";
    ask(&folder, &["admit"], &(urls + more), 0);
    let leases = ask(&folder, &["claim", "-n", "5", "--lease", "1h"], "", 0);
    let outcomes: [&[&str]; 4] = [
        &["done", "status=200", "etag=e", "next=2100-02-01T00:00:00Z"],
        &["retry", "at=2100-03-01T00:00:00Z"],
        &["dead", "reason=410"],
        &["disregard", "reason=robots.txt"],
    ];
    for (lease, outcome) in leases.iter().zip(outcomes) {
        ask(&folder, &[&["settle", &*lease["id"].to_string()], outcome].concat(), "", 0);
    }
    ask(&folder, &["steer", "queue", "6.example", "retire"], "", 0);
    ask(&folder, &["--crawl", "second", "admit"], "http://z.example/1\nhttp://z.example/2\n", 0);
    ask(&folder, &["--crawl", "second", "steer", "crawl", "pause"], "", 0);
    folder
}

fn exported(folder: &Folder, arguments: &[&str]) -> String {
    let ran = run(folder, &[arguments, &["export"]].concat(), b"");
    assert_eq!(ran.code, Some(0), "{}", ran.error);
    ran.out
}

/// Without the time of the export.
fn but_header(file: &str) -> Vec<&str> {
    file.lines().skip(1).collect()
}

fn import(folder: &Folder, arguments: &[&str], file: &str) -> Ran {
    run(folder, &[arguments, &["import", "-"]].concat(), file.as_bytes())
}

#[test]
fn a_store_is_exported_and_imported_whole() {
    let (first, second) = (source("export"), Folder::new("import"));
    let file = exported(&first, &[]);
    let lines: Vec<Value> = file.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&lines[0]["format"], &lines[0]["version"]), (&json!("trapline-frontier"), &json!(1)));
    assert_eq!(lines[lines.len() - 1], json!({"end":true,"crawls":2,"urls":10,"queues":7,"notes":0}));
    let states =
        |state: &str| lines.iter().filter(|line| line["url"].is_string() && line["state"] == state).count();
    assert_eq!(["pending", "leased", "done", "disregarded", "dead"].map(states), [6, 1, 1, 1, 1], "{file}");

    let ran = import(&second, &["--json"], &file);
    assert_eq!((ran.code, ran.error.as_str()), (Some(0), ""));
    let rows: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(
        rows,
        [
            json!({"crawl":"default","urls":8,"imported":8,"known":0,"queues":6,"notes":0,"bad":0}),
            json!({"crawl":"second","urls":2,"imported":2,"known":0,"queues":1,"notes":0,"bad":0}),
        ]
    );
    // The lease has come back as pending.
    let again = exported(&second, &[]);
    let differing: Vec<_> = but_header(&again).into_iter().filter(|line| !file.contains(line)).collect();
    assert_eq!(differing.len(), 1, "{differing:?}");
    assert!(differing[0].contains("\"state\":\"pending\",\"returned\":"), "{differing:?}");

    assert_eq!(
        import(&second, &[], &file).out.lines().nth(1).unwrap(),
        "default  8     0         8      0       0      0"
    );
    assert_eq!(but_header(&exported(&second, &[])), but_header(&again), "nothing has changed");
    let third = Folder::new("import-again");
    assert_eq!(import(&third, &[], &again).code, Some(0));
    assert_eq!(but_header(&exported(&third, &[])), but_header(&again), "byte by byte");

    assert!(ask(&second, &["--crawl", "second", "claim"], "", 0).is_empty(), "it was paused, and is");
    assert_eq!(ask(&second, &["dead"], "", 0)[0]["reason"], "410");
    let of = |state: &str| {
        let line = lines.iter().find(|line| line["url"].is_string() && line["state"] == state);
        line.unwrap()["url"].as_str().unwrap().to_owned()
    };
    let url = &ask(&second, &["url", &of("done")], "", 0)[0];
    assert_eq!((&url["state"], &url["page"]["etag"]), (&json!("done"), &json!("e")));
    let known = [of("done"), of("dead"), of("disregarded")].join("\n");
    assert_eq!(ask(&second, &["admit"], &known, 0)[0]["known"], 3);
    let claimed = ask(&second, &["claim", "-n", "9"], "", 0);
    assert!(claimed.iter().any(|lease| lease["url"] == of("leased")), "{claimed:?}");
}

#[test]
fn a_crawl_is_exported_to_a_file_and_imported_under_another_name() {
    let folder = source("named");
    let path = folder.path.with_extension("jsonl");
    let (text, urls) = (path.display().to_string(), |folder: &Folder, name: &str| {
        ask(folder, &["--crawl", name, "stats"], "", 0)[0]["urls"]["pending"].clone()
    });
    let told = ask(&folder, &["--crawl", "second", "export", "--output", &text], "", 0);
    assert_eq!(told, [json!({"file": text, "crawls": ["second"], "urls": 2, "queues": 1, "notes": 0})]);
    ask(&folder, &["--crawl", "copy", "import", &text], "", 0);
    assert_eq!(urls(&folder, "copy"), 2);

    // What is known stays, and the rest is added to it.
    ask(&folder, &["--crawl", "mine", "admit"], "{\"url\":\"http://z.example/2\",\"state\":\"done\"}\n", 0);
    let row = &ask(&folder, &["--crawl", "mine", "import", &text], "", 0)[0];
    assert_eq!((&row["imported"], &row["known"]), (&json!(1), &json!(1)));
    assert_eq!(urls(&folder, "mine"), 1);

    let all = exported(&folder, &[]);
    let ran = import(&folder, &["--crawl", "one"], &all);
    assert!(ran.error.contains("a second crawl begins, and --crawl names one"), "{}", ran.error);

    let before = std::fs::read(&path).unwrap();
    let ran = run(&folder, &["--crawl", "nowhere", "export", "--output", &text], b"");
    assert!(ran.code == Some(2) && ran.error.contains("there is no crawl `nowhere`"), "{}", ran.error);
    assert_eq!(std::fs::read(&path).unwrap(), before, "the file is as it was");
    let ran = run(&folder, &["export", "--output", "/nowhere/at/all"], b"");
    assert!(ran.error.contains("cannot write /nowhere/at/all: "), "{}", ran.error);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_bad_line_ends_an_import_or_is_passed_over() {
    let first = source("bad");
    let file = exported(&first, &[]);
    let bad = file.replacen("\"class\":127", "\"class\":999", 1);
    let line = bad.lines().position(|line| line.contains("\"class\":999")).unwrap() + 1;
    let second = Folder::new("bad-import");
    let ran = import(&second, &[], &bad);
    assert_eq!(ran.code, Some(2));
    assert_eq!(
        ran.error,
        format!(
            "trapline frontier import: standard input: line {line}: `class` is 999, and should be a whole number that fits\n  \
             The crawl `default` is paused until all of it is imported.\n  \
             What is told above was imported. Mend it and import it again, or pass over bad lines with --skip-bad.\n"
        )
    );
    assert_eq!(ask(&second, &["stats"], "", 0)[0]["state"], "paused");
    let ran = import(&second, &[], &file);
    assert_eq!(ran.code, Some(0), "{}", ran.error);
    assert_eq!(ask(&second, &["stats"], "", 0)[0]["state"], "running");

    let third = Folder::new("bad-skipped");
    let ran = run(&third, &["import", "-", "--skip-bad", "--json"], bad.as_bytes());
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.error, format!("line {line}: `class` is 999, and should be a whole number that fits\n"));
    let row: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert_eq!((&row["imported"], &row["bad"]), (&json!(7), &json!(1)));
}

#[test]
fn what_is_no_export_is_told_and_makes_nothing() {
    let folder = Folder::new("no-export");
    let header = "{\"format\":\"trapline-frontier\",\"version\":1,\"exported\":0}\n";
    let long = format!("{{\"format\":\"{}\"}}", "x".repeat(100_000));
    for (file, message) in [
        ("", "standard input is empty"),
        ("http://a.example/\n", "line 1: it is not JSON; a list of URLs is for `admit`"),
        ("{\"url\":\"http://a.example/\"}\n", "line 1: it is neither the header of an export"),
        ("[1]\n", "line 1: it is not JSON"),
        (
            "{\"format\":\"other\"}\n",
            "line 1: its format is `other`, and only `trapline-frontier` can be read",
        ),
        ("{\"format\":\"trapline-frontier\",\"version\":2,\"exported\":0}\n", "line 1: it has version 2"),
        ("{\"format\":7}\n", "line 1: `format` has 7, where a text should be"),
        (&long, "line 1: its format is"),
        ("\u{1}\n", "line 1: it is not JSON"),
    ] {
        let ran = import(&folder, &[], file);
        assert!(ran.error.contains(message), "{file:.60}: {}", ran.error);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{file:.60}");
        assert!(!folder.path.exists(), "{file:.60}");
    }
    for (rest, message) in [
        ("", "it was cut off"),
        (
            "{\"url\":\"http://a.example/\",\"key\":\"a\",\"state\":\"done\",\"class\":0,\"cost\":0}\n",
            "line 2: it belongs to a crawl",
        ),
        ("{\"crawl\":\"c\"}\n", "line 2: it has no `identity_key`"),
        (
            "{\"end\":true,\"crawls\":1,\"urls\":0,\"queues\":0,\"notes\":0}\n",
            "line 2: it counts other crawls",
        ),
        (
            "{\"end\":true,\"crawls\":0,\"urls\":0,\"queues\":0,\"notes\":0}\n{}\n",
            "line 3: it comes after the end",
        ),
        ("{\"url\":1,\"queue\":1}\n", "line 2: it has both `url` and `queue`"),
    ] {
        let ran = import(&folder, &[], &format!("{header}{rest}"));
        assert!(ran.error.contains(message), "{rest}: {}", ran.error);
        assert_eq!(ran.code, Some(2));
    }
    let ran = run(&folder, &["import", "/nowhere/at/all"], b"");
    assert!(ran.error.contains("cannot read /nowhere/at/all: "), "{}", ran.error);
}

#[test]
fn lines_that_are_missing_are_noticed() {
    let first = source("missing");
    let file = exported(&first, &["--crawl", "second"]);
    let url = file.lines().find(|line| line.starts_with("{\"url\"")).unwrap();
    let ran = import(&Folder::new("missing-import"), &[], &file.replacen(&format!("{url}\n"), "", 1));
    assert!(
        ran.error.contains("`second` ends with 2 URLs, 1 queues and 0 notes, and there were 1, 1 and 0 of `second`: lines are missing"),
        "{}",
        ran.error
    );
}

#[test]
fn the_dump_of_a_urlfrontier_is_imported() {
    let folder = Folder::new("urlfrontier");
    let dump = concat!(
        r#"{"known":{"info":{"url":"http://b.example/2","key":"b.example","metadata":{"m":{"values":["1","2"]}},"crawlID":"DEFAULT"},"refetchableFromDate":"1600000000"},"creationDate":"1"}"#,
        "\n",
        r#"{"known":{"info":{"url":"http://b.example/1","key":"b.example","crawlID":"DEFAULT"},"refetchableFromDate":"1600000000"}}"#,
        "\n",
        r#"{"known":{"info":{"url":"http://b.example/0","key":"b.example","crawlID":"DEFAULT"},"refetchableFromDate":"1500000000"}}"#,
        "\n",
        r#"{"known":{"info":{"url":"http://b.example/done","key":"b.example","crawlID":"DEFAULT"}}}"#,
        "\n",
        r#"{"known":{"info":{"url":"http://b.example/later","key":"b.example","crawlID":"DEFAULT"},"refetchableFromDate":"4102444800"}}"#,
        "\n",
        r#"{"discovered":{"info":{"url":"http://c.example/","crawlID":"other"}}}"#,
        "\n",
        r#"{"known":{"info":{"url":"no URL","crawlID":"other"}}}"#,
        "\n",
    );
    let ran = import(&folder, &[], dump);
    assert!(ran.error.contains("line 7: cannot prepare `no URL`") && ran.code == Some(2), "{}", ran.error);
    let ran = run(&folder, &["import", "-", "--skip-bad", "--json"], dump.as_bytes());
    assert_eq!(ran.code, Some(1), "{}", ran.error);
    let rows: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> =
        rows.iter().map(|row| (&row["crawl"], &row["imported"], &row["known"], &row["bad"])).collect();
    assert_eq!(
        told,
        [
            (&json!("DEFAULT"), &json!(0), &json!(5), &json!(0)),
            (&json!("other"), &json!(0), &json!(1), &json!(1))
        ]
    );
    let state = |url: &str| ask(&folder, &["--crawl", "DEFAULT", "url", url], "", 0).remove(0);
    assert_eq!(state("http://b.example/done")["state"], "done");
    assert_eq!(state("http://b.example/later")["due"], "2100-01-01T00:00:00.000Z");
    assert_eq!(state("http://b.example/2")["metadata"], json!({"m": ["1", "2"]}));
    ask(&folder, &["--crawl", "DEFAULT", "steer", "crawl", "concurrency=0", "delay=0"], "", 0);
    let claimed = ask(&folder, &["--crawl", "DEFAULT", "claim", "-n", "9"], "", 0);
    let urls: Vec<_> = claimed.iter().map(|lease| lease["url"].as_str().unwrap()).collect();
    assert_eq!(
        urls,
        ["http://b.example/0", "http://b.example/1", "http://b.example/2"],
        "by date, then by text"
    );

    let row = &ask(&folder, &["--crawl", "all", "import", "-", "--skip-bad"], dump, 1)[0];
    assert_eq!((&row["crawl"], &row["imported"]), (&json!("all"), &json!(6)));
    let ran = run(&folder, &["import", "-", "--format", "trapline"], dump.as_bytes());
    assert!(ran.error.contains("line 1: it says of nothing what it is"), "{}", ran.error);
}
