//! Crawls that are killed, again and again: nothing is lost, and hardly anything done twice.

use std::collections::BTreeMap;
use std::process::Child;

use trapline_testing::{Nginx, PostgresServer, Visit, Visits};

use super::pace::wait_for;
use super::{assert_same, crawl, pages_by_wget, paths, run, sites};
use crate::folder::Folder;

const KILLS: usize = 10;
const PER_HOST: usize = 4;

/// How many requests were made again.
fn repeats(server: &Nginx, visits: &[Visit]) -> usize {
    let sites = server.sites().iter();
    let repeated = sites.map(|site| Visits::of(visits, site.name()).repeated());
    repeated.flat_map(BTreeMap::into_values).map(|count| count - 1).sum()
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
    for _ in 0..KILLS {
        let mut crawling = crawl(&server, &folder.path).args(flags).spawn().unwrap();
        let goal = server.answered() + pages / (KILLS + 2);
        wait_for(&server, goal);
        kill(&mut crawling);
    }
    run(crawl(&server, &folder.path).args(flags));
    let visits = server.take_visits().unwrap();
    assert_same(&paths(&server, &visits), pages_by_wget());
    println!("{} requests in all", visits.len());
    let (again, in_flight) = (repeats(&server, &visits), KILLS * PER_HOST * server.sites().len());
    println!("{again} were fetched again");
    assert!(again <= in_flight, "{again} were fetched again, and {in_flight} can have been in flight");
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
    for round in 0..KILLS {
        let goal = server.answered() + pages / (KILLS + 2);
        wait_for(&server, goal);
        let victim = &mut crawling[round % 3];
        kill(victim);
        *victim = start(round % 3);
    }
    for mut crawling in crawling {
        assert_eq!(crawling.wait().unwrap().code(), Some(0));
    }
    let visits = server.take_visits().unwrap();
    assert_same(&paths(&server, &visits), pages_by_wget());
    println!("{} requests in all", visits.len());
    let (again, in_flight) = (repeats(&server, &visits), KILLS * PER_HOST * server.sites().len());
    println!("{again} were fetched again");
    assert!(again <= in_flight, "{again} were fetched again, and {in_flight} can have been in flight");
}
