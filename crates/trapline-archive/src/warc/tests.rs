//! WARC files as a whole: what is in them, what a crash leaves, and disks that are full.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use trapline_core::{IdentityKey, Request};
use trapline_crawl::{RawExchange, Response};
use trapline_frontier::{Lease, LeaseId};

use super::files::OpenFile;
use super::*;

/// A folder that is gone with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("trapline-warc-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    /// The names of the files in it, in order.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Those of complete WARC files.
    fn complete(&self) -> Vec<PathBuf> {
        let names = self.names().into_iter().filter(|name| name.ends_with(".warc.gz"));
        names.map(|name| self.0.join(name)).collect()
    }

    /// All records of complete files: their heads and blocks.
    fn records(&self) -> Vec<(String, Vec<u8>)> {
        let mut records = Vec::new();
        for path in self.complete() {
            let bytes = fs::read(path).unwrap();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let mut record = Vec::new();
                flate2::bufread::GzDecoder::new(&mut rest).read_to_end(&mut record).unwrap();
                let end = record.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
                let head = String::from_utf8(record[..end].to_vec()).unwrap();
                records.push((head, record[end + 4..record.len() - 4].to_vec()));
            }
        }
        records
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn visit_with(url: &str, response: Response) -> Visit {
    let mut request = Request::get(url.to_owned());
    request.via = Some("http://a.example/\r\nWARC-Type: response".to_owned());
    request.hop_path = "L".to_owned();
    let lease = Lease {
        id: LeaseId(1),
        crawl: "c".into(),
        key: "k".into(),
        identity: IdentityKey::from_seed(1).identify("GET", url, b""),
        request: Arc::new(request),
        deadline: Timestamp::MAX,
        delivery: 1,
        retries: 0,
        cost: 1,
        page: None,
    };
    let mut visit = Visit::new(lease, Timestamp::from_millis(1_777_000_000_123)).unwrap();
    visit.response = Some(Arc::new(response));
    visit
}

fn response(body: &[u8]) -> Response {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nX-Odd: \xff\xfe\r\n\r\n";
    let raw = RawExchange {
        request: Bytes::from_static(b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n"),
        head: Bytes::from_static(head),
        body: Bytes::copy_from_slice(body),
        complete: true,
        exact: true,
        server: Some([192, 0, 2, 1].into()),
    };
    let headers = vec![("content-type".to_owned(), Bytes::from_static(b"text/html; charset=utf-8"))];
    Response { status: Some(200), headers, body: raw.body.clone(), raw: Some(raw), ..Response::default() }
}

fn visit(number: usize) -> Visit {
    let body = format!("<p>page {number}</p>").repeat(20);
    visit_with(&format!("http://a.example/{number}"), response(body.as_bytes()))
}

fn options() -> WarcOptions {
    WarcOptions::default()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn a_visit_is_a_request_a_response_and_metadata() {
    let folder = Folder::new("visit");
    let archive = WarcArchive::open(&folder.0, options()).unwrap();
    let place = run(async {
        let place = archive.keep(&visit(1)).await.unwrap().unwrap();
        assert!(folder.names()[0].ends_with(".warc.gz.open"), "{:?}", folder.names());
        archive.close().await.unwrap();
        place
    });
    let records = folder.records();
    let kinds: Vec<_> = records.iter().map(|(head, _)| field(head, "WARC-Type").unwrap()).collect();
    assert_eq!(kinds, ["warcinfo", "request", "response", "metadata"]);
    let (head, block) = &records[2];
    assert!(head.starts_with("WARC/1.1\r\n"), "{head}");
    assert_eq!(field(head, "WARC-Target-URI"), Some("http://a.example/1"));
    assert_eq!(field(head, "WARC-Date"), Some("2026-04-24T03:06:40.123Z"));
    assert_eq!(field(head, "WARC-IP-Address"), Some("192.0.2.1"));
    assert!(block.starts_with(b"HTTP/1.1 200 OK\r\n") && block.windows(2).any(|two| two == b"\xff\xfe"));
    let metadata = String::from_utf8(records[3].1.clone()).unwrap();
    assert!(
        metadata.contains("via: http://a.example/%0D%0AWARC-Type: response\r\nhopsFromSeed: L\r\n"),
        "{metadata}"
    );
    let concurrent = field(head, "WARC-Record-ID");
    assert_eq!(
        (field(&records[1].0, "WARC-Concurrent-To"), field(&records[3].0, "WARC-Concurrent-To")),
        (concurrent, concurrent)
    );
    // Where it is: the answer and the index agree, and a reader finds it there.
    let path = &folder.complete()[0];
    let (file, offset) = place.strip_prefix("warc:").unwrap().split_once('#').unwrap();
    assert_eq!(path.file_name().unwrap(), file);
    let offset: usize = offset.parse().unwrap();
    let mut record = String::new();
    let bytes = fs::read(path).unwrap();
    let _ = flate2::bufread::GzDecoder::new(&bytes[offset..]).take(30).read_to_string(&mut record);
    assert!(record.starts_with("WARC/1.1\r\nWARC-Type: response"), "{record}");
    let index = fs::read_to_string(path.with_extension("").with_extension("cdxj")).unwrap();
    assert!(index.contains(&format!("\"offset\":\"{offset}\"")), "{index}");
    assert_eq!(archive.counts(), scan_warc(path).unwrap().counts);
}

#[test]
fn what_is_the_same_is_not_written_again_also_after_a_restart() {
    let folder = Folder::new("same");
    let same = |url: &str| visit_with(url, response(b"the same body"));
    let not_modified = || {
        let mut response = response(b"");
        response.status = Some(304);
        response.not_modified = true;
        visit_with("http://a.example/1", response)
    };
    run(async {
        let archive = WarcArchive::open(&folder.0, options()).unwrap();
        for visit in [same("http://a.example/1"), same("http://a.example/2"), not_modified()] {
            archive.keep(&visit).await.unwrap();
        }
        // What is cut off, or has no body, is no copy of anything.
        let mut cut = response(b"the same body");
        cut.truncated = Some("length");
        archive.keep(&visit_with("http://a.example/3", cut)).await.unwrap();
        archive.keep(&visit_with("http://a.example/4", response(b""))).await.unwrap();
        archive.keep(&visit_with("http://a.example/5", response(b""))).await.unwrap();
        archive.close().await.unwrap();
        let archive = WarcArchive::open(&folder.0, options()).unwrap();
        archive.keep(&same("http://a.example/6")).await.unwrap();
        archive.close().await.unwrap();
        let archive = WarcArchive::open(&folder.0, WarcOptions { dedup: 0, ..options() }).unwrap();
        archive.keep(&same("http://a.example/7")).await.unwrap();
        archive.close().await.unwrap();
    });
    let records = folder.records();
    let of = |number: u32| -> BTreeMap<&str, &str> {
        let url = format!("http://a.example/{number}");
        let mut found = records.iter().map(|(head, _)| head).filter(|head| {
            field(head, "WARC-Target-URI") == Some(&url)
                && matches!(field(head, "WARC-Type"), Some("response" | "revisit"))
        });
        let head = found.next_back().unwrap();
        head.lines().filter_map(|line| line.split_once(": ")).collect()
    };
    for (number, profile) in
        [(2, "identical-payload-digest"), (6, "identical-payload-digest"), (1, "server-not-modified")]
    {
        let head = of(number);
        assert_eq!(head["WARC-Type"], "revisit");
        assert_eq!(head["WARC-Profile"], format!("http://netpreserve.org/warc/1.1/revisit/{profile}"));
        assert_eq!(head["WARC-Refers-To-Target-URI"], "http://a.example/1");
        let date = (profile != "server-not-modified").then_some("2026-04-24T03:06:40.123Z");
        assert_eq!(head.get("WARC-Refers-To-Date").copied(), date);
    }
    for number in [3, 4, 5, 7] {
        assert_eq!(of(number)["WARC-Type"], "response", "{number}");
    }
    assert_eq!(of(3)["WARC-Truncated"], "disconnect");
}

#[test]
fn files_are_completed_when_they_are_large_enough() {
    let folder = Folder::new("rotation");
    let options = WarcOptions { max_size: 4000, ..options() };
    run(async {
        let archive = WarcArchive::open(&folder.0, options).unwrap();
        for number in 0..20 {
            archive.keep(&visit(number)).await.unwrap();
        }
        archive.close().await.unwrap();
        assert!(archive.keep(&visit(1)).await.is_err());
    });
    let files = folder.complete();
    assert!(files.len() > 3, "{files:?}");
    let mut counts = RecordCounts::default();
    for path in &files {
        let scan = scan_warc(path).unwrap();
        assert_eq!(scan.torn, None);
        counts += scan.counts;
        assert!((100..6000).contains(&fs::metadata(path).unwrap().len()), "{path:?}");
    }
    assert_eq!((counts.response, counts.warcinfo), (20, files.len() as u64));
    assert!(folder.names().iter().all(|name| !name.ends_with(".open")), "{:?}", folder.names());
}

/// Wherever a crash cuts a file: what comes out is whole, and has all visits that were whole.
#[test]
fn torn_ends_are_cut_at_every_byte() {
    let folder = Folder::new("torn");
    run(async {
        let archive = WarcArchive::open(&folder.0, options()).unwrap();
        for number in 0..3 {
            archive.keep(&visit(number)).await.unwrap();
        }
        archive.close().await.unwrap();
    });
    let whole = fs::read(&folder.complete()[0]).unwrap();
    let torn = Folder::new("torn-again");
    fs::create_dir_all(&torn.0).unwrap();
    let mut visits_before = 0;
    for end in (0..=whole.len()).rev().step_by(7).chain([0]).collect::<std::collections::BTreeSet<_>>() {
        for garbage in [&b""[..], b"\x1f\x8b\x08 and then nothing of the kind", b"\0\0\0\0"] {
            for name in torn.names() {
                fs::remove_file(torn.0.join(name)).unwrap();
            }
            fs::write(torn.0.join("x.warc.gz.open"), [&whole[..end], garbage].concat()).unwrap();
            recovery::complete_what_is_left(&torn.0).unwrap();
            let files = torn.complete();
            let visits = match &files[..] {
                [] => 0,
                [file] => {
                    let scan = scan_warc(file).unwrap();
                    assert_eq!((scan.torn, scan.whole_bytes), (None, fs::metadata(file).unwrap().len()));
                    let index = fs::read_to_string(torn.0.join("x.cdxj")).unwrap();
                    assert_eq!(index.lines().count() as u64, scan.counts.response);
                    assert_eq!(scan.counts.metadata, scan.counts.response);
                    scan.counts.response
                }
                _ => panic!("{files:?}"),
            };
            assert!(visits >= visits_before, "a longer file has no fewer visits");
            assert_eq!(
                torn.names().len(),
                if visits > 0 { 2 } else { 0 },
                "nothing else is left: {:?}",
                torn.names()
            );
            visits_before = visits;
        }
    }
    assert_eq!(visits_before, 3);
}

#[test]
fn two_crawls_write_to_one_folder_and_leave_each_other_alone() {
    let folder = Folder::new("two");
    run(async {
        let one = WarcArchive::open(&folder.0, options()).unwrap();
        one.keep(&visit(1)).await.unwrap();
        let other = WarcArchive::open(&folder.0, options()).unwrap();
        other.keep(&visit(2)).await.unwrap();
        assert_eq!(
            folder.names().iter().filter(|name| name.ends_with(".open")).count(),
            2,
            "{:?}",
            folder.names()
        );
        one.keep(&visit(3)).await.unwrap();
        one.close().await.unwrap();
        other.close().await.unwrap();
    });
    let visits: u64 = folder.complete().iter().map(|path| scan_warc(path).unwrap().counts.response).sum();
    assert_eq!((visits, folder.complete().len()), (3, 2));
}

#[test]
fn without_the_bytes_as_they_came_there_is_no_warc() {
    let folder = Folder::new("raw");
    let archive = WarcArchive::open(&folder.0, options()).unwrap();
    let bare = Response { raw: None, ..response(b"x") };
    let error = run(archive.keep(&visit_with("http://a.example/", bare))).unwrap_err();
    assert!(error.to_string().contains("set `keep_raw`"), "{error}");
    let nothing = Response { status: None, ..response(b"x") };
    assert_eq!(run(archive.keep(&visit_with("http://a.example/", nothing))), Ok(None));
}

/// A head of HTTP/2 is written as one that readers know.
#[test]
fn http2_is_written_as_http1_and_said_so() {
    let folder = Folder::new("h2");
    let mut response = response(b"body");
    response.protocol = Some("HTTP/2");
    let raw = response.raw.as_mut().unwrap();
    raw.exact = false;
    raw.head = Bytes::from_static(b"HTTP/2 200\r\ncontent-type: text/html\r\n\r\n");
    run(async {
        let archive = WarcArchive::open(&folder.0, options()).unwrap();
        archive.keep(&visit_with("http://a.example/", response)).await.unwrap();
        archive.close().await.unwrap();
    });
    let records = folder.records();
    assert_eq!(records[2].1, b"HTTP/1.1 200\r\ncontent-type: text/html\r\n\r\nbody");
    assert_eq!(field(&records[2].0, "WARC-Protocol"), Some("h2"));
}

/// A disk on which things go wrong when a test says so, and which knows what was synced.
#[derive(Default)]
struct BadDisk {
    full: AtomicBool,
    no_sync: AtomicBool,
    no_cut: AtomicBool,
    syncs: AtomicUsize,
    /// How much of each file would survive a power cut.
    safe: Mutex<BTreeMap<PathBuf, u64>>,
    /// Syncs wait as long as it is so.
    closed: AtomicBool,
}

/// Lets syncs go on when it is dropped, so that a test that fails ends.
struct Opened<'d>(&'d BadDisk);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.closed.store(false, Ordering::SeqCst);
    }
}

struct BadFile {
    disk: Arc<BadDisk>,
    path: PathBuf,
    file: Box<dyn OpenFile>,
    bytes: u64,
}

struct BadFiles(Arc<BadDisk>);

impl Files for BadFiles {
    fn create(&self, path: &Path) -> std::io::Result<Box<dyn OpenFile>> {
        if self.0.full.load(Ordering::SeqCst) {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let (disk, path, file) = (Arc::clone(&self.0), path.to_owned(), RealFiles.create(path)?);
        Ok(Box::new(BadFile { disk, path, file, bytes: 0 }))
    }
}

impl OpenFile for BadFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if self.disk.full.load(Ordering::SeqCst) {
            // Some of it still finds room.
            self.file.write(&bytes[..bytes.len() / 2])?;
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.file.write(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> std::io::Result<()> {
        while self.disk.closed.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        if self.disk.no_sync.load(Ordering::SeqCst) {
            return Err(std::io::Error::other("the disk is gone"));
        }
        self.disk.syncs.fetch_add(1, Ordering::SeqCst);
        self.disk.safe.lock().unwrap().insert(self.path.clone(), self.bytes);
        self.file.sync()
    }

    fn cut(&mut self, bytes: u64) -> std::io::Result<()> {
        if self.disk.no_cut.load(Ordering::SeqCst) {
            return Err(std::io::Error::other("it cannot be cut"));
        }
        self.bytes = bytes;
        self.file.cut(bytes)
    }
}

fn bad(folder: &Folder) -> (Arc<BadDisk>, WarcArchive) {
    let disk = Arc::new(BadDisk::default());
    let archive = WarcArchive::open_on(Arc::new(BadFiles(Arc::clone(&disk))), &folder.0, options()).unwrap();
    (disk, archive)
}

#[test]
fn a_full_disk_is_told_and_nothing_half_written_counts() {
    for no_cut in [false, true] {
        let folder = Folder::new(&format!("full-{no_cut}"));
        let (disk, archive) = bad(&folder);
        run(async {
            disk.full.store(true, Ordering::SeqCst);
            let error = archive.keep(&visit(0)).await.unwrap_err().to_string();
            assert!(
                error.contains("cannot make ")
                    && error.contains("make room, and the crawl goes on by itself"),
                "{error}"
            );
            disk.full.store(false, Ordering::SeqCst);
            archive.keep(&visit(1)).await.unwrap();
            disk.full.store(true, Ordering::SeqCst);
            disk.no_cut.store(no_cut, Ordering::SeqCst);
            let error = archive.keep(&visit(2)).await.unwrap_err().to_string();
            assert!(
                error.contains(".warc.gz.open: ")
                    && error.contains("make room, and the crawl goes on by itself"),
                "{error}"
            );
            disk.full.store(false, Ordering::SeqCst);
            disk.no_sync.store(true, Ordering::SeqCst);
            let error = archive.keep(&visit(3)).await.unwrap_err().to_string();
            assert!(error.contains("the disk is gone"), "{error}");
            disk.no_sync.store(false, Ordering::SeqCst);
            disk.no_cut.store(false, Ordering::SeqCst);
            archive.keep(&visit(4)).await.unwrap();
            archive.close().await.unwrap();
        });
        let urls: Vec<_> = folder
            .records()
            .iter()
            .filter(|(head, _)| field(head, "WARC-Type") == Some("response"))
            .map(|(head, _)| field(head, "WARC-Target-URI").unwrap().to_owned())
            .collect();
        assert_eq!(urls, ["http://a.example/1", "http://a.example/4"], "{no_cut}");
        for path in folder.complete() {
            assert_eq!(scan_warc(&path).unwrap().torn, None);
        }
        assert!(folder.names().iter().all(|name| !name.ends_with(".open")), "{:?}", folder.names());
    }
}

/// While one sync is under way the next visits gather, and share the one that follows.
#[test]
fn one_sync_serves_many_and_nobody_is_answered_before_it() {
    let folder = Folder::new("group");
    let (disk, archive) = bad(&folder);
    let archive = Arc::new(archive);
    run(async {
        archive.keep(&visit(0)).await.unwrap();
        let before = disk.syncs.load(Ordering::SeqCst);
        disk.closed.store(true, Ordering::SeqCst);
        let opened = Opened(&disk);
        let keeping: Vec<_> = (1..=100)
            .map(|number| {
                let archive = Arc::clone(&archive);
                tokio::spawn(async move { archive.keep(&visit(number)).await })
            })
            .collect();
        // All that can be compressed waits to be written, or for the sync that cannot end.
        tokio::time::sleep(std::time::Duration::from_millis(700)).await;
        assert!(keeping.iter().all(|task| !task.is_finished()), "an answer before the sync");
        drop(opened);
        for task in keeping {
            task.await.unwrap().unwrap();
        }
        let syncs = disk.syncs.load(Ordering::SeqCst) - before;
        assert!((1..=20).contains(&syncs), "{syncs} syncs for a hundred visits");
        archive.close().await.unwrap();
    });
}

/// The power goes at many moments: what was answered is in what the disk had by then, whole.
#[test]
fn what_was_answered_survives_a_power_cut() {
    let folder = Folder::new("power");
    let (disk, archive) = bad(&folder);
    let archive = Arc::new(archive);
    let answered: Arc<Mutex<Vec<String>>> = Arc::default();
    run(async {
        for round in 0..10 {
            let tasks: Vec<_> = (0..8)
                .map(|number| {
                    let (archive, answered) = (Arc::clone(&archive), Arc::clone(&answered));
                    tokio::spawn(async move {
                        let visit = visit(round * 100 + number);
                        archive.keep(&visit).await.unwrap();
                        answered.lock().unwrap().push(visit.url().to_string());
                    })
                })
                .collect();
            tokio::task::yield_now().await;
            // First what was answered, then what is safe: the other way round nothing would be shown.
            let told = answered.lock().unwrap().clone();
            let safe = disk.safe.lock().unwrap().clone();
            let after = Folder::new("power-after");
            fs::create_dir_all(&after.0).unwrap();
            for (path, bytes) in safe {
                let content = fs::read(&path).unwrap();
                // A piece of what was not synced may be there, too.
                let end = content.len().min(bytes as usize + 37);
                fs::write(after.0.join(path.file_name().unwrap()), &content[..end]).unwrap();
            }
            recovery::complete_what_is_left(&after.0).unwrap();
            let kept: Vec<_> = after
                .records()
                .iter()
                .filter_map(|(head, _)| field(head, "WARC-Target-URI").map(str::to_owned))
                .collect();
            for url in told {
                assert!(kept.contains(&url), "{url} was answered and is gone");
            }
            for task in tasks {
                task.await.unwrap();
            }
        }
        archive.close().await.unwrap();
    });
    assert_eq!(answered.lock().unwrap().len(), 80);
}
