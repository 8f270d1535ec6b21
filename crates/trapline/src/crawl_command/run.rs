//! Puts a crawl together and lets it run.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::oneshot;
use trapline_core::format_duration;
use trapline_crawl::ports::Robots;
use trapline_crawl::{Crawl, CrawlHandle, Tally};
use trapline_fetch::{FetchOptions, Fetcher, RobotsCache};
use trapline_frontier::{CrawlChange, Frontier, Note, Query, Rows, Scan, Stats, StoreError};

use super::archives::{self, OpenArchives};
use super::control::{Control, write_whole};
use super::crawl_log::CrawlLog;
use super::ending::Ending;
use super::files::ResultFiles;
use super::folder::{self, Folder};
use super::inject::Inject;
use super::observed::{Observed, SharedChronicle};
use super::refusals::{ToldFetcher, ToldRobots};
use super::reloading::{LoadConfig, Reloading};
use super::report::Report;
use super::seed_source::SeedSource;
use super::seeds;
use super::standing::LastWord;
use super::steered::Steered;
use super::terms_told::TermsTold;
use super::traces::Traces;
use super::watch::{self, Telling, Watch};
use super::world::RealWorld;
use super::{CrawlArgs, STOPPED, plan, resume};
use crate::config::FileConfig;
use crate::ended::complain;
use crate::store_url::Shared;
use crate::{chronicle, moment, store_url};

const NO_SEEDS: &str =
    "no seeds: name a URL to begin with, such as https://example.org/, or a file with --seeds";

/// What notes about the results in a folder begin with.
pub(crate) const OUTPUT: &str = "output/";

/// How long a store may take to say how a crawl stands that could not go on.
const LAST_LOOK: Duration = Duration::from_millis(500);

/// Crawls until the end, and says how it went.
pub(super) fn crawl(args: &CrawlArgs, config: &FileConfig, load: LoadConfig) -> Result<ExitCode, String> {
    let command_line = command_line_seeds(args, config)?;
    let sources = args.seed_files.iter().map(|text| SeedSource::of(text)).collect::<Result<Vec<_>, _>>()?;
    sources.iter().try_for_each(SeedSource::check)?;
    let mut options = plan::crawl_options(config)?;
    let mut fetch_options =
        config.fetch_options().map_err(|(option, message)| format!("{option}: {message}"))?;
    raise_file_limit(config);
    let dir = &config.output.dir;
    let own_store = config.crawl.store.is_none();
    let store_url =
        config.crawl.store.as_ref().map_or_else(|| folder::store_url(dir), |store| store.0.clone());
    let in_memory = store_url::is_memory(&store_url);
    let nothing = command_line.is_empty() && args.seed_files.is_empty() && !Inject::has_files(dir);
    let goes_on = !args.fresh && !in_memory && (!own_store || folder::has_store(dir));
    if nothing && !goes_on {
        return Err(NO_SEEDS.to_owned());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    // Before anything is made or changed: who cannot have a list begins nothing.
    let sources = runtime.block_on(fetched(sources, &fetch_options))?;
    let folder = Folder::take(dir)?;
    if args.fresh {
        if !own_store && !in_memory {
            return Err(format!(
                "--fresh removes only what is in the folder, and this crawl is kept in {}: remove it with `trapline \
                 frontier --store {0} steer crawl delete`, or choose another name with --set crawl.name=NAME",
                store_url::shown(&store_url)
            ));
        }
        folder.clear(args.yes, own_store)?;
    }
    // How another run stood is no news of this one.
    let _ = std::fs::remove_file(folder.path().join("status.json"));
    let Shared { store, is_owner } = store_url::take_and_follow(&store_url)?;
    // Within this process time goes forward only, whatever becomes of the machine's clock.
    moment::follow(moment::now());
    let ended = runtime.block_on(async {
        let told = |error: StoreError| error.to_string();
        let frontier = plan::frontier(config)?.open_shared(store, moment::now()).await.map_err(told)?;
        let steered = Steered::load(&frontier, moment::now()).await.map_err(told)?;
        let mut config = config.clone();
        if !steered.is_empty() {
            let how = format!("`trapline steer {} --forget` goes back to the configuration", dir.display());
            complain(&format!("trapline crawl: this crawl was steered: {}; {how}", steered.lines().join(", ")));
            config = steered.apply(&*load).map_err(|wrong| format!("what was steered does not do: {wrong}\n{how}"))?;
            options = plan::crawl_options(&config)?;
            fetch_options = config.fetch_options().map_err(|(option, message)| format!("{option}: {message}"))?;
        }
        let config = &config;
        for warning in fetch_options.warnings().iter().chain(&config.warnings()) {
            complain(&format!("trapline crawl: {warning}"));
        }
        let order = frontier.report(moment::now()).await.map_err(told)?.settings.order;
        plan::check_order(config, order)?;
        resume::apply_settings(&frontier, config).await.map_err(told)?;
        TermsTold::tell(&frontier, config).await.map_err(told)?;
        let known = watch::known(&frontier).await.map_err(told)?;
        let stats = known.stats.clone();
        if nothing && stats.urls.iter().sum::<u64>() == 0 {
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
        if is_owner && !has_company(&frontier, &note).await.map_err(told)? {
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
        let output = Observed { results: output, chronicle: chronicle.clone(), log, traces };
        if known.paused {
            let folder = folder.path().display();
            complain(&format!(
                "trapline crawl: this crawl is paused; `trapline resume {folder}` lets it go on"
            ));
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
        let crawl = builder.build(Arc::new(ToldFetcher(fetcher))).map_err(|error| error.to_string())?;
        let handle = crawl.handle();
        listen_to_signals(&handle)?;
        let reloading = Reloading {
            load,
            frontier: frontier.clone(),
            handle: handle.clone(),
            began: config.clone(),
            present: Mutex::new(config.clone()),
            turn: tokio::sync::Mutex::default(),
        };
        let (injected, all_injected) = oneshot::channel();
        let watch = Watch {
            injected: Some(injected),
            handle: handle.clone(),
            frontier: frontier.clone(),
            folder: folder.path().to_owned(),
            control: Control::new(folder.path())?,
            reloading: Arc::new(reloading),
            inject: Some(Inject::new(folder.path())?),
            telling: Telling {
                quiet: args.quiet,
                json: args.json,
                period: Some(config.output.progress).filter(|period| !period.is_zero()),
            },
            known,
            chronicle: chronicle.clone(),
            asking: None,
        };
        let watching = tokio::spawn(watch.run());
        let seeding = tokio::spawn(seed(handle.clone(), command_line, sources, all_injected));
        let begun = Instant::now();
        let ran = crawl.run().await.map_err(|error| error.to_string());
        seeding.abort();
        watching.abort();
        let _ = watching.await;
        archives.close().await;
        let ended = match ran {
            Ok(end) => Ending::of(end, &frontier, &handle, in_memory).await.map_err(told),
            Err(error) => Err(error),
        };
        let last = match &ended {
            Ok((_, last)) => last.clone(),
            Err(_) => tokio::time::timeout(LAST_LOOK, frontier.stats(moment::now())).await.ok().and_then(Result::ok),
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
        if stats.is_none() {
            complain(&format!(
                "trapline crawl: the store is away: what was in flight comes back when its leases have ended, after {}; run \
                 the same command again to go on",
                format_duration(config.crawl.lease)
            ));
        }
        let report = tell(args, folder.path(), &ending, stats.as_ref())?;
        // Who keeps no `pages.jsonl` knows of this run only.
        let pages =
            if config.output.pages { report.pages() } else { handle.look(|tally| (tally.pages, tally.good)) };
        Ok(ending.code(pages, stats.map_or(0, |stats| stats.fetched)))
    });
    // Somebody may be reading seeds from a terminal or a pipe, and nothing can stop that.
    runtime.shutdown_background();
    ended
}

/// Lists of seeds that are elsewhere, fetched.
async fn fetched(sources: Vec<SeedSource>, options: &FetchOptions) -> Result<Vec<SeedSource>, String> {
    if !sources.iter().any(SeedSource::is_elsewhere) {
        return Ok(sources);
    }
    let fetcher = ToldFetcher(Fetcher::new(options.clone()).map_err(|error| error.to_string())?);
    let mut fetched = Vec::with_capacity(sources.len());
    for source in sources {
        fetched.push(source.fetched(&fetcher, &options.dial).await?);
    }
    Ok(fetched)
}

/// Who knows robots.txt: from the notes of a frontier, and from servers. Whether anybody is asked is up to the crawl.
pub(crate) fn robots(frontier: &Frontier, fetcher: &Fetcher, config: &FileConfig) -> Arc<dyn Robots> {
    let notes = Arc::new(frontier.clone());
    Arc::new(ToldRobots(RobotsCache::new(fetcher.clone(), Some(notes), config.robots_options())))
}

/// Writes the report, and shows it.
fn tell(args: &CrawlArgs, folder: &Path, ending: &Ending, stats: Option<&Stats>) -> Result<Report, String> {
    let report = Report::read(folder)?;
    let (text, json) = (report.text(ending, stats), report.json(ending, stats));
    for (name, content) in [("report.txt", &text), ("report.json", &format!("{json:#}\n"))] {
        let path = folder.join(name);
        write_whole(&path, content).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    let shown = if args.json { format!("{json}\n") } else { text };
    // Nobody may be listening.
    let _ = std::io::stdout().write_all(shown.as_bytes());
    Ok(report)
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

/// Seeds of the command line and of the configuration, which must all be good: there somebody looks at the answer.
fn command_line_seeds(
    args: &CrawlArgs,
    config: &FileConfig,
) -> Result<Vec<trapline_crawl::candidate::Prospect>, String> {
    let all = args.seeds.iter().chain(&config.crawl.seeds);
    all.map(|seed| seeds::read(seed).map_err(|wrong| format!("`{seed}`: {wrong}"))).collect()
}

/// Hands over all seeds: those of the command line, then source by source, then those of the folder.
async fn seed(
    handle: CrawlHandle,
    first: Vec<trapline_crawl::candidate::Prospect>,
    sources: Vec<SeedSource>,
    all_injected: oneshot::Receiver<()>,
) {
    if !first.is_empty() && handle.seed(first).await.is_none() {
        return;
    }
    for source in sources {
        let name = source.name();
        let mut file = match tokio::task::spawn_blocking(move || source.open()).await {
            Ok(Ok(file)) => file,
            Ok(Err(error)) => {
                complain(&format!("trapline crawl: cannot read seeds from {name}: {error}"));
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
                    complain(&format!("trapline crawl: cannot read on in {name}: {error}"));
                    break;
                }
            }
        }
    }
    // What was dropped into the folder before the start counts too.
    let _ = all_injected.await;
    handle.end_seeding().await;
}

/// Each fetch takes a socket, and some lie idle: as many open files are allowed as can be.
fn raise_file_limit(config: &FileConfig) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some() && current != maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
    let needed = u64::from(config.crawl.concurrency) + config.connect.idle_max as u64 + 100;
    if let Some(allowed) = getrlimit(Resource::Nofile).current.filter(|allowed| *allowed < needed) {
        complain(&format!(
            "trapline crawl: {needed} open files may be needed, and {allowed} are allowed: raise the limit (`ulimit -Hn`), or \
             lower --concurrency"
        ));
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
