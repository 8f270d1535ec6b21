//! What strangers, clumsy programs and other versions send: their connection ends, with a word where possible, and nobody
//! else notices.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use trapline_core::Request;
use trapline_frontier::{Admission, ErrorKind, Store};

use super::{NOW, connect, crawl, serve};
use crate::folder::TestFolder;

const HELLO: &[u8] = b"trapline\x01\0\0\0";
const REFUSED: u8 = 9;

/// Sends some bytes and says nothing more; everything that comes back, up to the end of the connection.
fn send(folder: &TestFolder, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(folder.path().join("socket")).expect("it is served");
    stream.write_all(bytes).expect("it is taken");
    stream.shutdown(std::net::Shutdown::Write).expect("it is open");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it is answered");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Everything that still comes, however it ends.
fn rest(stream: &mut UnixStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hello_and(bytes: &[u8]) -> Vec<u8> {
    [HELLO, bytes].concat()
}

#[test]
fn nonsense_ends_its_own_connection_only() {
    let folder = TestFolder::new();
    let _owner = serve(&folder);
    let other = crawl(connect(&folder));
    let mut admitted = 0;
    let mut check = |bytes: &[u8], words: &str| {
        let answer = send(&folder, bytes);
        assert!(answer.starts_with("trapline"), "{answer:?}");
        assert!(answer.contains(words), "{answer:?} lacks {words:?}");
        assert_eq!(words.is_empty(), answer.len() == HELLO.len(), "{answer:?}");
        admitted += 1;
        let request = Request::get(format!("http://a.example/{admitted}"));
        let answers = pollster::block_on(other.admit(NOW, [request])).expect("others go on");
        assert_eq!(answers, [Admission::Added]);
    };
    check(b"", "");
    check(b"trap", "");
    check(b"GET / HTTP/1.1\r\n\r\n", "does not speak the language of Trapline's sockets");
    check(&[0xff; 100_000], "does not speak");
    check(
        b"trapline\x02\0\0\0",
        "the owner speaks version 1 of the socket's language, and the other side version 2",
    );
    check(HELLO, "");
    check(&hello_and(&[0, 0, 0, 0, 0]), "a frame has nothing in it");
    check(
        &hello_and(&[0xff, 0xff, 0xff, 0xff, 1]),
        "a frame has 4294967295 bytes, and at most 268435456 are taken",
    );
    check(&hello_and(&[0, 0, 0, 0x10, 1, 2, 3]), "");
    check(&hello_and(&[1, 0, 0, 0, 77]), "lacks a kind of request it knows the meaning of");
    check(&hello_and(&[1, 0, 0, 0, 1]), "what was asked cannot be read: it lacks a verb");
    check(&hello_and(&[3, 0, 0, 0, 3, 0xff, 0xff]), "what was asked cannot be read");
    // An answer that is right, and one that nobody waits for.
    check(&hello_and(&[4, 0, 0, 0, 3, 0x0a, 1, b'c']), "batch");
    for _ in 0..20 {
        let mut gone = UnixStream::connect(folder.path().join("socket")).unwrap();
        gone.write_all(&hello_and(&[4, 0, 0, 0, 3, 0x0a, 1, b'c'])).unwrap();
    }
    assert_eq!(pollster::block_on(other.stats(NOW)).unwrap().urls[1], admitted);
}

#[test]
fn random_bytes_never_harm_the_owner() {
    let folder = TestFolder::new();
    let owner = serve(&folder);
    let mut random = trapline_sim::Random::of(&[4]);
    for _ in 0..300 {
        let kind = random.range(0..6) as u8;
        let body: Vec<u8> = (0..random.range(0..200)).map(|_| random.range(0..256) as u8).collect();
        let mut frame = (body.len() as u32 + 1).to_le_bytes().to_vec();
        frame.push(kind);
        frame.extend(body);
        send(&folder, &hello_and(&frame));
    }
    assert_eq!(crawl(connect(&folder)).crawl(), "c");
    owner.close().unwrap();
}

#[test]
fn so_many_can_be_connected_and_no_more() {
    let folder = TestFolder::new();
    let _owner = serve(&folder);
    let first = connect(&folder);
    crawl(connect(&folder));
    let mut crowd = Vec::new();
    let mut turned_away = String::new();
    while turned_away.is_empty() {
        let mut stream = UnixStream::connect(folder.path().join("socket")).unwrap();
        // Who is turned away may be so before this is written.
        let _ = stream.write_all(&hello_and(&[4, 0, 0, 0, 3, 0x0a, 1, b'c']));
        let mut head = [0; HELLO.len() + 5];
        stream.read_exact(&mut head).unwrap();
        if head[HELLO.len() + 4] == REFUSED {
            turned_away = rest(&mut stream);
        }
        crowd.push(stream);
        assert!(crowd.len() <= 256, "the first is there too");
    }
    let word = "256 others are connected, and more are not let in; try again later";
    assert!(turned_away.ends_with(word), "{turned_away}");
    assert!(pollster::block_on(first.stats("c", NOW)).is_ok(), "who is in stays in");
    let late = connect(&folder);
    let error = pollster::block_on(late.stats("c", NOW)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    drop(crowd);
    // Their places are free as soon as the owner has noticed.
    while pollster::block_on(late.stats("c", NOW)).is_err() {
        std::thread::yield_now();
    }
}
