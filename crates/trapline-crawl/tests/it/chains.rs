//! Chains by name: parts left out, put into another order, and added.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use trapline_crawl::candidate::Prospect;
use trapline_crawl::disposition::Disposition;
use trapline_crawl::fetch::Visit;
use trapline_crawl::{
    ChainNames, CrawlBuilder, Flow, Processor, Response, Rule, candidate, disposition, fetch,
};

use crate::sites::{RobotsTxt, Sites, status};

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

fn without(order: &[&str], name: &str) -> Option<Vec<String>> {
    names(&order.iter().copied().filter(|other| *other != name).collect::<Vec<_>>())
}

#[test]
fn what_is_not_named_is_left_out() {
    let outside = || Sites::of(&[("http://a.test/", &["http://b.test/"])]);
    let sites = outside().with(|options| {
        options.chains.candidate = without(&candidate::ORDER, "scope");
        options.chains.fetch = without(&fetch::ORDER, "scope");
    });
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.asked(), ["http://a.test/", "http://b.test/"]);

    // The scope is asked once more before the fetch.
    let sites = outside().with(|options| options.chains.candidate = without(&candidate::ORDER, "scope"));
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.asked(), ["http://a.test/"]);
    assert_eq!(sites.skipped()[0].1, "scope");

    let sites = Sites::of(&[("http://a.test/", &["/1"])])
        .robots("a.test", RobotsTxt { disallow: vec!["/"], ..RobotsTxt::default() })
        .with(|options| options.chains.fetch = without(&fetch::ORDER, "robots"));
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.asked(), ["http://a.test/", "http://a.test/1"]);

    let sites = Sites::of(&[("http://a.test/", &["/1"])])
        .with(|options| options.chains.disposition = without(&disposition::ORDER, "links"));
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.asked(), ["http://a.test/"]);
}

#[test]
fn the_order_is_that_of_the_names() {
    // Both the scope and the scheme would drop it: the first that does is told.
    for (order, rule) in [(["scheme", "scope"], "scheme"), (["scope", "scheme"], "scope")] {
        let sites = Sites::of(&[("http://a.test/", &["ftp://b.test/"])])
            .with(|options| options.chains.candidate = names(&order));
        sites.crawl(&["http://a.test/"]);
        assert_eq!(sites.skipped()[0].1, rule);
    }
}

/// Drops what has a word in it.
struct NoOtters;

impl Rule<Prospect> for NoOtters {
    fn name(&self) -> &'static str {
        "no otters"
    }

    fn apply(&self, prospect: &mut Prospect) -> Flow {
        if prospect.url.path().contains("otter") {
            prospect.drop("no otters", "seen enough")
        } else {
            Flow::Next
        }
    }
}

/// Sends a header along.
struct Greeting;

#[async_trait]
impl Processor<Visit> for Greeting {
    fn name(&self) -> &'static str {
        "greeting"
    }

    async fn process(&self, visit: &mut Visit) -> Flow {
        visit.request.url.set_query(Some("hello"));
        Flow::Next
    }
}

/// Tells nothing of pages.
struct Silent;

#[async_trait]
impl Processor<Disposition> for Silent {
    fn name(&self) -> &'static str {
        "silent"
    }

    async fn process(&self, disposition: &mut Disposition) -> Flow {
        disposition.results.page = None;
        Flow::Next
    }
}

fn own(builder: CrawlBuilder) -> CrawlBuilder {
    builder
        .rule(Arc::new(NoOtters))
        .fetch_processor(Arc::new(Greeting))
        .disposition_processor(Arc::new(Silent))
}

#[test]
fn a_program_adds_its_own_which_come_last_unless_they_are_named() {
    let site = || Sites::of(&[("http://a.test/", &["/otters", "/1"])]);
    let sites = site();
    sites.crawl_made(&["http://a.test/"], own, async |_, _| ());
    // After the fetch a greeting comes too late.
    assert_eq!(sites.asked(), ["http://a.test/", "http://a.test/1"]);
    assert_eq!(sites.skipped(), [("http://a.test/otters".into(), "no otters".into(), "seen enough".into())]);
    assert!(sites.pages().is_empty());

    let sites = site().with(|options| {
        options.chains = ChainNames {
            candidate: names(&["queue"]),
            fetch: names(&["greeting", "fetch", "extract"]),
            disposition: names(&["silent", "outcome", "links", "output"]),
        };
    });
    sites.crawl_made(&["http://a.test/"], own, async |_, _| ());
    // That is no page with links.
    assert_eq!(sites.asked(), ["http://a.test/?hello"]);
    assert_eq!(sites.pages().len(), 1);
}

/// Remembers what it sees.
#[derive(Default)]
struct Witness(Mutex<Vec<Arc<Response>>>);

#[async_trait]
impl Processor<Disposition> for Witness {
    fn name(&self) -> &'static str {
        "witness"
    }

    async fn process(&self, disposition: &mut Disposition) -> Flow {
        self.0.lock().unwrap().extend(disposition.visit.response.clone());
        Flow::Next
    }
}

#[test]
fn what_was_fetched_is_seen_anywhere_in_the_chain_and_not_copied() {
    for order in [["outcome", "witness", "output"], ["outcome", "output", "witness"]] {
        let sites = Sites::of(&[("http://a.test/", &["/1"])])
            .with(|options| options.chains.disposition = names(&order));
        let witness = Arc::new(Witness::default());
        let own = Arc::clone(&witness);
        sites.crawl_made(&["http://a.test/"], |builder| builder.disposition_processor(own), async |_, _| ());
        let (seen, pages) = (witness.0.lock().unwrap(), sites.pages());
        assert_eq!((seen.len(), pages.len()), (1, 1), "{order:?}");
        assert!(Arc::ptr_eq(&seen[0], &pages[0].response), "{order:?}");
    }
}

/// Who waits for how long is decided by what came, wherever that is told.
#[test]
fn a_host_that_has_too_much_to_do_is_left_alone_also_where_pace_is_the_last() {
    let sites = Sites::new().put("http://a.test/", [status(503).with("retry-after", "120"), status(200)]);
    let sites = sites.with(|options| {
        options.chains.disposition = names(&["outcome", "output", "links", "sitemaps", "pace"]);
        options.retry.wait = std::time::Duration::from_secs(1);
    });
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.gaps(), [120_000]);
}

#[test]
fn names_that_do_not_exist_or_come_twice_are_refused() {
    let message = |chains: ChainNames| {
        let sites = Sites::new().with(|options| options.chains = chains);
        let built = sites.world.run(async { own(sites.builder().await).build(Arc::new(sites.clone())) });
        built.err().expect("a chain that cannot be built").to_string()
    };
    assert_eq!(
        message(ChainNames { candidate: names(&["scope", "badgers"]), ..ChainNames::default() }),
        "the candidate chain has no processor `badgers`; there are scheme, kinds, nofollow, scope, limits, traps, patterns, \
         queue, no_query, domain, fingerprint, no otters"
    );
    assert_eq!(
        message(ChainNames { candidate: names(&["scope", "otters"]), ..ChainNames::default() }),
        "the candidate chain has no processor `otters`; did you mean `no otters`?"
    );
    assert_eq!(
        message(ChainNames { fetch: names(&["fetch", "robots", "fetch"]), ..ChainNames::default() }),
        "the fetch chain names `fetch` twice; a processor has one place"
    );
    assert_eq!(
        message(ChainNames { disposition: names(&["output "]), ..ChainNames::default() }),
        "the disposition chain has no processor `output `; did you mean `output`?"
    );
    assert_eq!(
        message(ChainNames { fetch: names(&["scope", "robots"]), ..ChainNames::default() }),
        "the fetch chain needs `fetch`: nothing would be fetched"
    );
    for disposition in [&["links", "output"][..], &["links", "outcome", "output"]] {
        assert_eq!(
            message(ChainNames { disposition: names(disposition), ..ChainNames::default() }),
            "the disposition chain needs `outcome`: the others go by what it decides, and it stands before them"
        );
    }
}

#[test]
fn a_program_places_all_processors_as_it_likes() {
    // It may have a `robots` of its own, and look at the answer first; a configuration would be told.
    let chains = ChainNames { fetch: names(&["greeting", "fetch", "robots"]), ..ChainNames::default() };
    let told: Vec<_> = chains.mistakes().iter().map(ToString::to_string).collect();
    assert!(told[1].contains("`robots` behind `fetch`"), "{told:?}");
    let sites = Sites::of(&[("http://a.test/?hello", &[])]).with(|options| options.chains = chains);
    sites.crawl_made(&["http://a.test/"], own, async |_, _| ());
    assert_eq!(sites.asked(), ["http://a.test/?hello"]);
}

#[test]
fn a_part_of_the_name_of_another_is_refused() {
    struct Scope;
    impl Rule<Prospect> for Scope {
        fn name(&self) -> &'static str {
            "scope"
        }
        fn apply(&self, _: &mut Prospect) -> Flow {
            Flow::Next
        }
    }
    let sites = Sites::new();
    let built =
        sites.world.run(async { sites.builder().await.rule(Arc::new(Scope)).build(Arc::new(sites.clone())) });
    assert_eq!(
        built.err().expect("two of one name").to_string(),
        "the candidate chain names `scope` twice; a processor has one place"
    );
}
