//! Crawls that are killed, again and again: nothing is lost, and hardly anything done twice.

use std::collections::BTreeMap;
use std::process::Child;

use trapline_testing::{Nginx, PostgresServer, Visit, Visits, unescaped};

use super::pace::wait_for;
use super::{assert_same, crawl, pages_by_wget, paths, run, sites};
use crate::crawl::leased;
use crate::folder::Folder;

const KILLS: usize = 10;
const PER_HOST: usize = 4;

/// How often pages of sites were in flight when a crawler was killed, by the site's name and the path.
#[derive(Default)]
struct InFlight(BTreeMap<(String, String), usize>);

impl InFlight {
    /// Counts what is in flight now: granted, and not settled. All of the dead crawler's is among it.
    fn count(&mut self, server: &Nginx, store: &str) {
        let mut by_site = BTreeMap::new();
        for url in leased(store) {
            let number = (0..server.sites().len()).find(|number| url.starts_with(&server.url(*number)));
            let number = number.expect("a lease is of one of the sites");
            let site = server.sites()[number].name().to_owned();
            *by_site.entry(site.clone()).or_insert(0) += 1;
            let path = unescaped(&url[server.url(number).len() - 1..]);
            *self.0.entry((site, path)).or_insert(0) += 1;
        }
        assert!(by_site.values().all(|count| *count <= PER_HOST), "{by_site:?}");
    }

    /// Each page was asked for once, and once more at most for each kill at which it was in flight.
    fn check(&self, server: &Nginx, visits: &[Visit]) {
        let mut again = 0;
        for site in server.sites() {
            for (path, count) in Visits::of(visits, site.name()).repeated() {
                let lost = self.0.get(&(site.name().to_owned(), path.clone())).copied().unwrap_or(0);
                assert!(count <= 1 + lost, "{path} was fetched {count} times, and in flight at {lost} kills");
                again += count - 1;
            }
        }
        let in_flight: usize = self.0.values().sum();
        println!("{} requests, {again} of them again; {in_flight} were in flight", visits.len());
    }
}

fn kill(crawling: &mut Child) {
    crawling.kill().expect("it runs");
    crawling.wait().expect("it ends");
}

#[test]
fn a_crawl_killed_ten_times_finds_the_same_and_repeats_only_what_was_in_flight() {
    let server = Nginx::start(sites()).unwrap();
    let folder = Folder::new("killed");
    let flags = ["--embeds", "--delay", "0", "--per-host", &PER_HOST.to_string()];
    let pages: usize = pages_by_wget().values().map(std::collections::BTreeSet::len).sum();
    let mut in_flight = InFlight::default();
    for _ in 0..KILLS {
        let mut crawling = crawl(&server, &folder.path).args(flags).spawn().unwrap();
        let goal = server.answered() + pages / (KILLS + 2);
        wait_for(&server, goal);
        kill(&mut crawling);
        in_flight.count(&server, &format!("disk:{}", folder.path.join("store").display()));
    }
    run(crawl(&server, &folder.path).args(flags));
    let visits = server.take_visits().unwrap();
    assert_same(&paths(&server, &visits), pages_by_wget());
    in_flight.check(&server, &visits);
}

#[test]
fn three_crawlers_of_one_database_share_the_work_though_they_are_killed() {
    let server = Nginx::start(sites()).unwrap();
    let databases = PostgresServer::shared();
    let store = databases.url(&databases.create_database().unwrap());
    assert_eq!(super::super::store(&["migrate", &store]).2, Some(0));
    let folders = [0, 1, 2].map(|number| Folder::new(&format!("shared-{number}")));
    let start = |number: usize| {
        let mut command = crawl(&server, &folders[number].path);
        command.args(["--embeds", "--delay", "0", "--per-host", &PER_HOST.to_string(), "--store", &store]);
        // Nobody else can tell that a crawler is dead before its leases have ended.
        command.args(["--set", "crawl.lease=5s"]).spawn().unwrap()
    };
    let pages: usize = pages_by_wget().values().map(std::collections::BTreeSet::len).sum();
    let mut crawling = [0, 1, 2].map(start);
    let mut in_flight = InFlight::default();
    for round in 0..KILLS {
        let goal = server.answered() + pages / (KILLS + 2);
        wait_for(&server, goal);
        let victim = &mut crawling[round % 3];
        kill(victim);
        in_flight.count(&server, &store);
        *victim = start(round % 3);
    }
    for mut crawling in crawling {
        assert_eq!(crawling.wait().unwrap().code(), Some(0));
    }
    let visits = server.take_visits().unwrap();
    assert_same(&paths(&server, &visits), pages_by_wget());
    in_flight.check(&server, &visits);
}
