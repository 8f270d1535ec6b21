//! `trapline crawl` from what the user typed to the exit code.

use std::io::Write;
use std::process::ExitCode;

use trapline_core::format_duration;
use trapline_crawl::candidate::Prospect;
use trapline_fetch::{FetchOptions, Fetcher};

use super::folder::{self, Folder};
use super::inject::Inject;
use super::refusals::ToldFetcher;
use super::reloading::LoadConfig;
use super::running::{Run, written_report};
use super::seed_source::SeedSource;
use super::watch::Telling;
use super::{CrawlArgs, plan, seeds};
use crate::config::FileConfig;
use crate::ended::complain_of_crawl;
use crate::output::pasted;
use crate::{moment, store_url};

pub(super) const NO_SEEDS: &str =
    "no seeds: name a URL to begin with, such as https://example.org/, or a file with --seeds";

/// Crawls until the end, and says how it went.
pub(super) fn crawl(args: &CrawlArgs, config: &FileConfig, load: LoadConfig) -> Result<ExitCode, String> {
    let command_line = command_line_seeds(args, config)?;
    let sources = args.seed_files.iter().map(|text| SeedSource::of(text)).collect::<Result<Vec<_>, _>>()?;
    sources.iter().try_for_each(SeedSource::check)?;
    // All that can be wrong with it is told before anything is made or changed.
    plan::crawl_options(config)?;
    let fetch_options = config.fetch_options().map_err(|(option, message)| format!("{option}: {message}"))?;
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
                 frontier --store {} steer crawl delete`, or choose another name with --set crawl.name=NAME",
                store_url::shown(&store_url),
                pasted(&store_url::shown(&store_url))
            ));
        }
        folder.clear(args.yes, own_store)?;
    }
    // How another run stood is no news of this one.
    let _ = std::fs::remove_file(folder.path().join("status.json"));
    let shared = store_url::take_and_follow(&store_url)?;
    // Within this process time goes forward only, whatever becomes of the machine's clock.
    moment::follow(moment::now());
    let run = Run {
        folder: &folder,
        shared,
        in_memory,
        load,
        seeds: command_line,
        sources,
        needs_seeds: nothing,
        telling: Telling {
            quiet: args.quiet,
            json: args.json,
            period: Some(config.output.progress).filter(|period| !period.is_zero()),
        },
        service: None,
    };
    let ended = runtime.block_on(async {
        let ran = run.go(config).await?;
        if ran.stats.is_none() {
            complain_of_crawl(&format!(
                "the store is away: what was in flight comes back when its leases have ended, after {}; run \
                 the same command again to go on",
                format_duration(config.crawl.lease)
            ));
        }
        let (report, text) = written_report(&ran, folder.path(), args.json)?;
        // Nobody may be listening.
        let _ = std::io::stdout().write_all(text.as_bytes());
        // Who keeps no `pages.jsonl` knows of this run only.
        let pages = if config.output.pages {
            report.pages()
        } else {
            ran.handle.look(|tally| (tally.pages, tally.good))
        };
        Ok(ran.ending.code(pages, ran.stats.map_or(0, |stats| stats.fetched)))
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

/// Seeds of the command line and of the configuration, which must all be good: there somebody looks at the answer.
fn command_line_seeds(args: &CrawlArgs, config: &FileConfig) -> Result<Vec<Prospect>, String> {
    let all = args.seeds.iter().chain(&config.crawl.seeds);
    all.map(|seed| seeds::read(seed).map_err(|wrong| format!("`{seed}`: {wrong}"))).collect()
}

/// Each fetch takes a socket, and some lie idle: as many open files are allowed as can be.
pub(super) fn raise_file_limit(config: &FileConfig) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some() && current != maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
    let needed = u64::from(config.crawl.concurrency) + config.connect.idle_max as u64 + 100;
    if let Some(allowed) = getrlimit(Resource::Nofile).current.filter(|allowed| *allowed < needed) {
        complain_of_crawl(&format!(
            "{needed} open files may be needed, and {allowed} are allowed: raise the limit (`ulimit -Hn`), or \
             lower crawl.concurrency"
        ));
    }
}
