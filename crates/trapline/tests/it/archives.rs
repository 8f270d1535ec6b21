//! Crawls that keep their pages, seen from outside.
#![allow(clippy::unwrap_used, reason = "what reads an archive is a part of the tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;
use trapline_archive::{RecordCounts, scan_warc};

use crate::crawl::{Asked, Running, command, crawl, error, lines, paths, site, site_that, until};
use crate::fetch::{ok, serve};
use crate::folder::Folder;

const HTML: &str = "Content-Type: text/html\r\n";

/// The WARC files in a folder, those that are complete.
pub(crate) fn warcs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<_> = entries.filter(|path| path.extension().is_some_and(|kind| kind == "gz")).collect();
    all.sort();
    all
}

/// What is in them. They are whole.
pub(crate) fn counts(folder: &Path) -> RecordCounts {
    let mut counts = RecordCounts::default();
    for path in warcs(folder) {
        let scan = scan_warc(&path).unwrap();
        assert_eq!(scan.torn, None, "{}", path.display());
        counts += scan.counts;
    }
    counts
}

/// The URLs that the indexes in a folder name.
fn indexed(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let indexes = entries.filter(|path| path.extension().is_some_and(|kind| kind == "cdxj"));
    let texts: Vec<_> = indexes.map(|path| fs::read_to_string(path).unwrap()).collect();
    let fields = texts.iter().flat_map(|text| text.lines()).map(|line| &line[line.find('{').unwrap()..]);
    fields
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["url"].as_str().unwrap().to_owned())
        .collect()
}

/// What is done, by the store's account.
fn done(folder: &Folder) -> BTreeSet<String> {
    let store = format!("disk:{}", folder.path.join("store").display());
    let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["frontier", "--store", &store, "--json", "urls", "--state", "done"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["url"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn pages_are_kept_in_several_archives_at_once() {
    let folder = Folder::new("archive-several");
    let (address, _) = site(8, "");
    let [warc, early, bodies] = ["warc", "early", "bodies"].map(|name| folder.path.join(name));
    let urls = [
        format!("warc:{}?prefix=news&max_size=2KiB", warc.display()),
        format!("warc:{}?chain=fetch&name=x{{serial}}", early.display()),
        format!("file:{}?compression=none", bodies.display()),
    ];
    let archives: Vec<_> = urls.iter().flat_map(|url| ["--archive", url.as_str()]).collect();
    let output = crawl(address, &folder.path, &[&["--delay", "0"], &archives[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let pages = lines(&folder.path, "pages.jsonl");
    assert!(pages.len() >= 10, "{}", pages.len());
    for folder in [&warc, &early] {
        let counts = counts(folder);
        assert_eq!(counts.response + counts.revisit, pages.len() as u64);
        assert_eq!((counts.request, counts.metadata), (pages.len() as u64, pages.len() as u64));
        assert_eq!(indexed(folder).len(), pages.len());
    }
    assert!(warcs(&warc).len() > 2 && warcs(&early).len() == 1);
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("news-2");
    assert!(warcs(&warc).iter().all(named), "{:?}", warcs(&warc));
    assert_eq!(warcs(&early)[0].file_name().unwrap(), "x00000.warc.gz");
    for page in &pages {
        // In the order of the chains. Bodies that are not there are nowhere.
        let places: Vec<_> =
            page["archived"].as_array().unwrap().iter().map(|place| place.as_str().unwrap()).collect();
        assert!(
            places[0].starts_with("warc:x00000.warc.gz#") && places[1].starts_with("warc:news-"),
            "{places:?}"
        );
        assert_eq!(places.len(), if page["decoded_bytes"] == 0 { 2 } else { 3 });
        if let Some(place) = places.get(2) {
            let body = fs::read(place.strip_prefix("file:").unwrap()).unwrap();
            assert_eq!(body.len() as u64, page["decoded_bytes"].as_u64().unwrap());
            assert!(
                place.contains(page["digest"].as_str().unwrap().strip_prefix("blake3:").unwrap()),
                "{place}"
            );
        }
    }
}

#[test]
fn an_archive_that_cannot_be_is_told_before_anything_begins() {
    let folder = Folder::new("archive-wrong");
    let (address, asked) = site(2, "");
    let check = |url: &str, told: &str| {
        let output = crawl(address, &folder.path, &["--archive", url]);
        assert_eq!(output.status.code(), Some(2), "{}", error(&output));
        assert!(error(&output).contains(told), "{}", error(&output));
    };
    check("wrac:x", "--archive: output.archives: `wrac:x` names no archive: did you mean `warc:`?");
    check("warc:x?maxsize=1", "did you mean `max_size`?");
    check("warc:/proc/nowhere", "--archive warc:/proc/nowhere: cannot make the folder /proc/nowhere");
    check("file:/proc/nowhere", "--archive file:/proc/nowhere: cannot keep bodies in /proc/nowhere");
    let output = crawl(
        address,
        &folder.path,
        &["--archive", "warc:x", "--set", r#"chains.disposition=["outcome", "links", "pace", "output"]"#],
    );
    assert!(
        error(&output).contains("the disposition chain needs `archive`: an archive is to stand there"),
        "{}",
        error(&output)
    );
    assert!(asked.lock().unwrap().is_empty());
}

/// Between writing and syncing nothing is done; and whatever the disk then has of it, nothing is lost.
#[test]
fn nothing_is_done_before_its_record_is_synced_whenever_it_is_killed() {
    let folder = Folder::new("archive-killed");
    fs::create_dir_all(&folder.path).unwrap();
    let (warc, gate) = (folder.path.join("warc"), folder.path.join("gate"));
    // The server itself closes the gate, before it answers: a crawl cannot run past it, however slow this thread is.
    let until_closed = Arc::new(AtomicI64::new(i64::MAX));
    let address = site_that(30, "", {
        let (gate, until_closed) = (gate.clone(), Arc::clone(&until_closed));
        move |_: &str| {
            if until_closed.fetch_sub(1, Ordering::SeqCst) == 1 {
                fs::write(&gate, "").expect("the folder is there");
            }
        }
    });
    let url = format!("warc:{}", warc.display());
    let flags = ["--delay", "2ms", "-q", "--archive", &url, "--set", "crawl.max_deliveries=0"];
    let open = || {
        let mut entries = fs::read_dir(&warc).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.find(|path| path.extension().is_some_and(|kind| kind == "open"))
    };
    for round in 0..5 {
        let mut crawl = command(address, &folder.path, &flags);
        crawl.env("TRAPLINE_PLANTED_WARC_SYNC", &gate).stdout(Stdio::null()).stderr(Stdio::null());
        until_closed.store(4, Ordering::SeqCst);
        let killed = Running(crawl.spawn().unwrap());
        until("a record is written and not synced", || gate.with_extension("waiting").exists());
        // As `kill -9` does.
        drop(killed);
        for path in [&gate, &gate.with_extension("waiting")] {
            fs::remove_file(path).unwrap();
        }
        // One page at a time: the last one in the file is the one that waited.
        let path = open().expect("the file is not complete");
        let bytes = fs::metadata(&path).unwrap().len();
        assert_eq!(scan_warc(&path).unwrap().whole_bytes, bytes, "it was written");
        // A disk that has lost some of what was not synced.
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(bytes - 1 - 150 * round).unwrap();
    }
    let output = crawl(address, &folder.path, &flags);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let (done, kept) = (done(&folder), indexed(&warc));
    // All pages, two beyond the last, and the one with a query.
    assert_eq!(done.len(), 30 + 2 + 1, "{done:?}");
    let lost: Vec<_> = done.difference(&kept).collect();
    assert!(lost.is_empty(), "done and not kept: {lost:?}");
    assert!(open().is_none() && counts(&warc).metadata >= done.len() as u64);
}

/// A site of so many pages that no compressor makes much shorter, each with two below it.
pub(crate) fn noisy_site(pages: u64) -> (std::net::SocketAddr, Asked) {
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    let address = serve(move |path, _| {
        log.lock().expect("nobody panics with it").push(path.to_owned());
        let number =
            if path == "/" { Some(0) } else { path.strip_prefix("/p").and_then(|n| n.parse::<u64>().ok()) };
        match number.filter(|number| *number < pages) {
            Some(number) => {
                let mut state = number.wrapping_add(1);
                let noise: String = (0..1000)
                    .map(|_| {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        format!("{state:016x}")
                    })
                    .collect();
                let children = [2 * number + 1, 2 * number + 2].into_iter().filter(|child| *child < pages);
                let links: String = children.map(|child| format!("<a href=/p{child}>x</a>")).collect();
                ok(HTML, &format!("{links}{noise}"))
            }
            None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        }
    });
    (address, asked)
}

/// What the status of a crawl says.
pub(crate) fn trouble(folder: &Path) -> String {
    let text = fs::read_to_string(folder.join("status.json")).unwrap_or_default();
    let status = serde_json::from_str::<Value>(&text).unwrap_or_default();
    status["trouble"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_full_disk_pauses_the_crawl_until_there_is_room() {
    let folder = Folder::new("archive-full");
    fs::create_dir_all(&folder.path).unwrap();
    let (address, asked) = noisy_site(60);
    let warc = folder.path.join("warc");
    let url = format!("warc:{}", warc.display());
    let flags = ["--delay", "5ms", "--store", "memory:", "--archive", &url, "--set", "output.progress=200ms"];
    let log = folder.path.join("log");
    let plain = command(address, &folder.path, &flags);
    // A file that may not become longer is as good as a full disk, if the signal that says so does not kill.
    let mut crawl = Command::new("sh");
    crawl.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(plain.get_program()).args(plain.get_args());
    crawl.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap());
    let mut running = Running(crawl.spawn().unwrap());
    until("some pages", || asked.lock().unwrap().len() > 10);
    let pid = Pid::from_child(&running.0);
    let open = fs::read_dir(&warc).unwrap().next().unwrap().unwrap().path();
    let limit = |bytes| {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(pid), Resource::Fsize, limit).unwrap();
    };
    limit(Some(fs::metadata(&open).unwrap().len() + 20_000));
    let told = |text: &str| {
        text.contains("nothing is fetched since 2")
            && text
                .contains(&format!("the archive {url} cannot keep pages: cannot write to {}", open.display()))
            && text.contains("make room, and the crawl goes on by itself")
    };
    until("the status tells of it", || told(&trouble(&folder.path)));
    until("the lines tell of it", || told(&fs::read_to_string(&log).unwrap()));
    // What is in flight waits, and nothing else is asked for.
    let before = asked.lock().unwrap().len();
    assert!(before < 30, "{before}");
    let at = fs::read_to_string(folder.path.join("status.json")).unwrap();
    until("time passes", || fs::read_to_string(folder.path.join("status.json")).unwrap() != at);
    assert_eq!(asked.lock().unwrap().len(), before);
    limit(None);
    until("all is done", || running.0.try_wait().unwrap().is_some());
    assert_eq!(running.0.wait().unwrap().code(), Some(0), "{}", fs::read_to_string(&log).unwrap());
    assert_eq!(paths(&folder.path).len(), 60);
    assert_eq!(counts(&warc).metadata, 60, "each page once");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), asked.len(), "each asked for once");
}

/// Who stops a crawl that waits for room need not wait: what is not kept is fetched again.
#[test]
fn a_crawl_that_waits_for_room_can_be_stopped() {
    let folder = Folder::new("archive-full-stop");
    fs::create_dir_all(&folder.path).unwrap();
    let (address, asked) = noisy_site(20);
    let bodies = folder.path.join("bodies");
    let url = format!("file:{}?chain=fetch", bodies.display());
    let flags = ["--delay", "20ms", "-q", "--archive", &url];
    let mut crawling = command(address, &folder.path, &flags);
    let mut running = Running(crawling.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    until("some pages", || asked.lock().unwrap().len() > 5);
    // Where a folder should be there is a file, so that nothing can be written: at one stroke, or the crawl makes another one.
    let (year, away) = (fs::read_dir(&bodies).unwrap(), folder.path.join("away"));
    let year = year.flatten().map(|entry| entry.path()).find(|path| path.is_dir()).unwrap();
    fs::write(&away, "").unwrap();
    let swap = || renameat_with(CWD, &year, CWD, &away, RenameFlags::EXCHANGE);
    swap().unwrap();
    until("the status tells of it", || {
        trouble(&folder.path).contains("cannot keep pages: cannot write file:")
    });
    kill_process(Pid::from_child(&running.0), Signal::INT).unwrap();
    until("it has stopped", || running.0.try_wait().unwrap().is_some());
    assert_eq!(running.0.wait().unwrap().code(), Some(4));
    swap().unwrap();
    let output = crawl(address, &folder.path, &flags);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let pages = lines(&folder.path, "pages.jsonl");
    assert_eq!(pages.len(), 20);
    for page in pages.iter().filter(|page| page["status"] == 200) {
        let place = page["archived"][0].as_str().unwrap().strip_prefix("file:").unwrap();
        assert!(fs::metadata(place).is_ok_and(|about| about.len() > 0), "{place}");
    }
}
