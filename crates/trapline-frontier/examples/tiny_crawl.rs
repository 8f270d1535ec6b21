//! A whole small crawler around the frontier: a made-up web of a few pages, fetched in virtual time.
//!
//! `cargo run -p trapline-frontier --example tiny_crawl`

use std::time::Duration;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{Frontier, MemoryStore, Outcome, Settings, Settlement, StoreError};

/// The links of a page; None if there is no such page.
fn fetch(url: &str) -> Option<&'static [&'static str]> {
    match url {
        "http://a.example/" => Some(&["http://a.example/about", "http://b.example/"]),
        "http://a.example/about" => Some(&["http://a.example/", "http://a.example/gone"]),
        "http://b.example/" => Some(&["http://a.example/"]),
        _ => None,
    }
}

async fn crawl() -> Result<(), StoreError> {
    let mut now = Timestamp::ZERO;
    let settings = Settings { delay: Duration::from_secs(1), ..Settings::default() };
    let frontier = Frontier::builder("tiny").settings(settings).open(MemoryStore::new(), now).await?;
    frontier.admit(now, [Request::get("http://a.example/")]).await?;
    loop {
        let claimed = frontier.claim(now, 10).await?;
        for lease in &claimed.leases {
            let found = fetch(&lease.request.url);
            println!("{now:>4}  {}  {}", lease.request.url, if found.is_some() { "ok" } else { "not found" });
            let outcome = match found {
                Some(_) => Outcome::done(),
                None => Outcome::Dead { reason: "not found".to_owned() },
            };
            let mut settlement = Settlement::new(lease.id, outcome);
            for link in found.unwrap_or_default() {
                let depth = lease.request.depth + 1;
                settlement.links.extend(frontier.prepare(Request { depth, ..Request::get(*link) }));
            }
            frontier.settle(now, vec![settlement]).await?;
        }
        match claimed.next {
            _ if !claimed.leases.is_empty() => {}
            Some(next) => now = next,
            None => return Ok(()),
        }
    }
}

fn main() -> Result<(), StoreError> {
    pollster::block_on(crawl())
}
