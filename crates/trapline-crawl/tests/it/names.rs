//! What pages and hosts are called for others: metadata of requests, and the URL under which a page is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use trapline_crawl::candidate::{FingerprintFunction, ORDER, Prospect};
use trapline_crawl::disposition::CanonicalSolver;
use trapline_crawl::fetch::Visit;
use trapline_crawl::{Flow, Processor, Rule};

use crate::sites::{Sites, html, page, redirect};

/// Writes down the metadata of what is fetched.
#[derive(Default)]
struct Reader(Mutex<BTreeMap<String, BTreeMap<String, Vec<String>>>>);

#[async_trait]
impl Processor<Visit> for Reader {
    fn name(&self) -> &'static str {
        "reader"
    }

    async fn process(&self, visit: &mut Visit) -> Flow {
        let request = &visit.lease.request;
        self.0.lock().unwrap().insert(request.url.clone(), request.metadata.clone());
        Flow::Next
    }
}

/// A rule of a program's own: what a URL is about.
struct Topic;

impl Rule<Prospect> for Topic {
    fn name(&self) -> &'static str {
        "topic"
    }

    fn apply(&self, prospect: &mut Prospect) -> Flow {
        let topic = prospect.url.path().trim_matches('/').to_owned();
        prospect.request.metadata.insert("topic".to_owned(), vec![topic]);
        Flow::Next
    }
}

/// The metadata of all that is fetched, with more rules than usual.
fn metadata(
    rules: &[&str],
    function: FingerprintFunction,
) -> BTreeMap<String, BTreeMap<String, Vec<String>>> {
    let sites = Sites::of(&[("http://www.site.test/", &["/b?y=2&x=1"])]).with(|options| {
        options.chains.candidate = Some(ORDER.iter().chain(rules).map(|name| (*name).to_owned()).collect());
        options.fingerprint = function;
    });
    let reader = Arc::new(Reader::default());
    let own = Arc::clone(&reader);
    sites.crawl_made(
        &["http://www.site.test/"],
        |builder| builder.rule(Arc::new(Topic)).fetch_processor(own),
        async |_, _| (),
    );
    let read = reader.0.lock().unwrap().clone();
    assert_eq!(read.len(), 2, "{read:?}");
    read
}

#[test]
fn requests_have_no_metadata_unless_a_rule_adds_some() {
    for (_, metadata) in metadata(&[], FingerprintFunction::Sha1) {
        assert!(metadata.is_empty(), "{metadata:?}");
    }
}

#[test]
fn domains_fingerprints_and_a_rule_of_ones_own_travel_with_seeds_and_links() {
    let canonical = "http://www.site.test/b?x=1&y=2";
    for function in [FingerprintFunction::Sha1, FingerprintFunction::Md5, FingerprintFunction::HostnameLocal]
    {
        let all = metadata(&["domain", "fingerprint", "topic"], function);
        for (url, known_as, topic) in [
            ("http://www.site.test/", "http://www.site.test/", ""),
            ("http://www.site.test/b?y=2&x=1", canonical, "b"),
        ] {
            let of = |key: &str| all[url].get(key).map(|values| values.join("|"));
            assert_eq!(of("fingerprint"), Some(function.of(known_as)), "{url}");
            assert_eq!(of("domain.fingerprint"), Some(function.of("site.test")), "{url}");
            assert_eq!(of("domain.name").as_deref(), Some("site.test"));
            assert_eq!(of("domain.subdomain").as_deref(), Some("www"));
            assert_eq!(of("topic").as_deref(), Some(topic));
        }
    }
    // Without the one there is nothing to make the other of.
    let alone = metadata(&["fingerprint"], FingerprintFunction::Sha1);
    assert!(alone.values().all(|metadata| metadata.keys().eq(["fingerprint"])), "{alone:?}");
}

/// What each page is told as, by its path.
fn told(solver: Option<CanonicalSolver>) -> Vec<(String, Option<String>)> {
    let says = |canonical: &str| html(&format!("<link rel=canonical href='{canonical}'>"));
    let sites = Sites::new()
        .put(
            "http://www.site.test/",
            [page(&["/old", "/plain", "/own", "/sister", "/thief", "/mail", "/broken", "/header"])],
        )
        .put("http://www.site.test/old", [redirect("/older#x")])
        .put("http://www.site.test/older", [redirect("/new")])
        .put("http://www.site.test/new", [says("/newest#top")])
        .put("http://www.site.test/plain", [page(&[])])
        .put("http://www.site.test/own", [says("/own?page=1")])
        .put("http://www.site.test/sister", [says("https://m.site.test/sister")])
        .put("http://www.site.test/thief", [says("http://bank.test/")])
        .put("http://www.site.test/mail", [says("mailto:a@site.test")])
        .put("http://www.site.test/broken", [says("http://[")])
        .put("http://www.site.test/header", [page(&[]).with("link", "</headed>; rel=canonical")])
        .with(|options| options.solver = solver);
    sites.crawl(&["http://www.site.test/"]);
    let path = |url: &str| url.strip_prefix("http://www.site.test").unwrap_or(url).to_owned();
    let pages = sites.pages().into_iter();
    let pages = pages.map(|page| (path(&page.url), page.canonical.as_deref().map(path)));
    let mut pages: Vec<_> = pages.filter(|(path, _)| path != "/newest" && path != "/headed").collect();
    pages.sort();
    pages.dedup();
    pages
}

#[track_caller]
fn check(solver: CanonicalSolver, others: &[(&str, &str)]) {
    let told = told(Some(solver));
    assert!(told.len() >= 11, "{told:?}");
    for (path, canonical) in told {
        let expected =
            others.iter().find(|(other, _)| *other == path).map_or(&*path, |(_, expected)| expected);
        assert_eq!(canonical.as_deref(), Some(expected), "{path}");
    }
}

#[test]
fn without_a_solver_a_page_has_the_url_that_was_fetched_and_no_other() {
    assert!(told(None).iter().all(|(_, canonical)| canonical.is_none()));
}

#[test]
fn the_first_url_is_the_one_before_all_redirects() {
    check(CanonicalSolver::FirstUrl, &[("/older", "/old"), ("/new", "/old")]);
}

#[test]
fn the_last_url_is_the_one_that_redirects_lead_to() {
    check(CanonicalSolver::LastUrl, &[("/old", "/older"), ("/older", "/new")]);
}

#[test]
fn the_declared_url_is_believed_within_the_domain_and_nowhere_else() {
    check(
        CanonicalSolver::Declared,
        &[
            ("/old", "/older"),
            ("/older", "/new"),
            ("/new", "/newest"),
            ("/own", "/own?page=1"),
            ("/sister", "https://m.site.test/sister"),
            ("/header", "/headed"),
        ],
    );
}
