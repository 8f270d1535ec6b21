//! A crawl from its opening to its end: everything that it needs is put together, and looked after while it runs.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::oneshot;
use trapline_crawl::candidate::Prospect;
use trapline_crawl::ports::Robots;
use trapline_crawl::{Crawl, CrawlHandle, Tally};
use trapline_fetch::{Fetcher, RobotsCache};
use trapline_frontier::{CrawlChange, Frontier, Note, Query, Rows, Scan, Stats, StoreError};
use trapline_server::{Crawler, RunningCrawl};

use super::archives::{self, OpenArchives};
use super::control::{Control, write_whole};
use super::crawl_log::CrawlLog;
use super::ending::Ending;
use super::files::ResultFiles;
use super::folder::Folder;
use super::inject::Inject;
use super::observed::{Observed, SharedChronicle};
use super::refusals::{ToldFetcher, ToldRobots};
use super::reloading::{LoadConfig, Reloading};
use super::report::Report;
use super::run::NO_SEEDS;
use super::seed_source::SeedSource;
use super::served::Served;
use super::standing::LastWord;
use super::steered::Steered;
use super::terms_told::TermsTold;
use super::traces::Traces;
use super::watch::{self, Telling, Watch};
use super::world::RealWorld;
use super::{STOPPED, plan, resume};
use crate::config::FileConfig;
use crate::ended::{complain, complain_of_crawl};
use crate::store_url::Shared;
use crate::{chronicle, moment};

/// What notes about the results in a folder begin with.
pub(crate) const OUTPUT: &str = "output/";

/// How long a store may take to say how a crawl stands that could not go on.
const LAST_LOOK: Duration = Duration::from_millis(500);

/// A crawl that is about to run.
pub(super) struct Run<'r> {
    pub(super) folder: &'r Folder,
    pub(super) shared: Shared,
    /// Nothing is kept of it.
    pub(super) in_memory: bool,
    /// Reads the configuration anew.
    pub(super) load: LoadConfig,
    pub(super) seeds: Vec<Prospect>,
    pub(super) sources: Vec<SeedSource>,
    /// Without seeds of an earlier run there would be nothing to do.
    pub(super) needs_seeds: bool,
    pub(super) telling: Telling,
    /// Who serves it: it does not end for want of URLs then, and does not listen to signals.
    pub(super) service: Option<Arc<Crawler>>,
}

/// How it went.
pub(super) struct Ran {
    pub(super) ending: Ending,
    /// None if the store is away.
    pub(super) stats: Option<Stats>,
    pub(super) handle: CrawlHandle,
}

impl Run<'_> {
    /// Crawls until the end.
    pub(super) async fn go(self, config: &FileConfig) -> Result<Ran, String> {
        let Self { folder, shared, in_memory, load, seeds, sources, needs_seeds, telling, service } = self;
        let Shared { store, is_owner } = shared;
        let told = |error: StoreError| error.to_string();
        let stays = service.is_some();
        let frontier = plan::frontier(config)?.open_shared(store, moment::now()).await.map_err(told)?;
        let steered = Steered::load(&frontier, moment::now()).await.map_err(told)?;
        let mut config = config.clone();
        let dir = folder.path();
        if !steered.is_empty() {
            let how = format!("`trapline steer {} --forget` goes back to the configuration", dir.display());
            complain_of_crawl(&format!("this crawl was steered: {}; {how}", steered.lines().join(", ")));
            config = steered
                .apply(&*load)
                .map_err(|wrong| format!("what was steered does not do: {wrong}\n{how}"))?;
        }
        let config = &config;
        let options = plan::crawl_options(config)?;
        let mut fetch_options =
            config.fetch_options().map_err(|(option, message)| format!("{option}: {message}"))?;
        for warning in fetch_options.warnings().iter().chain(&config.warnings()) {
            complain_of_crawl(warning);
        }
        let order = frontier.report(moment::now()).await.map_err(told)?.settings.order;
        plan::check_order(config, order)?;
        resume::apply_settings(&frontier, config).await.map_err(told)?;
        TermsTold::tell(&frontier, config).await.map_err(told)?;
        let known = watch::known(&frontier).await.map_err(told)?;
        let stats = known.stats.clone();
        if needs_seeds && stats.urls.iter().sum::<u64>() == 0 {
            folder.leave();
            return Err(NO_SEEDS.to_owned());
        }
        archives::keep_raw(config, &mut fetch_options);
        let archives = OpenArchives::open(config, &fetch_options).await?;
        let fetcher = Fetcher::new(fetch_options).map_err(|error| error.to_string())?;
        let robots = robots(&frontier, &fetcher, config);
        let id = folder.id()?;
        let note = format!("{OUTPUT}{id}");
        let noted = note_of(&frontier, &note).await.map_err(told)?;
        // Callers of a service may hold leases, and have not left.
        if is_owner && !stays && !has_company(&frontier, &note).await.map_err(told)? {
            resume::expire_leases(&frontier, &options, Some(&*robots)).await.map_err(told)?;
        }
        let first = noted.is_none().then(|| ResultFiles::first_note(&note));
        let output = ResultFiles::open(folder.path(), note, noted.as_deref(), &config.output, in_memory)?;
        if let Some(note) = first {
            // Whatever is written before the first settlement is then known to be this crawl's.
            frontier.steer_crawl(moment::now(), CrawlChange::Note(note)).await.map_err(told)?;
        }
        let kept = note_of(&frontier, &format!("{}{id}", chronicle::NOTES)).await.map_err(told)?;
        let chronicle = SharedChronicle::resume(
            folder.path(),
            &id,
            kept.as_deref(),
            noted.is_some().then(|| output.pages_bytes()),
        )?;
        let log = config.output.crawl_log.as_deref().map(CrawlLog::open).transpose()?;
        let (traces, sending) = Traces::begin(config, &id)?.unzip();
        let output =
            Observed { results: output, chronicle: chronicle.clone(), log, traces, service: service.clone() };
        if known.paused {
            let folder = folder.path().display();
            complain_of_crawl(&format!("this crawl is paused; `trapline resume {folder}` lets it go on"));
        }

        let world = Arc::new(RealWorld(tokio::runtime::Handle::current()));
        let mut builder = Crawl::builder(frontier.clone(), world)
            .options(options)
            .robots(robots)
            .output(Arc::new(output))
            .tally(Tally { pages_before: stats.fetched, bytes_before: stats.bytes, ..Tally::default() });
        for (place, archive) in archives.iter() {
            builder = builder.archive(place, archive);
        }
        let crawl =
            builder.build(Arc::new(ToldFetcher(fetcher.clone()))).map_err(|error| error.to_string())?;
        let handle = crawl.handle();
        if !stays {
            listen_to_signals(&handle)?;
        }
        let reloading = Arc::new(Reloading {
            load,
            frontier: frontier.clone(),
            handle: handle.clone(),
            began: config.clone(),
            present: Mutex::new(config.clone()),
            fetcher: Mutex::new(fetcher),
            turn: tokio::sync::Mutex::default(),
        });
        if let Some(crawler) = &service {
            crawler.runs(RunningCrawl {
                handle: handle.clone(),
                frontier: frontier.clone(),
                program: Arc::new(Served(Arc::clone(&reloading))),
            });
        }
        let (injected, all_injected) = oneshot::channel();
        let watch = Watch {
            injected: Some(injected),
            handle: handle.clone(),
            frontier: frontier.clone(),
            folder: folder.path().to_owned(),
            control: Control::new(folder.path())?,
            reloading,
            inject: Some(Inject::new(folder.path())?),
            telling,
            known,
            chronicle: chronicle.clone(),
            asking: None,
        };
        let watching = tokio::spawn(watch.run());
        let seeding = tokio::spawn(seed(handle.clone(), seeds, sources, all_injected, stays));
        let begun = Instant::now();
        let ran = crawl.run().await.map_err(|error| error.to_string());
        seeding.abort();
        watching.abort();
        let _ = watching.await;
        archives.close().await;
        let ended = match ran {
            Ok(end) => Ending::of(end, &frontier, &handle, (in_memory, stays)).await.map_err(told),
            Err(error) => Err(error),
        };
        let last = match &ended {
            Ok((_, last)) => last.clone(),
            Err(_) => {
                tokio::time::timeout(LAST_LOOK, frontier.stats(moment::now())).await.ok().and_then(Result::ok)
            }
        };
        let word = match &ended {
            Ok((ending, _)) => LastWord { name: ending.name(), trouble: None },
            Err(error) => LastWord { name: "trouble", trouble: Some(error.clone()) },
        };
        let last = last.unwrap_or(stats);
        chronicle.sample(&last, 0);
        chronicle.save(folder.path());
        chronicle.note(&frontier, LAST_LOOK).await;
        watch::write_end(folder.path(), &handle, last, begun.elapsed(), word);
        if let Some(sending) = sending {
            sending.finish().await;
        }
        let (ending, stats) = ended?;
        Ok(Ran { ending, stats, handle })
    }
}

/// Who knows robots.txt: from the notes of a frontier, and from servers. Whether anybody is asked is up to the crawl.
pub(crate) fn robots(frontier: &Frontier, fetcher: &Fetcher, config: &FileConfig) -> Arc<dyn Robots> {
    let notes = Arc::new(frontier.clone());
    Arc::new(ToldRobots(RobotsCache::new(fetcher.clone(), Some(notes), config.robots_options())))
}

/// The report, written into the folder, and its text or its JSON.
pub(super) fn written_report(ran: &Ran, folder: &Path, as_json: bool) -> Result<(Report, String), String> {
    let report = Report::read(folder)?;
    let (ending, stats) = (&ran.ending, ran.stats.as_ref());
    let (text, json) = (report.text(ending, stats), report.json(ending, stats));
    for (name, content) in [("report.txt", &text), ("report.json", &format!("{json:#}\n"))] {
        let path = folder.join(name);
        write_whole(&path, content).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    let shown = if as_json { format!("{json}\n") } else { text };
    Ok((report, shown))
}

async fn note_of(frontier: &Frontier, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(notes(frontier, key, 1).await?.pop().map(|note| note.value))
}

/// Whether others have crawled into other folders from the same store. They may have outlived the process that owned it, with leases of their
/// own.
async fn has_company(frontier: &Frontier, own: &str) -> Result<bool, StoreError> {
    Ok(notes(frontier, OUTPUT, 2).await?.iter().any(|note| note.key != own))
}

async fn notes(frontier: &Frontier, prefix: &str, limit: usize) -> Result<Vec<Note>, StoreError> {
    let query = Query::Notes { prefix: prefix.to_owned() };
    match frontier.scan(moment::now(), &Scan { limit, ..Scan::new(query) }).await?.rows {
        Rows::Notes(notes) => Ok(notes),
        _ => Ok(Vec::new()),
    }
}

/// Hands over all seeds: those of the command line, then source by source, then those of the folder. Who `stays` waits for more then.
async fn seed(
    handle: CrawlHandle,
    first: Vec<Prospect>,
    sources: Vec<SeedSource>,
    all_injected: oneshot::Receiver<()>,
    stays: bool,
) {
    if !first.is_empty() && handle.seed(first).await.is_none() {
        return;
    }
    for source in sources {
        let name = source.name();
        let mut file = match tokio::task::spawn_blocking(move || source.open()).await {
            Ok(Ok(file)) => file,
            Ok(Err(error)) => {
                complain_of_crawl(&format!("cannot read seeds from {name}: {error}"));
                continue;
            }
            Err(_) => return,
        };
        loop {
            let (back, batch) = match tokio::task::spawn_blocking(move || {
                let batch = file.next_batch();
                (file, batch)
            })
            .await
            {
                Ok(read) => read,
                Err(_) => return,
            };
            file = back;
            match batch {
                Ok(None) => break,
                Ok(Some(batch)) => {
                    for (line, wrong) in &batch.wrong {
                        complain(&format!("{name}:{line}: {wrong}"));
                    }
                    if handle.seed(batch.seeds).await.is_none() {
                        return;
                    }
                }
                Err(error) => {
                    complain_of_crawl(&format!("cannot read on in {name}: {error}"));
                    break;
                }
            }
        }
    }
    // What was dropped into the folder before the start counts too.
    let _ = all_injected.await;
    if !stays {
        handle.end_seeding().await;
    }
}

/// The first signal stops the crawl when what is in flight has landed, the second one at once.
fn listen_to_signals(handle: &CrawlHandle) -> Result<(), String> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|error| format!("cannot listen to signals: {error}"))?;
    let (handle, runtime) = (handle.clone(), tokio::runtime::Handle::current());
    std::thread::spawn(move || {
        for (count, _) in signals.forever().enumerate() {
            match count {
                0 => {
                    complain("stopping when what is in flight has landed; once more to stop now");
                    runtime.block_on(handle.stop());
                }
                1 => runtime.block_on(handle.abort()),
                // Somebody is in a hurry; everything that was answered is safe.
                _ => std::process::exit(i32::from(STOPPED)),
            }
        }
    });
    Ok(())
}
