//! How long a host is left alone: each policy by itself, measured at the host.

use std::time::Duration;

use trapline_core::Terms;
use trapline_crawl::candidate::HostTerms;
use trapline_crawl::disposition::PaceOptions;
use trapline_frontier::QueueChange;

use crate::sites::{Reply, RobotsTxt, Sites, hosts, page, status};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A host whose home page leads to as many pages as there are replies. What fails is tried again after everything else.
fn host(pace: PaceOptions, replies: impl IntoIterator<Item = Reply>) -> Sites {
    let replies: Vec<_> = replies.into_iter().collect();
    let paths: Vec<_> = (0..replies.len()).map(|n| format!("/{n}")).collect();
    let links: Vec<_> = paths.iter().map(String::as_str).collect();
    let sites = Sites::of(&[("http://a.test/", &links)]).with(|options| {
        options.pace = pace;
        options.retry.wait = Duration::from_secs(1_000);
        options.retry.wait_max = options.retry.wait;
    });
    paths
        .iter()
        .zip(replies)
        .fold(sites, |sites, (path, reply)| sites.put(&format!("http://a.test{path}"), [reply, status(200)]))
}

fn gaps(sites: &Sites) -> Vec<u64> {
    sites.crawl(&["http://a.test/"]);
    sites.gaps()
}

fn fine(count: usize) -> Vec<Reply> {
    vec![page(&[]); count]
}

#[test]
fn the_delay_is_kept_between_fetches() {
    assert_eq!(gaps(&host(PaceOptions::default(), fine(3))), [1_000; 3]);
    assert_eq!(gaps(&host(PaceOptions { delay: MS(250), ..PaceOptions::default() }, fine(3))), [250; 3]);
}

#[test]
fn crawl_delay_is_respected_as_far_as_is_wanted() {
    let check = |crawl_delay: u64, pace: PaceOptions, expected: u64| {
        let robots = RobotsTxt { crawl_delay: Some(MS(crawl_delay)), ..RobotsTxt::default() };
        assert_eq!(gaps(&host(pace, fine(2)).robots("a.test", robots)), [expected; 3]);
    };
    check(5_000, PaceOptions::default(), 5_000);
    check(10, PaceOptions::default(), 1_000);
    check(900_000, PaceOptions::default(), 300_000);
    check(5_000, PaceOptions { crawl_delay: false, ..PaceOptions::default() }, 1_000);
    check(5_000, PaceOptions { delay: MS(0), ..PaceOptions::default() }, 5_000);
}

/// A host that may be asked more often than others still says itself how often.
#[test]
fn a_host_with_a_shorter_delay_of_its_own_has_the_last_word() {
    let robots = RobotsTxt { crawl_delay: Some(MS(500)), ..RobotsTxt::default() };
    let sites = host(PaceOptions::default(), fine(2)).robots("a.test", robots).with(|options| {
        let terms = HostTerms { hosts: hosts("a.test"), delay: Some(MS(0)), ..HostTerms::default() };
        options.queue.hosts = vec![terms].into();
    });
    assert_eq!(gaps(&sites), [500; 3]);
}

#[test]
fn retry_after_is_respected_as_far_as_is_wanted() {
    let said = |seconds: &str| [status(503).with("retry-after", seconds), status(200)];
    assert_eq!(gaps(&host(PaceOptions::default(), said("120")))[1], 120_000);
    assert_eq!(gaps(&host(PaceOptions::default(), said("999999")))[1], 86_400_000);
    // A page that is not overloaded may say what it likes.
    let fine = [status(200).with("retry-after", "120"), status(200)];
    assert_eq!(gaps(&host(PaceOptions::default(), fine))[1], 1_000);
}

#[test]
fn an_overloaded_host_is_left_alone_twice_as_long_each_time() {
    let replies = [status(429), status(503), status(429), status(200), status(200)];
    let gaps = gaps(&host(PaceOptions::default(), replies));
    assert_eq!(gaps[..5], [1_000, 30_000, 60_000, 120_000, 1_000], "{gaps:?}");
}

#[test]
fn the_back_off_has_an_end_and_begins_anew_after_a_good_answer() {
    let pace = PaceOptions { back_off: MS(10_000), back_off_max: MS(15_000), ..PaceOptions::default() };
    let gaps = gaps(&host(pace, [503, 503, 503, 200, 503, 200].map(status)));
    assert_eq!(gaps[..6], [1_000, 10_000, 15_000, 15_000, 1_000, 10_000], "{gaps:?}");
}

#[test]
fn slow_answers_are_waited_for_in_proportion() {
    let check = |pace: PaceOptions, took: u64, expected: u64| {
        let pace = PaceOptions { adaptive: false, ..pace };
        let gaps = gaps(&host(pace, vec![page(&[]).taking(MS(took)); 3]));
        assert_eq!(gaps[1..], [expected; 2]);
    };
    let twice = PaceOptions { factor: 2.0, ..PaceOptions::default() };
    check(twice.clone(), 3_000, 6_000);
    check(twice.clone(), 300, 1_000);
    check(PaceOptions { max: MS(4_000), ..twice.clone() }, 3_000, 4_000);
    check(PaceOptions { min: MS(2_000), ..twice }, 300, 2_000);
}

#[test]
fn a_host_that_slows_down_is_left_alone_for_longer() {
    let quick = || (0..10).map(|_| page(&[]).taking(MS(100)));
    let slow = (0..5).map(|_| page(&[]).taking(MS(2_000)));
    let all = gaps(&host(PaceOptions::default(), quick().chain(slow.clone())));
    assert!(all[..10].iter().all(|gap| *gap == 1_000), "{all:?}");
    assert!(all[12..].iter().all(|gap| *gap > 5_000 && *gap <= 30_000), "{all:?}");
    let steady = PaceOptions { adaptive: false, ..PaceOptions::default() };
    assert!(gaps(&host(steady, quick().chain(slow))).iter().all(|gap| *gap == 1_000));
}

#[test]
fn jitter_adds_by_chance_and_never_takes_away() {
    let pace = PaceOptions { jitter: MS(500), ..PaceOptions::default() };
    let gaps = gaps(&host(pace, fine(30)));
    assert!(gaps.iter().all(|gap| (1_000..=1_500).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().any(|gap| *gap < 1_200) && gaps.iter().any(|gap| *gap > 1_300), "{gaps:?}");
}

#[test]
fn a_host_that_was_left_alone_may_be_asked_in_a_burst() {
    let pace = PaceOptions { burst: 3, ..PaceOptions::default() };
    let sites = host(pace, fine(3)).with(|options| options.end_when_exhausted = false);
    let later = sites.clone();
    sites.crawl_while(&["http://a.test/"], |handle, _| async move {
        later.sleep(MS(20_000)).await;
        let urls = (10..16).map(|n| format!("http://a.test/{n}"));
        let seeds = urls.map(|url| trapline_crawl::candidate::Prospect::seed(&url).unwrap()).collect();
        handle.seed(seeds).await;
        later.sleep(MS(20_000)).await;
        handle.stop().await;
    });
    let gaps = sites.gaps();
    // At first nobody was left alone. Later three at once, then one as each delay has passed, the time that fetches take among it.
    assert!(gaps[..3].iter().all(|gap| (950..=1_000).contains(gap)), "{gaps:?}");
    assert_eq!(gaps[4..6], [0, 0], "{gaps:?}");
    assert!(gaps[6..].iter().all(|gap| (950..=1_000).contains(gap)), "{gaps:?}");
}

#[test]
fn a_host_that_was_left_alone_because_it_had_too_much_to_do_has_no_burst() {
    let pace = PaceOptions { burst: 3, ..PaceOptions::default() };
    let replies = [status(429), status(200), status(200), status(200)];
    let gaps = gaps(&host(pace, replies));
    assert_eq!(gaps[1], 30_000, "{gaps:?}");
    assert!(gaps[2..4].iter().all(|gap| *gap >= 950), "{gaps:?}");
}

#[test]
fn a_larger_delay_that_an_operator_set_is_not_shortened() {
    for pace in [
        PaceOptions::default(),
        PaceOptions { jitter: MS(1), ..PaceOptions::default() },
        PaceOptions { factor: 1.0, ..PaceOptions::default() },
        PaceOptions { burst: 2, ..PaceOptions::default() },
    ] {
        let replies = vec![page(&[]).taking(MS(2_000)); 5];
        let robots = RobotsTxt { crawl_delay: Some(MS(3_000)), ..RobotsTxt::default() };
        let sites = host(pace, replies).robots("a.test", robots);
        let world = sites.world.clone();
        sites.crawl_while(&["http://a.test/"], |_, frontier| async move {
            let key =
                frontier.prepare(trapline_core::Request::get("http://a.test/")).unwrap().key.to_string();
            let terms = Terms { delay: Some(MS(20_000)), ..Terms::default() };
            frontier.steer_queue(world.now(), &key, QueueChange::Terms(terms)).await.unwrap();
        });
        let gaps = sites.gaps();
        // With a burst, the time that fetches take counts.
        assert!(gaps[1..].iter().all(|gap| *gap >= 18_000), "{gaps:?}");
    }
}

#[test]
fn hosts_may_have_terms_of_their_own() {
    let sites = host(PaceOptions::default(), fine(3)).with(|options| {
        let other = HostTerms { hosts: hosts("*.test"), delay: Some(MS(9)), ..HostTerms::default() };
        let exact = HostTerms { hosts: hosts("a.test"), delay: Some(MS(4_000)), ..HostTerms::default() };
        options.queue.hosts = vec![exact, other].into();
    });
    assert_eq!(gaps(&sites), [4_000; 3]);
}

#[test]
fn hosts_of_one_domain_share_their_pace_if_that_is_wanted() {
    for (by_domain, gap) in [(false, 0), (true, 1_000)] {
        // They share the wait after a fetch; how many go on at once is a matter of its own.
        let sites = Sites::of(&[]).with(|options| {
            options.queue.by_domain = by_domain;
            options.concurrency = 1;
        });
        sites.crawl(&["http://a.example.org/", "http://b.example.org/", "http://c.example.org/"]);
        assert_eq!(sites.gaps(), [gap; 2]);
    }
}
