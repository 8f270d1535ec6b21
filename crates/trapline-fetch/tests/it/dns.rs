//! Names: hostile and broken name servers, rebinding, and what is remembered.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;
use trapline_fetch::{DialErrorKind, DialOptions, Dialer, Families};

use crate::door::name_server::{NameServer, Reply, alias, leads_to};
use crate::door::{Server, closed_options, destination, hold, open_options, trouble};

/// Options in which 127.0.0.1 stands for the world, and every other address for what must not be reached.
fn one_address_is_the_world() -> DialOptions {
    let mut options = closed_options();
    options.guard.allow_networks = vec!["127.0.0.1".parse().unwrap()];
    options
}

/// Lets time pass for what is remembered, and for nothing else.
async fn seconds_later(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

/// The kind of error for `a.example` with a name server that always says the same.
async fn kind_for(reply: impl Fn(&str, RecordType, usize) -> Reply + Send + Sync + 'static) -> DialErrorKind {
    let names = NameServer::start(reply).await;
    trouble(names.asked_by(open_options()), "http://a.example/").await.kind()
}

#[tokio::test]
async fn rebinding_between_dials_meets_the_guard_again() {
    let server = Server::silent().await;
    let trap = Server::start_at(&format!("127.0.0.2:{}", server.port()), hold).await;
    let names = NameServer::start(|name, _, before| {
        Reply::Records(vec![leads_to(name, 0, if before == 0 { "127.0.0.1" } else { "127.0.0.2" })])
    })
    .await;
    let dialer = Dialer::new(names.asked_by(one_address_is_the_world())).unwrap();
    let there = destination(&format!("http://rebind.example:{}/", server.port()));

    // One dial asks once for each kind, and dials what it was told.
    assert_eq!(dialer.dial(&there).await.unwrap().address, server.address);
    let mut questions = names.questions();
    questions.sort();
    assert_eq!(questions, ["rebind.example. A", "rebind.example. AAAA"]);

    // A lifetime of nothing is half a minute.
    seconds_later(20).await;
    assert_eq!(dialer.dial(&there).await.unwrap().address, server.address);
    assert_eq!(names.asked(), 1);

    seconds_later(11).await;
    let error = dialer.dial(&there).await.unwrap_err();
    assert_eq!(error.kind(), DialErrorKind::AddressRefused);
    assert_eq!(names.asked(), 2);
    assert_eq!((server.visitors().await, trap.visitors().await), (2, 0));
}

/// Without any memory, every dial asks again; still the trap is never reached.
#[tokio::test]
async fn rebinding_without_memory_reaches_the_world_or_nobody() {
    let server = Server::silent().await;
    let trap = Server::start_at(&format!("127.0.0.2:{}", server.port()), hold).await;
    let names = NameServer::start(|name, _, before| {
        Reply::Records(vec![leads_to(name, 0, if before % 2 == 0 { "127.0.0.1" } else { "127.0.0.2" })])
    })
    .await;
    let mut options = names.asked_by(one_address_is_the_world());
    options.dns.ttl_min = Duration::ZERO;
    let dialer = Dialer::new(options).unwrap();
    let there = destination(&format!("http://rebind.example:{}/", server.port()));
    for round in 0..40 {
        match dialer.dial(&there).await {
            Ok(dialed) => assert_eq!(dialed.address, server.address, "round {round}"),
            Err(error) => assert_eq!(error.kind(), DialErrorKind::AddressRefused, "round {round}"),
        }
    }
    assert_eq!(names.asked(), 40);
    assert_eq!((server.visitors().await, trap.visitors().await), (20, 0));
}

#[tokio::test]
async fn an_answer_with_inside_and_outside_addresses_leads_outside_only() {
    let server = Server::silent().await;
    let trap = Server::start_at(&format!("127.0.0.2:{}", server.port()), hold).await;
    let names =
        NameServer::everything_is(&["127.0.0.2", "10.0.0.1", "127.0.0.1", "::1", "::ffff:127.0.0.2"]).await;
    let dialer = Dialer::new(names.asked_by(one_address_is_the_world())).unwrap();
    let there = destination(&format!("http://mixed.example:{}/", server.port()));
    for _ in 0..5 {
        assert_eq!(dialer.dial(&there).await.unwrap().address, server.address);
    }
    assert_eq!((server.visitors().await, trap.visitors().await), (5, 0));
}

#[tokio::test]
async fn an_alias_to_an_inside_name_is_refused() {
    let trap = Server::silent().await;
    let names = NameServer::start(|name, _, _| match name {
        "public.example." => Reply::Records(vec![
            alias(name, 60, "metadata.internal."),
            leads_to("metadata.internal.", 60, "127.0.0.1"),
        ]),
        // The same, but the inside name has to be asked for.
        "split.example." => Reply::Records(vec![alias(name, 60, "metadata.internal.")]),
        name => Reply::Records(vec![leads_to(name, 60, "127.0.0.1")]),
    })
    .await;
    let dialer = Dialer::new(names.asked_by(closed_options())).unwrap();
    for name in ["public.example", "split.example"] {
        let there = destination(&format!("http://{name}:{}/", trap.port()));
        assert_eq!(dialer.dial(&there).await.unwrap_err().kind(), DialErrorKind::AddressRefused, "{name}");
    }
    assert_eq!((dialer.counts().connects, trap.visitors().await), (0, 0));
}

#[tokio::test]
async fn names_are_asked_for_as_they_stand_and_never_below_search_domains() {
    let names = NameServer::start(|_, _, _| Reply::Code(ResponseCode::NXDomain)).await;
    let dialer = Dialer::new(names.asked_by(open_options())).unwrap();
    for url in [
        "http://intranet/",
        "http://Www.Example.com./",
        "http://b\u{fc}cher.example/",
        "http://under_score.example/",
    ] {
        let error = dialer.dial(&destination(url)).await.unwrap_err();
        assert_eq!(error.kind(), DialErrorKind::DnsNoSuchName, "{url}");
    }
    let mut questions = names.questions();
    questions.retain(|question| question.ends_with(" A"));
    assert_eq!(
        questions,
        ["intranet. A", "www.example.com. A", "xn--bcher-kva.example. A", "under_score.example. A"]
    );
}

#[tokio::test]
async fn addresses_and_local_names_are_not_asked_for() {
    let names = NameServer::everything_is(&["127.0.0.1"]).await;
    let dialer = Dialer::new(names.asked_by(closed_options())).unwrap();
    let mut hosts =
        vec!["10.0.0.1", "0x7f.1", "[::1]", "2130706433", "127.0.0.1.", "localhost", "a.localhost"];
    let long = format!("{}.example", "a".repeat(64));
    let longer = vec!["a".repeat(60); 5].join(".");
    hosts.extend([long.as_str(), longer.as_str(), "a..example"]);
    for host in hosts {
        let error = dialer.dial(&destination(&format!("http://{host}/"))).await.unwrap_err();
        let expected = if host.contains("aaaa") || host.contains("..") {
            DialErrorKind::DnsNoSuchName
        } else {
            DialErrorKind::AddressRefused
        };
        assert_eq!(error.kind(), expected, "{host}");
    }
    assert_eq!(names.questions(), Vec::<String>::new());
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_remembered_as_long_as_its_zone_says_within_bounds() {
    let names = NameServer::start(|name, _, _| match name {
        "short.example." => Reply::NoSuchName(1),
        "fair.example." => Reply::NoSuchName(600),
        _ => Reply::NoSuchName(1_000_000),
    })
    .await;
    let dialer = Dialer::new(names.asked_by(open_options())).unwrap();
    let ask = async |name: &str| {
        let before = names.asked();
        let error = dialer.dial(&destination(&format!("http://{name}.example/"))).await.unwrap_err();
        assert_eq!(error.kind(), DialErrorKind::DnsNoSuchName, "{name}");
        names.asked() > before
    };
    for name in ["short", "fair", "long"] {
        assert!(ask(name).await, "{name}");
    }
    seconds_later(40).await;
    assert!(!ask("short").await && !ask("fair").await && !ask("long").await);
    seconds_later(21).await;
    assert!(ask("short").await && !ask("fair").await && !ask("long").await);
    seconds_later(540).await;
    assert!(ask("fair").await && !ask("long").await);
    seconds_later(3001).await;
    assert!(ask("long").await);
}

#[tokio::test]
async fn failures_are_remembered_for_half_a_minute() {
    for code in [ResponseCode::ServFail, ResponseCode::Refused, ResponseCode::NotImp] {
        let names = NameServer::start(move |_, _, _| Reply::Code(code)).await;
        let dialer = Dialer::new(names.asked_by(open_options())).unwrap();
        let there = destination("http://a.example/");
        assert_eq!(dialer.dial(&there).await.unwrap_err().kind(), DialErrorKind::DnsFailed, "{code}");
        let asked = names.asked();
        assert_eq!(dialer.dial(&there).await.unwrap_err().kind(), DialErrorKind::DnsFailed, "{code}");
        assert_eq!(names.asked(), asked, "{code}");
        seconds_later(31).await;
        assert_eq!(dialer.dial(&there).await.unwrap_err().kind(), DialErrorKind::DnsFailed, "{code}");
        assert!(names.asked() > asked, "{code}");
    }
}

#[tokio::test]
async fn silence_ends_in_time_and_is_remembered() {
    let names = NameServer::start(|_, _, _| Reply::Silence).await;
    let mut options = names.asked_by(open_options());
    options.dns.attempt_timeout = Duration::from_millis(150);
    let dialer = Dialer::new(options).unwrap();
    let started = Instant::now();
    let there = destination("http://a.example/");
    assert_eq!(dialer.dial(&there).await.unwrap_err().kind(), DialErrorKind::DnsTimeout);
    assert!(started.elapsed() >= Duration::from_millis(300), "two attempts");
    assert!(started.elapsed() < Duration::from_secs(4));
    let asked = names.asked();
    assert_eq!(dialer.dial(&there).await.unwrap_err().kind(), DialErrorKind::DnsTimeout);
    assert_eq!(names.asked(), asked);
}

#[tokio::test]
async fn garbage_ends_in_time() {
    for rest in [
        vec![],
        vec![0; 2],
        vec![0xff; 10],
        vec![0xff; 1200],
        vec![0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0, 0xc0, 0x0c],
    ] {
        let started = Instant::now();
        let kind = kind_for(move |_, _, _| Reply::Garbage(rest.clone())).await;
        assert!(matches!(kind, DialErrorKind::DnsFailed | DialErrorKind::DnsTimeout), "{kind}");
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn an_answer_without_an_address_is_no_address() {
    assert_eq!(kind_for(|_, _, _| Reply::Records(vec![])).await, DialErrorKind::DnsNoAddress);
}

#[tokio::test]
async fn answers_for_other_names_do_not_count() {
    let server = Server::silent().await;
    let names = NameServer::start(|name, _, _| match name {
        "other.example." => Reply::Records(vec![leads_to(name, 60, "127.0.0.1")]),
        "only-others.example." => Reply::Records(vec![leads_to("other.example.", 60, "127.0.0.2")]),
        _ => {
            Reply::Records(vec![leads_to("other.example.", 60, "127.0.0.2"), leads_to(name, 60, "127.0.0.1")])
        }
    })
    .await;
    let trap = Server::start_at(&format!("127.0.0.2:{}", server.port()), hold).await;
    let dialer = Dialer::new(names.asked_by(open_options())).unwrap();
    let url = |name: &str| destination(&format!("http://{name}.example:{}/", server.port()));
    let error = dialer.dial(&url("only-others")).await.unwrap_err();
    assert_eq!(error.kind(), DialErrorKind::DnsNoAddress);
    assert_eq!(dialer.dial(&url("both")).await.unwrap().address, server.address);
    // Nor are they remembered for the other name.
    assert_eq!(dialer.dial(&url("other")).await.unwrap().address, server.address);
    assert_eq!(trap.visitors().await, 0);
}

#[tokio::test]
async fn chains_of_aliases_are_followed_so_far_and_circles_end() {
    // Names n0 to n8 lead to the next one, in one answer or each in its own.
    fn link(name: &str) -> Option<usize> {
        name.strip_prefix('n')?.strip_suffix(".example.")?.parse().ok()
    }
    let server = Server::silent().await;
    for at_once in [true, false] {
        let names = NameServer::start(move |name, _, _| {
            let Some(first) = link(name) else {
                let other = if name == "a.example." { "b.example." } else { "a.example." };
                return Reply::Records(vec![alias(name, 60, other)]);
            };
            let last = if at_once { 9 } else { first + 1 };
            let mut records: Vec<_> = (first..last.min(9))
                .map(|link| alias(&format!("n{link}.example."), 60, &format!("n{}.example.", link + 1)))
                .collect();
            if at_once || first == 9 {
                records.push(leads_to("n9.example.", 60, "127.0.0.1"));
            }
            Reply::Records(records)
        })
        .await;
        let dialer = Dialer::new(names.asked_by(open_options())).unwrap();
        let url = |name: &str| destination(&format!("http://{name}.example:{}/", server.port()));
        assert!(dialer.dial(&url("n2")).await.is_ok(), "7 aliases, at once: {at_once}");
        assert_eq!(dialer.dial(&url("n1")).await.is_ok(), at_once, "8 aliases");
        for name in ["n0", "a"] {
            let error = dialer.dial(&url(name)).await.unwrap_err();
            // Where each alias has to be asked for, the end looks like a name without an address.
            let expected = match (name, at_once) {
                ("n0", true) => DialErrorKind::DnsChain,
                _ => DialErrorKind::DnsNoAddress,
            };
            assert_eq!(error.kind(), expected, "{name}: {error:?}");
        }
        assert!(names.questions().len() < 80, "{}", names.questions().len());
    }
}

#[tokio::test]
async fn a_giant_answer_gives_some_addresses() {
    let server = Server::silent().await;
    let names = NameServer::start(|name, _, _| {
        let many =
            (0..1500).map(|number| leads_to(name, 60, &format!("10.0.{}.{}", number / 250, number % 250)));
        Reply::Records(std::iter::once(leads_to(name, 60, "127.0.0.1")).chain(many).collect())
    })
    .await;
    let dialer = Dialer::new(names.asked_by(open_options())).unwrap();
    let there = destination(&format!("http://giant.example:{}/", server.port()));
    assert_eq!(dialer.dial(&there).await.unwrap().address, server.address);
    // All the others are refused, and only as many are looked at as are kept.
    let closed = Dialer::new(names.asked_by(closed_options())).unwrap();
    assert_eq!(closed.dial(&there).await.unwrap_err().kind(), DialErrorKind::AddressRefused);
    assert_eq!(closed.counts().refusals, 8);
}

#[tokio::test]
async fn many_who_want_the_same_name_ask_once() {
    let server = Server::silent().await;
    let names = NameServer::everything_is(&["127.0.0.1"]).await;
    let dialer = Dialer::new(names.asked_by(open_options())).unwrap();
    let there = destination(&format!("http://popular.example:{}/", server.port()));
    let dialed = join_all((0..100).map(|_| dialer.dial(&there))).await;
    assert!(dialed.iter().all(Result::is_ok));
    assert_eq!(names.asked(), 1);
}

#[tokio::test]
async fn no_more_names_are_looked_up_at_once_than_allowed() {
    let names = NameServer::start(|_, _, _| Reply::Silence).await;
    let mut options = names.asked_by(open_options());
    options.dns.lookups_max = 2;
    options.dns.timeout = Duration::from_millis(150);
    let dialer = Dialer::new(options).unwrap();
    let started = Instant::now();
    let urls: Vec<_> = (0..6).map(|number| destination(&format!("http://n{number}.example/"))).collect();
    let dialed = join_all(urls.iter().map(|url| dialer.dial(url))).await;
    assert!(
        dialed
            .iter()
            .all(|dialed| { dialed.as_ref().is_err_and(|error| error.kind() == DialErrorKind::DnsTimeout) })
    );
    assert!(started.elapsed() >= Duration::from_millis(450), "three rounds, not {:?}", started.elapsed());
}

/// A page with a thousand names below a domain whose name servers are silent.
#[tokio::test]
async fn silent_names_of_one_domain_do_not_keep_other_names_waiting() {
    let server = Server::silent().await;
    let names = NameServer::start(|name, _, _| {
        if name.ends_with("silent.example.") {
            Reply::Silence
        } else {
            Reply::Records(vec![leads_to(name, 60, "127.0.0.1")])
        }
    })
    .await;
    let mut options = names.asked_by(open_options());
    options.dns.lookups_max = 8;
    let dialer = Dialer::new(options).unwrap();
    let silent: Vec<_> =
        (0..100).map(|number| destination(&format!("http://n{number}.silent.example/"))).collect();
    let crowd = join_all(silent.iter().map(|there| dialer.dial(there)));
    let healthy = async {
        // The crowd comes first.
        tokio::task::yield_now().await;
        let there = destination(&format!("http://healthy.example:{}/", server.port()));
        dialer.dial(&there).await
    };
    let dialed = tokio::select! {
        biased;
        _ = crowd => panic!("silent names were found"),
        dialed = healthy => dialed,
    };
    let times = dialed.expect("healthy.example has an address").times;
    assert!(times.dns < Duration::from_secs(1), "{:?}", times.dns);
}

#[tokio::test]
async fn addresses_of_one_kind_do_not_wait_for_a_name_server_that_is_silent_about_the_other() {
    let server = Server::silent().await;
    let names = NameServer::start(|name, kind, _| match kind {
        RecordType::AAAA => Reply::Silence,
        _ => Reply::Records(vec![leads_to(name, 600, "127.0.0.1")]),
    })
    .await;
    let mut options = names.asked_by(open_options());
    options.dns.attempt_timeout = Duration::from_secs(60);
    options.dns.timeout = Duration::from_secs(60);
    options.dns.second_family_wait = Duration::from_millis(50);
    let dialer = Dialer::new(options).unwrap();
    let there = destination(&format!("http://half.example:{}/", server.port()));
    let dialed = dialer.dial(&there).await.unwrap();
    assert!(dialed.times.dns >= Duration::from_millis(50) && dialed.times.dns < Duration::from_secs(5));
    // Half an answer does not hold as long as it says.
    seconds_later(31).await;
    dialer.dial(&there).await.unwrap();
    assert_eq!(names.asked(), 2);
}

#[tokio::test]
async fn only_the_kinds_that_are_wanted_are_asked_for() {
    for (families, expected) in [(Families::V4, "a.example. A"), (Families::V6, "a.example. AAAA")] {
        let names = NameServer::everything_is(&[]).await;
        let mut options = names.asked_by(open_options());
        options.dns.families = families;
        assert_eq!(trouble(options, "http://a.example/").await.kind(), DialErrorKind::DnsNoAddress);
        assert_eq!(names.questions(), [expected]);
    }
}

#[tokio::test]
async fn a_failure_of_one_kind_does_not_hide_the_other_and_is_not_taken_for_absence() {
    let server = Server::silent().await;
    let names = NameServer::start(|name, kind, _| match (name, kind) {
        ("half.example.", RecordType::A) => Reply::Records(vec![leads_to(name, 60, "127.0.0.1")]),
        (_, RecordType::AAAA) => Reply::Code(ResponseCode::ServFail),
        _ => Reply::Records(vec![]),
    })
    .await;
    let dialer = Dialer::new(names.asked_by(open_options())).unwrap();
    let url = |name: &str| destination(&format!("http://{name}.example:{}/", server.port()));
    assert_eq!(dialer.dial(&url("half")).await.unwrap().address, server.address);
    assert_eq!(dialer.dial(&url("none")).await.unwrap_err().kind(), DialErrorKind::DnsFailed);
}

#[tokio::test]
async fn a_second_name_server_answers_when_the_first_is_dead() {
    let server = Server::silent().await;
    let names = NameServer::everything_is(&["127.0.0.1"]).await;
    let dead = NameServer::start(|_, _, _| Reply::Silence).await;
    let mut options = open_options();
    options.dns.name_servers = vec![dead.address, names.address];
    let dialer = Dialer::new(options).unwrap();
    let there = destination(&format!("http://a.example:{}/", server.port()));
    assert_eq!(dialer.dial(&there).await.unwrap().address, server.address);
}
