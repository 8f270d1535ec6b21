//! Makes a crawl of its parts.

use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, watch};
use trapline_core::Timestamp;
use trapline_frontier::Frontier;

use crate::archives::{ArchivePlace, Hold};
use crate::candidate::Prospect;
use crate::chain::{Processor, Processors, Rule, Rules};
use crate::crawl::Crawl;
use crate::disposition::{Disposition, PaceMemory};
use crate::fetch::Visit;
use crate::flights::Flights;
use crate::gate::Gate;
use crate::handle::{CrawlHandle, Haste, ORDERS_MAX};
use crate::options::CrawlOptions;
use crate::parts::{BuildError, Made, Parts};
use crate::ports::{Archive, Fetch, NoOutput, Output, Robots, World};
use crate::strategies::{MakeStrategy, Memories, StrategyShelf};
use crate::tally::Tally;

/// Makes a [`Crawl`]. What is not given is left out: without robots, robots.txt is not asked.
///
/// A program brings its world and whoever fetches, here made-up ones, and reads what came of each visit. Its own
/// processor follows the others, unless [`ChainNames`](crate::ChainNames) name its place:
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use trapline_core::Timestamp;
/// use trapline_crawl::candidate::Prospect;
/// use trapline_crawl::disposition::Disposition;
/// use trapline_crawl::ports::{Fetch, World};
/// use trapline_crawl::{Crawl, CrawlEnd, Flow, Processor, Response, ResultStream, WebRequest};
/// use trapline_frontier::{Frontier, MemoryStore};
/// # use trapline_sim::VirtualWorld;
///
/// /// Every page links to another, up to the third.
/// struct SmallWeb;
///
/// #[async_trait]
/// impl Fetch for SmallWeb {
///     async fn fetch(&self, request: &WebRequest) -> Response {
///         let number = request.url.path().trim_matches('/').parse().unwrap_or(0);
///         let body = if number < 3 { format!("<a href='/{}'>next</a>", number + 1) } else { String::new() };
///         let headers = vec![("content-type".to_owned(), "text/html".into())];
///         Response { status: Some(200), headers, body: body.into(), ..Response::default() }
///     }
/// }
///
/// /// Tells nobody of pages without a link.
/// struct OnlyLinking;
///
/// #[async_trait]
/// impl Processor<Disposition> for OnlyLinking {
///     fn name(&self) -> &'static str {
///         "only-linking"
///     }
///
///     async fn process(&self, disposition: &mut Disposition) -> Flow {
///         if disposition.links.is_empty() {
///             disposition.results.page = None;
///         }
///         Flow::Next
///     }
/// }
///
/// # let world = VirtualWorld::new(Timestamp::from_millis(1_000), 1);
/// # world.run(async {
/// let frontier = Frontier::builder("docs").open(MemoryStore::new(), world.now()).await?;
/// let (output, mut results) = ResultStream::new(100);
/// let crawl = Crawl::builder(frontier, Arc::new(world.clone()))
///     .output(output)
///     .disposition_processor(Arc::new(OnlyLinking))
///     .build(Arc::new(SmallWeb))?;
/// let handle = crawl.handle();
/// world.spawn(Box::pin(async move {
///     handle.seed(vec![Prospect::seed("https://example.org/").expect("a URL")]).await;
///     handle.end_seeding().await;
/// }));
///
/// let read = async {
///     let mut urls = Vec::new();
///     while let Some(result) = results.next().await {
///         urls.extend(result.page.map(|page| page.url.to_string()));
///     }
///     urls
/// };
/// let (end, urls) = futures_util::future::join(crawl.run(), read).await;
/// assert_eq!(end?, CrawlEnd::Exhausted);
/// assert_eq!(urls, ["https://example.org/", "https://example.org/1", "https://example.org/2"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct CrawlBuilder {
    frontier: Frontier,
    world: Arc<dyn World>,
    options: CrawlOptions,
    robots: Option<Arc<dyn Robots>>,
    output: Arc<dyn Output>,
    archives: Vec<(ArchivePlace, Arc<dyn Archive>)>,
    rules: Rules<Prospect>,
    fetch_processors: Processors<Visit>,
    disposition_processors: Processors<Disposition>,
    strategies: StrategyShelf,
    tally: Tally,
}

impl CrawlBuilder {
    pub(crate) fn new(frontier: Frontier, world: Arc<dyn World>) -> Self {
        Self {
            frontier,
            world,
            options: CrawlOptions::default(),
            robots: None,
            output: Arc::new(NoOutput),
            archives: Vec::new(),
            rules: Vec::new(),
            fetch_processors: Vec::new(),
            disposition_processors: Vec::new(),
            strategies: StrategyShelf::default(),
            tally: Tally::default(),
        }
    }

    /// Its policies. Defaults to [`CrawlOptions::default`].
    #[must_use]
    pub fn options(self, options: CrawlOptions) -> Self {
        Self { options, ..self }
    }

    /// Who knows robots.txt. Defaults to nobody: then it is not asked.
    #[must_use]
    pub fn robots(self, robots: Arc<dyn Robots>) -> Self {
        Self { robots: Some(robots), ..self }
    }

    /// Where results go. Defaults to nowhere.
    #[must_use]
    pub fn output(self, output: Arc<dyn Output>) -> Self {
        Self { output, ..self }
    }

    /// Where pages are kept. Can be given several times. Whoever fetches has to keep what came as it came, if the archive wants that.
    #[must_use]
    pub fn archive(mut self, place: ArchivePlace, archive: Arc<dyn Archive>) -> Self {
        self.archives.push((place, archive));
        self
    }

    /// A rule of your own for the candidate chain. It has its turn where [`ChainNames`](crate::ChainNames) name it; if they are
    /// not given, after all others.
    #[must_use]
    pub fn rule(mut self, rule: Arc<dyn Rule<Prospect>>) -> Self {
        self.rules.push(rule);
        self
    }

    /// A processor of your own for the fetch chain, likewise.
    #[must_use]
    pub fn fetch_processor(mut self, processor: Arc<dyn Processor<Visit>>) -> Self {
        self.fetch_processors.push(processor);
        self
    }

    /// A processor of your own for the disposition chain, likewise.
    #[must_use]
    pub fn disposition_processor(mut self, processor: Arc<dyn Processor<Disposition>>) -> Self {
        self.disposition_processors.push(processor);
        self
    }

    /// What earlier runs have done.
    #[must_use]
    pub fn tally(self, tally: Tally) -> Self {
        Self { tally, ..self }
    }

    /// A strategy of your own, to be chosen by its name.
    #[must_use]
    pub fn strategy(mut self, name: &'static str, make: MakeStrategy) -> Self {
        self.strategies.add(name, make);
        self
    }

    /// Puts everything together.
    pub fn build(self, fetch: Arc<dyn Fetch>) -> Result<Crawl, BuildError> {
        let Self { frontier, world, mut options, robots, output, tally, .. } = self;
        let tally = Arc::new(Mutex::new(tally));
        let parts = Parts {
            memories: Arc::new(Memories::new(frontier.clone(), Arc::clone(&world))),
            frontier: frontier.clone(),
            world: Arc::clone(&world),
            fetch,
            robots,
            gate: Arc::new(Gate::default()),
            archives: self.archives,
            hold: Arc::new(Hold::new(Arc::clone(&tally))),
            rules: self.rules,
            fetch_processors: self.fetch_processors,
            disposition_processors: self.disposition_processors,
            strategies: self.strategies,
            pace_memory: PaceMemory::default(),
        };
        let Made { scope, candidates, strategies, chains } = parts.make(&mut options, None)?;
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        let (hasten, haste) = watch::channel(Haste::None);
        let handle = CrawlHandle {
            orders: sender,
            haste: hasten,
            tally,
            concurrency: Arc::new(AtomicUsize::new(options.concurrency)),
        };
        Ok(Crawl {
            flights: Flights::new(Arc::clone(&world), chains),
            frontier,
            world,
            output,
            options,
            parts,
            scope,
            candidates,
            strategies,
            handle,
            orders,
            held: VecDeque::new(),
            haste,
            away: None,
            pausing: Vec::new(),
            seeding: true,
            stopping: false,
            begun: Timestamp::ZERO,
        })
    }
}
