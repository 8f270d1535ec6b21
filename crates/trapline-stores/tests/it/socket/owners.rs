//! Owners that begin, end, die and follow one another; and the socket's file.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use trapline_core::Request;
use trapline_frontier::{Admission, ErrorKind, Frontier, Store, UrlState};
use trapline_stores::{DiskOptions, DiskStore, Durability, SharedStore, SocketStore};

use super::{NOW, connect, crawl, serve};
use crate::disk::SMALL;
use crate::folder::TestFolder;

/// Nobody waits for the disk, so that more happens at once.
const QUICK: DiskOptions = DiskOptions { durability: Durability::Explicit, ..SMALL };

fn admit(crawl: &Frontier, url: &str) -> Admission {
    pollster::block_on(crawl.admit(NOW, [Request::get(url)])).expect("it is admitted").remove(0)
}

#[test]
fn the_socket_is_its_users_alone_and_goes_with_the_owner() {
    let folder = TestFolder::new();
    let socket = folder.path().join("socket");
    let owner = serve(&folder);
    let found = fs::metadata(&socket).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    owner.close().unwrap();
    assert!(!socket.exists());

    // One that was left by an owner that was killed is replaced.
    drop(UnixListener::bind(&socket).unwrap());
    let owner = serve(&folder);
    assert_eq!(admit(&crawl(connect(&folder)), "http://a.example/"), Admission::Added);
    drop(owner);
    assert!(!socket.exists());

    // Opened without serving there is none.
    let _owner = DiskStore::open(folder.path(), &SMALL).unwrap();
    assert!(!socket.exists());
}

#[test]
fn what_is_no_socket_is_left_alone() {
    let folder = TestFolder::new();
    serve(&folder).close().unwrap();
    fs::write(folder.path().join("socket"), "precious").unwrap();
    let error = DiskStore::serve(folder.path(), &SMALL).err().unwrap();
    let expected = format!(
        "disk store: cannot serve `{}`: `socket` in it is something else than a socket; move that away",
        folder.path().display()
    );
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Unavailable, expected));
    assert_eq!(fs::read(folder.path().join("socket")).unwrap(), b"precious");
    assert!(DiskStore::open(folder.path(), &SMALL).is_ok(), "the folder is free");
}

#[test]
fn folders_may_be_deeper_than_a_sockets_address() {
    let above = TestFolder::new();
    let mut path = above.path().to_owned();
    while path.as_os_str().len() < 600 {
        path.push("a-rather-long-name-of-a-folder");
    }
    let owner = DiskStore::serve(&path, &SMALL).unwrap();
    assert!(path.join("socket").exists());
    let guest = crawl(SocketStore::connect(&path).unwrap());
    assert_eq!(admit(&guest, "http://a.example/"), Admission::Added);
    owner.close().unwrap();
    assert!(!path.join("socket").exists());
}

#[test]
fn a_second_owner_is_told_who_holds_a_folder_that_is_not_served() {
    let folder = TestFolder::new();
    let _owner = DiskStore::open(folder.path(), &SMALL).unwrap();
    let expected = format!(
        "disk store: cannot open `{}`: process {} holds it; stop that one first",
        folder.path().display(),
        std::process::id()
    );
    let error = SharedStore::open(folder.path(), SMALL).err().unwrap();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Unavailable, expected.clone()));
    let error = DiskStore::serve(folder.path(), &SMALL).err().unwrap();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn without_an_owner_there_is_nobody_to_connect_to() {
    let folder = TestFolder::new();
    let error = SocketStore::connect(folder.path()).err().unwrap();
    let expected = format!(
        "disk store: cannot connect to `{}`: nobody serves it (No such file or directory (os error 2)); open it instead, or \
         start its owner",
        folder.path().display()
    );
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Unavailable, expected));
}

#[test]
fn when_the_owner_ends_nothing_is_done_until_another_begins() {
    let folder = TestFolder::new();
    let owner = serve(&folder);
    let guest = connect(&folder);
    let frontier = crawl(connect(&folder));
    owner.close().unwrap();
    let error = pollster::block_on(guest.stats("c", NOW)).unwrap_err();
    let expected = format!(
        "disk store: cannot count in `{}`: nobody serves it any more (No such file or directory (os error 2)); nothing was \
         done: start its owner, then try again",
        folder.path().display()
    );
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Unavailable, expected));
    let _next = serve(&folder);
    assert!(pollster::block_on(guest.stats("c", NOW)).is_ok());
    assert_eq!(admit(&frontier, "http://a.example/"), Admission::Added);
}

/// Something that listens at a store's socket, answers one hello, and dies having read a whole request or a part of it.
fn dying_owner(folder: &TestFolder, reads: usize) -> std::thread::JoinHandle<()> {
    fs::create_dir_all(folder.path()).expect("the test can do this");
    let listener = UnixListener::bind(folder.path().join("socket")).expect("the test can do this");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the test can do this");
        let mut hello = [0; 12];
        stream.read_exact(&mut hello).expect("the test can do this");
        stream.write_all(&hello).expect("the test can do this");
        let mut bytes = vec![0; reads];
        stream.read_exact(&mut bytes).expect("the test can do this");
    })
}

#[test]
fn when_the_owner_dies_in_the_middle_the_outcome_is_unknown() {
    let folder = TestFolder::new();
    let owner = dying_owner(&folder, 5);
    let guest = connect(&folder);
    let error = pollster::block_on(guest.stats("c", NOW)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let message = error.to_string();
    let begin =
        format!("disk store: cannot count in `{}` for certain: its owner went away", folder.path().display());
    assert!(message.starts_with(&begin), "{message}");
    assert!(message.ends_with(
        "the outcome is unknown: it was done as a whole or not at all, so look before you try again"
    ));
    owner.join().unwrap();
}

#[test]
fn an_owner_of_another_version_is_named() {
    let folder = TestFolder::new();
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(folder.path().join("lock"), "4711\n").unwrap();
    let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    let owner = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"trapline\x09\0\0\0").unwrap();
    });
    let error = SocketStore::connect(folder.path()).err().unwrap();
    let expected = format!(
        "disk store: cannot connect to `{}`: process 4711 holds it and speaks version 9 of the socket's language, and this is \
         version 1; use one version of Trapline for both",
        folder.path().display()
    );
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Unsupported, expected));
    owner.join().unwrap();
}

#[test]
fn whoever_is_left_takes_over_and_nothing_is_lost_or_done_twice() {
    let folder = TestFolder::new();
    let path = folder.path().to_owned();
    let open = |path: &PathBuf| SharedStore::open(path, SMALL).expect("it opens or connects");
    crawl(open(&path));
    let is_over = AtomicBool::new(false);
    let admitted = std::thread::scope(|scope| {
        // Owners and guests that come and go, as commands do.
        let passing = scope.spawn(|| {
            for _ in 0..15 {
                let store = open(&path);
                let guest = open(&path);
                pollster::block_on(guest.stats("c", NOW)).expect("it is answered");
                drop(store);
                pollster::block_on(guest.stats("c", NOW)).expect("it is answered");
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let workers: Vec<_> = (0..3)
            .map(|worker| {
                let (is_over, path, open) = (&is_over, &path, &open);
                scope.spawn(move || {
                    let mut urls = Vec::new();
                    let mut round = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        // Opened anew now and then, so that owners change under everybody.
                        let frontier = crawl(open(path));
                        for number in 0..20 {
                            let url = format!("http://{worker}.example/{round}/{number}");
                            assert_eq!(admit(&frontier, &url), Admission::Added, "{url}");
                            urls.push(url);
                        }
                        round += 1;
                    }
                    urls
                })
            })
            .collect();
        passing.join().unwrap();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    let store = open(&path);
    assert!(store.is_owner());
    let frontier = crawl(store);
    for url in &admitted {
        assert_eq!(pollster::block_on(frontier.url(NOW, url)).unwrap().state, UrlState::Pending, "{url}");
    }
    let stats = pollster::block_on(frontier.stats(NOW)).unwrap();
    assert_eq!(stats.urls_in(UrlState::Pending), admitted.len() as u64);
}

#[test]
fn an_owner_that_is_dropped_under_load_leaves_nobody_in_doubt() {
    let folder = TestFolder::new();
    crawl(DiskStore::open(folder.path(), &QUICK).unwrap());
    let mut admitted = 0;
    for round in 0..40 {
        let owner = DiskStore::serve(folder.path(), &QUICK).unwrap();
        let done = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for client in 0..4 {
                let (guest, done) = (crawl(connect(&folder)), &done);
                scope.spawn(move || {
                    for number in 0.. {
                        let request = Request::get(format!("http://{client}.example/{round}/{number}"));
                        let Err(error) = pollster::block_on(guest.admit(NOW, [request])) else {
                            done.fetch_add(1, Ordering::Relaxed);
                            continue;
                        };
                        assert_eq!(error.kind(), ErrorKind::Unavailable);
                        assert!(error.to_string().contains("nothing was done"), "{error}");
                        return;
                    }
                });
            }
            while done.load(Ordering::Relaxed) < 20 {
                std::thread::yield_now();
            }
            drop(owner);
        });
        admitted += done.into_inner();
    }
    // The last to have the store may be a thread that serves, and the folder not free yet.
    let store = crawl(SharedStore::open(folder.path(), QUICK).unwrap());
    let stats = pollster::block_on(store.stats(NOW)).unwrap();
    assert_eq!(stats.urls_in(UrlState::Pending), admitted);
}

#[test]
fn many_threads_share_the_connections_of_one_store() {
    let folder = TestFolder::new();
    let owner = serve(&folder);
    let guest = crawl(connect(&folder));
    std::thread::scope(|scope| {
        for thread in 0..40 {
            let guest = &guest;
            scope.spawn(move || {
                for number in 0..10 {
                    assert_eq!(admit(guest, &format!("http://{thread}.example/{number}")), Admission::Added);
                }
            });
        }
    });
    assert_eq!(pollster::block_on(guest.stats(NOW)).unwrap().urls_in(UrlState::Pending), 400);
    drop(guest);
    owner.close().unwrap();
}

#[test]
fn the_durability_is_the_owners_and_told() {
    for (durability, name) in [
        (Durability::Batch, "batch"),
        (Durability::Interval(std::time::Duration::from_millis(100)), "interval 100ms"),
        (Durability::Explicit, "explicit"),
    ] {
        let folder = TestFolder::new();
        let owner = DiskStore::serve(folder.path(), &DiskOptions { durability, ..SMALL }).unwrap();
        let guest = crawl(SharedStore::open(folder.path(), SMALL).unwrap());
        assert_eq!(pollster::block_on(guest.stats(NOW)).unwrap().durability.as_deref(), Some(name));
        pollster::block_on(guest.flush()).unwrap();
        // Dropped while it is connected to: it ends in good order all the same.
        drop(owner);
        assert_eq!(pollster::block_on(guest.stats(NOW)).unwrap().durability.as_deref(), Some("batch"));
    }
}

#[test]
fn an_answer_that_is_too_large_hands_nothing_out() {
    let folder = TestFolder::new();
    let owner = serve(&folder);
    let shared: Arc<dyn Store> = owner;
    let own = pollster::block_on(Frontier::builder("c").open_shared(shared, NOW)).unwrap();
    for number in 0..5 {
        let mut request = Request::get(format!("http://{number}.example/"));
        request.body = vec![b'x'; 60 << 20];
        pollster::block_on(own.admit(NOW, [request])).unwrap();
    }
    let guest = crawl(connect(&folder));
    let error = pollster::block_on(guest.claim(NOW, 5)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let message = error.to_string();
    assert!(message.ends_with("and at most 268435456 go through the socket; ask for less"), "{message}");
    assert_eq!(pollster::block_on(guest.stats(NOW)).unwrap().urls_in(UrlState::Pending), 5);
    assert_eq!(pollster::block_on(guest.claim(NOW, 2)).unwrap().leases.len(), 2);
}
