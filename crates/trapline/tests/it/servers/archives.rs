//! Archives as others see them: WARC files read by the programs of others, bodies in a bucket of a real S3 server.
#![allow(clippy::unwrap_used, reason = "what reads an archive is a part of the tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use trapline_archive::{RecordCounts, scan_warc};
use trapline_testing::{S3Server, warc_tool};

use crate::archives::{counts, noisy_site, trouble, warcs};
use crate::crawl::{Running, command, error, lines, until};
use crate::fetch::{ok, serve};
use crate::folder::Folder;

/// How many records of which type `warcio` finds in a file.
fn by_type(path: &Path) -> BTreeMap<String, u64> {
    let listed = warc_tool("warcio", &["index", "-f", "warc-type"], path).unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let mut found = BTreeMap::new();
    for line in String::from_utf8(listed.stdout).unwrap().lines() {
        let kind = serde_json::from_str::<Value>(line).unwrap()["warc-type"].as_str().unwrap().to_owned();
        *found.entry(kind).or_default() += 1;
    }
    found
}

/// The type and the URL of each record of a file, by its name.
fn records(path: &Path) -> BTreeMap<String, (String, String)> {
    let listed =
        warc_tool("warcio", &["index", "-f", "warc-record-id,warc-type,warc-target-uri"], path).unwrap();
    let lines = String::from_utf8(listed.stdout).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    lines
        .map(|line| {
            (text(&line["warc-record-id"]), (text(&line["warc-type"]), text(&line["warc-target-uri"])))
        })
        .collect()
}

fn named(counts: &RecordCounts) -> BTreeMap<String, u64> {
    let all = [
        ("warcinfo", counts.warcinfo),
        ("request", counts.request),
        ("response", counts.response),
        ("revisit", counts.revisit),
        ("metadata", counts.metadata),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Pages of many kinds, and odd ones among them, go into files that others accept, with as many records as we count.
#[test]
fn warc_files_are_accepted_by_the_programs_of_others() {
    let folder = Folder::new("archive-warcio");
    let address = serve(|path, head| {
        let not_modified = head.to_ascii_lowercase().contains("if-none-match");
        let chunked = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n";
        match path {
            "/" => {
                let links = [
                    "same1", "same2", "chunked", "trailer", "empty", "old", "bare", "moved", "odd", "latin",
                    "tagged",
                ];
                let links: String = links.iter().map(|link| format!("<a href=/{link}>x</a>")).collect();
                ok("Content-Type: text/html\r\n", &links)
            }
            "/same1" | "/same2" => ok("Content-Type: text/plain\r\n", &"the same text ".repeat(300)),
            "/chunked" => format!("{chunked}\r\n5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\n\r\n"),
            "/trailer" => format!("{chunked}Trailer: X-End\r\n\r\n3\r\nabc\r\n0\r\nX-End: 1\r\n\r\n"),
            "/empty" => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
            "/bare" => "HTTP/1.1 200\nContent-Length: 4\n\nbare".to_owned(),
            "/moved" => {
                "HTTP/1.1 301 Moved\r\nLocation: /same1?from=moved\r\nContent-Length: 0\r\n\r\n".to_owned()
            }
            "/odd" => ok(
                "X-Odd: WARC/1.1\r\nX-Odd: \tWARC-Type: response \r\n",
                "WARC/1.1\r\nWARC-Type: response\r\n\r\n",
            ),
            "/latin" => {
                ok("Content-Type: text/html; charset=iso-8859-1\r\nX-Name: caf\u{e9}\r\n", "caf\u{e9}")
            }
            "/tagged" if not_modified => "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n".to_owned(),
            "/tagged" => ok("ETag: \"1\"\r\nContent-Type: text/html\r\n", "tagged"),
            _ => "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nnone"
                .to_owned(),
        }
    });
    let warc = folder.path.join("warc");
    let url = format!("warc:{}?max_size=4KiB", warc.display());
    let run = || {
        let output = command(address, &folder.path, &["--delay", "0", "--archive", &url]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    };
    run();
    // Once more, so that the page with a tag is asked whether it has changed.
    let store = format!("disk:{}", folder.path.join("store").display());
    let (_, complaint, code) =
        super::trapline(&["frontier", "--store", &store, "revisit", "--pattern", "*/tagged"], "");
    assert_eq!(code, Some(0), "{complaint}");
    run();
    let pages = lines(&folder.path, "pages.jsonl");
    assert!(pages.iter().any(|page| page["not_modified"] == true), "nothing was asked for again");
    let all = counts(&warc);
    assert_eq!(all.response + all.revisit, pages.len() as u64);
    assert_eq!(
        all.revisit, 3,
        "the second of the same, the one behind the redirect, and what was not modified"
    );
    assert!(warcs(&warc).len() > 1);
    for path in warcs(&warc) {
        let ours = scan_warc(&path).unwrap().counts;
        assert_eq!(by_type(&path), named(&ours), "{}", path.display());
        let checked = warc_tool("warcio", &["check", "-v"], &path).unwrap();
        let text = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(checked.status.success(), "{text}");
        assert_eq!(text.matches("digest pass").count() as u64, ours.total() - ours.revisit, "{text}");
        let checked = warc_tool("fastwarc", &["check"], &path).unwrap();
        let text = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(checked.status.success(), "{text}");
        // What it does not check without `-p`, it does with it.
        let with_block = ours.total() - ours.response;
        assert!(text.contains(&format!("{with_block} records were verified successfully.")), "{text}");
        let without = format!("{} records were skipped without digest.", ours.response);
        assert!(ours.response == 0 || text.contains(&without), "{text}");
        // With payloads too, but for those of revisits, which are elsewhere, and of a head whose lines end otherwise than it expects.
        let report = folder.path.join("report");
        let _ = warc_tool("fastwarc", &["check", "-p", "-q", "-o", report.to_str().unwrap()], &path).unwrap();
        let text = fs::read_to_string(&report).unwrap();
        assert_eq!(text.lines().count() as u64, ours.total(), "{text}");
        let whole = text.matches(", PAYLOAD_OK").count() as u64;
        assert!(whole + 1 >= ours.response, "{text}");
        let records = records(&path);
        for line in text.lines().filter(|line| line.contains("FAIL")) {
            let (id, _) = line.split_once(">: ").unwrap();
            let (kind, url) = &records[&format!("{id}>")];
            assert!(kind == "revisit" || url.ends_with("/bare"), "{line}: {kind} of {url}");
        }
    }
}

fn with_server(server: &S3Server, mut command: Command) -> Command {
    for (name, value) in server.environment() {
        command.env(name, value);
    }
    command
}

/// The bodies in a bucket are those of the pages, each under its key.
fn assert_all_there(server: &S3Server, folder: &Folder, pages: usize) {
    let lines = lines(&folder.path, "pages.jsonl");
    assert_eq!(lines.len(), pages);
    for page in lines.iter().filter(|page| page["status"] == 200) {
        let place = page["archived"][0].as_str().unwrap();
        let key = place.strip_prefix("s3://pages/").unwrap_or_else(|| panic!("{place}"));
        let body =
            fs::read(server.bucket("pages").join(key)).unwrap_or_else(|error| panic!("{key}: {error}"));
        assert_eq!(body.len() as u64, page["decoded_bytes"].as_u64().unwrap(), "{key}");
    }
}

#[test]
fn bodies_are_kept_in_a_bucket_and_its_absence_pauses_the_crawl() {
    let server = S3Server::start("pages").unwrap();
    let folder = Folder::new("archive-s3");
    fs::create_dir_all(&folder.path).unwrap();
    let (address, asked) = noisy_site(300);
    let flags =
        ["--delay", "15ms", "--archive", "s3://pages/a/b?compression=none", "--set", "output.progress=200ms"];
    let crawling = || {
        let mut command = with_server(&server, command(address, &folder.path, &flags));
        command.stdout(Stdio::null()).stderr(fs::File::create(folder.path.join("log")).unwrap());
        Running(command.spawn().unwrap())
    };
    let log = || fs::read_to_string(folder.path.join("log")).unwrap();
    let told = || {
        trouble(&folder.path)
            .contains("the archive s3://pages/a/b cannot keep pages: cannot write s3://pages/a/b/2")
    };
    let mut running = crawling();
    until("some pages", || asked.lock().unwrap().len() > 8);
    server.stop().unwrap();
    until("the status tells of it", told);
    let before = asked.lock().unwrap().len();
    assert!(before < 250, "{before}");
    // It comes back, and the crawl goes on.
    server.start_again().unwrap();
    until("it goes on", || asked.lock().unwrap().len() > before + 5);
    until("the status tells of it, too", || trouble(&folder.path).is_empty());
    // Again, and who has enough of waiting stops the crawl.
    server.stop().unwrap();
    until("the status tells of it", told);
    kill_process(Pid::from_child(&running.0), Signal::INT).unwrap();
    until("it has stopped", || running.0.try_wait().unwrap().is_some());
    assert_eq!(running.0.wait().unwrap().code(), Some(4), "{}", log());
    // Who begins without a server is told so.
    let mut running = crawling();
    assert_eq!(running.0.wait().unwrap().code(), Some(2), "{}", log());
    assert!(
        log().contains("--archive s3://pages/a/b?compression=none: cannot write s3://pages/a/b/.trapline: "),
        "{}",
        log()
    );
    server.start_again().unwrap();
    let mut running = crawling();
    assert_eq!(running.0.wait().unwrap().code(), Some(0), "{}", log());
    assert_all_there(&server, &folder, 300);
}

#[test]
fn what_is_wrong_with_a_bucket_is_told() {
    let server = S3Server::start("pages").unwrap();
    let folder = Folder::new("archive-s3-wrong");
    let (address, _) = noisy_site(1);
    let check = |url: &str, variable: (&str, &str), told: &str| {
        let mut command = with_server(&server, command(address, &folder.path, &["--archive", url]));
        let output = command.env(variable.0, variable.1).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", error(&output));
        assert!(
            error(&output).contains(told) && !error(&output).contains("for-tests-only"),
            "{}",
            error(&output)
        );
    };
    check("s3://nowhere", ("X", ""), "NoSuchBucket");
    check("s3://pages", ("AWS_SECRET_ACCESS_KEY", "another"), "SignatureDoesNotMatch");
    check("s3://pages", ("AWS_ALLOW_HTTP", "false"), "AWS_ALLOW_HTTP=true in the environment allows that");
}

#[test]
fn seeds_come_from_a_bucket() {
    let server = S3Server::start("lists").unwrap();
    let folder = Folder::new("seeds-s3");
    let (address, asked) = noisy_site(3);
    fs::write(
        server.bucket("lists").join("seeds.txt"),
        format!("# mine\nhttp://{address}/seed\nftp://x.test/\n"),
    )
    .unwrap();
    let flags = ["--delay", "0", "--seeds", "s3://lists/seeds.txt"];
    let output = with_server(&server, command(address, &folder.path, &flags)).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    assert!(asked.lock().unwrap().iter().any(|path| path == "/seed"));
    assert!(error(&output).contains("s3://lists/seeds.txt:3: `ftp:` is not fetched"), "{}", error(&output));

    let flags = ["--seeds", "s3://lists/none.txt"];
    let output = with_server(&server, command(address, &folder.path, &flags)).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("cannot read seeds from s3://lists/none.txt: "), "{}", error(&output));
}
