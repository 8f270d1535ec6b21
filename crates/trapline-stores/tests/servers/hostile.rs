//! Texts that databases stumble over, wherever a caller may put one: they come back as they were, from another process as well,
//! or are refused clearly. What every store must bear is in the suite; here is what only a database finds hard.

use std::sync::Arc;

use trapline_core::{Candidate, KEY_BYTES_MAX, Request, Terms, URL_BYTES_MAX};
use trapline_frontier::{
    Admission, Answer, CrawlChange, ErrorKind, Frontier, NoteWrite, Order, Outcome, Query, QueueChange, Rows,
    Scan, Settings, Settlement, UrlState, Visit, Want,
};
use trapline_sim::Random;

use super::crawls::{at_ms, claim, crawl, no_waits, queue, store};
use super::fresh_database;

/// Text that cannot be made shorter, so that it fits no page of an index: letters of the whole alphabet of Unicode.
fn noise(bytes: usize, seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = String::new();
    while text.len() < bytes {
        let letter = char::from_u32(random.number(1..0x11_0000)).unwrap_or('\u{1}');
        if text.len() + letter.len_utf8() <= bytes {
            text.push(letter);
        } else {
            text.push('x');
        }
    }
    text
}

fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "\0",
        "a\0b",
        "\0\0\0'",
        "'",
        "''",
        "\"",
        "\\",
        "\\x00",
        "\\'; SELECT pg_sleep(9); --",
        "'; DROP TABLE urls; --",
        "$1",
        "$$ $tag$",
        "E'\\n'",
        "U&'\\0041'",
        "{a,\"b\",NULL}",
        "NULL",
        "%s%n%d",
        "a%b_c",
        "\u{feff}",
        "\u{d7ff}\u{e000}\u{fffe}\u{ffff}\u{10ffff}",
        "İıſßẞ",
        "ﷺ",
        "e\u{301}",
        "é",
        "\r\n\t\u{b}\u{c}\u{85}\u{2028}",
        " leading and trailing ",
        "TRUE",
        "1e309",
        "-0",
        "🏳️‍🌈👩‍👩‍👧‍👦",
    ]
    .map(str::to_owned)
    .into();
    texts.push(noise(KEY_BYTES_MAX, 1));
    texts.push(noise(8 * 1024, 2));
    texts.push("'".repeat(8 * 1024));
    texts
}

fn note(key: &str, value: &[u8]) -> NoteWrite {
    NoteWrite { key: key.to_owned(), value: Some(value.to_vec()), expires: None }
}

fn scan(frontier: &Frontier, query: Query) -> Rows {
    pollster::block_on(frontier.scan(at_ms(1), &Scan::new(query))).expect("it is answered").rows
}

/// Two handles: what one writes the other reads.
fn pair(name: &str, settings: Settings) -> (Frontier, Frontier) {
    let url = fresh_database();
    (crawl(&store(&url), name, settings.clone()), crawl(&store(&url), name, settings))
}

#[test]
fn urls_come_back_whatever_is_in_them() {
    for order in [Order::Fifo, Order::Date] {
        let (writer, reader) = pair("c", Settings { concurrency: 0, order, ..no_waits() });
        let mut expected = Vec::new();
        for (number, text) in texts().into_iter().enumerate() {
            let plain =
                writer.prepare(Request::get(format!("http://h{number}.example/"))).expect("a good URL");
            // Past the handle, which would have encoded some of it.
            let request = Request {
                metadata: [(text.clone(), vec![text.clone(); 2])].into(),
                headers: vec![(text.clone(), text.as_bytes().to_vec())],
                body: text.as_bytes().to_vec(),
                via: Some(text.clone()),
                seed: Some(text.clone()),
                ..Request::get(format!("http://h{number}.example/{text}"))
            };
            let candidate = Candidate { request: Arc::new(request.clone()), ..plain };
            let answers =
                pollster::block_on(writer.admit_candidates(at_ms(0), &[candidate])).expect("it is answered");
            assert_eq!(answers, [Admission::Added], "{text:?}");
            expected.push(request);
        }
        let longest = "http://long.example/".to_owned() + &noise(URL_BYTES_MAX - 20, 3);
        let plain = writer.prepare(Request::get("http://long.example/")).expect("a good URL");
        for (url, answer) in [
            (longest.clone() + "x", Admission::Refused(trapline_frontier::Refusal::Malformed)),
            (longest.clone(), Admission::Added),
        ] {
            let candidate = Candidate { request: Arc::new(Request::get(url)), ..plain.clone() };
            let answers =
                pollster::block_on(writer.admit_candidates(at_ms(0), &[candidate])).expect("it is answered");
            assert_eq!(answers, [answer]);
        }
        expected.push(Request::get(longest));
        let mut leased: Vec<_> =
            claim(&reader, at_ms(1), 999).iter().map(|lease| (*lease.request).clone()).collect();
        leased.sort_by(|a, b| a.url.cmp(&b.url));
        expected.sort_by(|a, b| a.url.cmp(&b.url));
        assert_eq!(leased, expected);
    }
}

#[test]
fn keys_and_groups_come_back_whatever_is_in_them() {
    let (writer, reader) = pair("c", no_waits());
    let mut keys = Vec::new();
    for (number, text) in texts().into_iter().enumerate() {
        let plain = writer.prepare(Request::get(format!("http://a.example/{number}"))).expect("a good URL");
        let terms = Terms { group: Some(Arc::from(text.as_str())), ..Terms::default() };
        let candidate = Candidate { key: Arc::from(text.as_str()), terms, ..plain };
        let answers =
            pollster::block_on(writer.admit_candidates(at_ms(0), &[candidate])).expect("it is answered");
        if text.len() > KEY_BYTES_MAX {
            assert_eq!(answers, [Admission::Refused(trapline_frontier::Refusal::Malformed)]);
            // As a group it is only a name.
            let terms = Terms { group: Some(Arc::from(text.as_str())), ..Terms::default() };
            let steered = pollster::block_on(writer.steer_queue(at_ms(0), "g", QueueChange::Terms(terms)));
            steered.expect("it is taken");
            assert_eq!(queue(&reader, at_ms(0), "g").group.as_deref(), Some(&*text));
            continue;
        }
        assert_eq!(answers, [Admission::Added], "{text:?}");
        let report = queue(&reader, at_ms(0), &text);
        assert_eq!((&*report.key, report.group.as_deref(), report.pending), (&*text, Some(&*text), 1));
        keys.push(text);
    }
    // Named in a claim, to be served and not to be.
    let (some, others) = keys.split_at(keys.len() / 2);
    let want = Want { keys: Some(some.to_vec()), ..Want::urls(99) };
    let claimed = pollster::block_on(reader.claim(at_ms(1), want)).expect("it is claimed").leases;
    assert_eq!(claimed.len(), some.len());
    let want = Want { except: others[1..].to_vec(), ..Want::urls(99) };
    let claimed = pollster::block_on(reader.claim(at_ms(1), want)).expect("it is claimed").leases;
    assert_eq!(claimed.iter().map(|lease| &*lease.key).collect::<Vec<_>>(), [&*others[0]]);
    for key in &keys {
        let query = Query::Urls { key: Some(key.clone()), pattern: None, state: None };
        let Rows::Urls(urls) = scan(&reader, query) else { panic!("URLs were asked for") };
        assert_eq!(urls.len(), 1, "{key:?}");
    }
}

#[test]
fn names_of_crawls_come_back_or_are_refused() {
    let url = fresh_database();
    let (one, other) = (store(&url), store(&url));
    let mut names = texts();
    names.push(noise(100_000, 4));
    for name in &names {
        let opened =
            Frontier::builder(name.clone()).partitions(1).open_shared(Arc::new(one.clone()), at_ms(0));
        match pollster::block_on(opened) {
            Ok(frontier) => {
                pollster::block_on(frontier.admit(at_ms(0), [Request::get("http://a.example/")]))
                    .expect("admit");
                let again = crawl(&other, name, no_waits());
                let lease = claim(&again, at_ms(1), 9);
                assert_eq!((lease.len(), &*lease[0].crawl), (1, &**name));
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Invalid, "{name:?}: {error}");
                assert!(error.to_string().len() > 20, "{name:?}: {error}");
            }
        }
    }
    let listed = pollster::block_on(trapline_frontier::crawls(&other, at_ms(1))).expect("they are listed");
    assert!(listed.len() >= names.len() / 2);
}

#[test]
fn notes_come_back_whatever_is_in_them() {
    let (writer, reader) = pair("c", no_waits());
    let mut texts = texts();
    // Keys that begin alike for longer than an index looks.
    for end in ["a", "b", "'"] {
        texts.push(noise(3000, 5) + end);
    }
    for text in &texts {
        let change = CrawlChange::Note(note(text, text.as_bytes()));
        pollster::block_on(writer.steer_crawl(at_ms(0), change)).expect("it is written");
    }
    let large = noise(1 << 20, 6);
    let change = CrawlChange::Note(note("large", large.as_bytes()));
    pollster::block_on(writer.steer_crawl(at_ms(0), change)).expect("it is written");
    for text in texts.iter().chain([&"large".to_owned()]) {
        let Rows::Notes(notes) = scan(&reader, Query::Notes { prefix: text.clone() }) else {
            panic!("notes")
        };
        let found = notes.iter().find(|note| note.key == *text).unwrap_or_else(|| panic!("{text:?} is gone"));
        assert_eq!(found.value, if text == "large" { large.as_bytes() } else { text.as_bytes() });
        assert!(notes.iter().all(|note| note.key.starts_with(text.as_str())), "{text:?}");
    }
}

#[test]
fn visits_and_reasons_come_back_whatever_is_in_them() {
    let (writer, reader) = pair("c", no_waits());
    for (number, text) in texts().into_iter().chain([noise(200_000, 7)]).enumerate() {
        let urls = [0, 1, 2].map(|page| format!("http://h{number}-{page}.example/"));
        super::crawls::add(&writer, at_ms(0), &urls);
        let leases = claim(&writer, at_ms(0), 3);
        let visit = Visit {
            etag: Some(text.clone()),
            last_modified: Some(text.clone()),
            digest: Some(text.as_bytes().to_vec()),
            ..Visit::default()
        };
        let ends = [
            Outcome::Done { visit: visit.clone(), next: None },
            Outcome::Dead { reason: text.clone() },
            Outcome::Disregard { reason: text.clone() },
        ];
        let batch = leases.iter().zip(ends).map(|(lease, end)| Settlement::new(lease.id, end)).collect();
        let settled = pollster::block_on(writer.settle(at_ms(0), batch)).expect("it is settled");
        assert!(settled.iter().all(|settled| settled.answer != Answer::Stale), "{text:?}");
        let report = |url: &str| pollster::block_on(reader.url(at_ms(0), url)).expect("it is answered");
        assert_eq!(report(&urls[0]).page.expect("a page record").visit, visit);
        assert_eq!(report(&urls[1]).reason.as_deref(), Some(&*text));
        assert_eq!(report(&urls[2]).state, UrlState::Disregarded);
        assert_eq!(report(&urls[2]).reason.as_deref(), Some(&*text));
    }
}
