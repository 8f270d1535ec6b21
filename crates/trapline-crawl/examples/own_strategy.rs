//! A strategy of one's own, in a file, with its test: pages of a blog by their dates, the newest first, and a few of each year.
//!
//! ```text
//! cargo run -p trapline-crawl --example own_strategy
//! cargo test -p trapline-crawl --example own_strategy
//! ```

use std::sync::Arc;

use async_trait::async_trait;
use trapline_core::{Request, Timestamp};
use trapline_crawl::candidate::Prospect;
use trapline_crawl::ports::{Fetch, World};
use trapline_crawl::strategies::{ArgumentError, Arguments, FoundLink, Memory, Seen, Strategy, Wish};
use trapline_crawl::{Crawl, CrawlOptions, Response, ResultStream, StrategyChoice, WebRequest};
use trapline_frontier::{Frontier, MemoryStore};
use trapline_sim::VirtualWorld;

/// Pages whose path begins with a year come first, the newest of them before all; `each_year` of a year at most.
#[derive(Debug)]
struct NewestFirst {
    each_year: u64,
}

impl NewestFirst {
    /// Makes it of its arguments. What it does not ask for is a mistake, which is told with the names that it did ask for.
    fn make(arguments: &mut Arguments) -> Result<Arc<dyn Strategy>, ArgumentError> {
        Ok(Arc::new(Self { each_year: arguments.number("each_year", 2)? }))
    }
}

impl Strategy for NewestFirst {
    fn name(&self) -> &'static str {
        "newest_first"
    }

    /// How many pages of a year there were is remembered, for each site, also after a restart.
    fn remembers(&self) -> bool {
        true
    }

    fn links(&self, _seen: &Seen<'_>, links: &[FoundLink<'_>], memory: &mut Memory) -> Vec<Wish> {
        links.iter().map(|link| self.wish(link.request, memory)).collect()
    }
}

impl NewestFirst {
    fn wish(&self, link: &Request, memory: &mut Memory) -> Wish {
        let Some(year) = year_of(&link.url) else { return Wish::score(0.1) };
        let count = memory.number(&year.to_string());
        if count >= self.each_year {
            return Wish::Leave(format!("{count} pages of {year} are enough").into());
        }
        memory.set_number(&year.to_string(), count + 1);
        Wish::score(0.2 + (f32::from(year) - 1990.0) / 100.0)
    }
}

/// `https://blog.test/2024/…` is of 2024.
fn year_of(url: &str) -> Option<u16> {
    let path = url.splitn(4, '/').nth(3)?;
    path.split('/').next()?.parse().ok().filter(|year| (1990..2070).contains(year))
}

/// A made-up blog.
struct Blog;

#[async_trait]
impl Fetch for Blog {
    async fn fetch(&self, request: &WebRequest) -> Response {
        let body = match request.url.path() {
            "/" => {
                "<a href=/about>a</a><a href=/2019/a>a</a><a href=/2024/a>a</a><a href=/2024/b>a</a>\
                    <a href=/2024/c>a</a><a href=/2021/a>a</a>"
            }
            _ => "",
        };
        let headers = vec![("content-type".to_owned(), "text/html".into())];
        Response { status: Some(200), headers, body: body.into(), ..Response::default() }
    }
}

/// Crawls the blog in virtual time: what was fetched, in order.
fn crawl(arguments: &[(&str, &str)]) -> Vec<String> {
    let world = VirtualWorld::new(Timestamp::from_millis(1_000), 1);
    let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let strategy = StrategyChoice { name: "newest_first".to_owned(), arguments };
    world.clone().run(async move {
        let frontier = Frontier::builder("blog").open(MemoryStore::new(), world.now()).await;
        let (output, mut results) = ResultStream::new(100);
        let crawl = Crawl::builder(frontier.expect("memory is there"), Arc::new(world.clone()))
            .options(CrawlOptions { strategy, ..CrawlOptions::default() })
            .strategy("newest_first", NewestFirst::make)
            .output(output)
            .build(Arc::new(Blog))
            .expect("its arguments do");
        let handle = crawl.handle();
        world.spawn(Box::pin(async move {
            handle.seed(Prospect::seed("https://blog.test/").into_iter().collect()).await;
            handle.end_seeding().await;
        }));
        let read = async {
            let mut paths = Vec::new();
            while let Some(result) = results.next().await {
                paths.extend(result.page.map(|page| page.url.replace("https://blog.test", "")));
            }
            paths
        };
        let (end, paths) = futures_util::future::join(crawl.run(), read).await;
        end.expect("a crawl without trouble");
        paths
    })
}

fn main() {
    println!("{}", crawl(&[]).join("\n"));
}

#[test]
fn the_newest_come_first_and_two_of_a_year() {
    assert_eq!(crawl(&[]), ["/", "/2024/a", "/2024/b", "/2021/a", "/2019/a", "/about"]);
    assert_eq!(crawl(&[("each_year", "1")]), ["/", "/2024/a", "/2021/a", "/2019/a", "/about"]);
}
