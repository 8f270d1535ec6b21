//! `trapline crawl`: crawls from seeds into a folder, and goes on where it was.
//!
//! Here is what the user typed and what it means. The crawl itself is in `trapline-crawl`; what it needs of the world is put
//! together in `run`.

mod adapt;
mod archives;
mod control;
mod crawl_log;
mod ending;
mod files;
mod folder;
mod held;
mod inject;
mod observed;
mod plan;
mod refusals;
mod reloading;
mod report;
mod resume;
mod run;
mod running;
mod s3_client;
#[cfg(test)]
mod scenarios;
mod seed_source;
mod seeds;
mod served;
mod standing;
mod steered;
mod terms_told;
mod traces;
mod watch;
mod world;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use crate::config::{self, ConfigFlags, Flags};
use crate::ended::complain;
use crate::log;

pub(crate) use control::{Order, order};
pub(crate) use files::noted_pages;
pub(crate) use folder::{has_store, store_url};
pub(crate) use held::Held;
pub(crate) use plan::{canonical, check_order, crawl_options, frontier};
pub(crate) use running::{OUTPUT, robots};
pub(crate) use served::ServedCrawl;
pub(crate) use steered::Steered;
pub(crate) use traces::endpoint_url;

/// Exit code where all is done, and not one page came as it should.
const NOTHING: u8 = 1;

/// Exit code where a limit ended the crawl, or budgets hold back what is left; running it again with a higher one goes on.
const LIMIT: u8 = 3;

/// Exit code where somebody stopped the crawl; running it again goes on.
const STOPPED: u8 = 4;

/// Crawl from seeds, politely, into a folder; run the same command again to go on
///
/// Fetches the seeds and what they link to on the same hosts, one page at a time and a second apart on each host, as robots.txt
/// allows. What was done and what is to be done is kept in the folder, so that a crawl that was stopped, or killed, goes on
/// where it was. Each visit is a line in pages.jsonl; what was not fetched, and why, is in skipped.jsonl; report.txt and
/// report.json sum up.
///
/// Ctrl-C once finishes what is in flight and saves; twice stops now. Both can be resumed.
///
/// Exit code 0: all is done. 1: all is done, and not one page was fetched (no answer,
/// an error such as 404, not allowed, or not wanted). 2: trouble. 3: a limit was reached, or budgets
/// hold back what is left. 4: stopped.
#[derive(Args, Default)]
#[command(after_help = "\
Examples:
  $ trapline crawl https://example.org/ --contact me@example.org
  $ trapline crawl example.org --out example --max-pages 1000
  $ trapline crawl --seeds hosts.txt --scope domain --delay 2s --exclude '\\.pdf$'
  $ trapline crawl --seeds https://example.org/hosts.txt --max-time 1h
  $ trapline crawl https://example.org/ --archive warc:example/warc --archive s3://pages/example
  $ trapline crawl --config crawl.toml

  A server on this machine:
  $ trapline crawl http://127.0.0.1:8080/ --allow-network 127.0.0.0/8 --delay 0

  While it runs: trapline status DIR, report crawl DIR, pause DIR, resume DIR, stop DIR, reload DIR, steer DIR;
  seed files dropped into DIR/inject/ are taken up. Why is a URL not fetched? trapline explain --out DIR URL
  Every option: trapline config --defaults")]
pub(crate) struct CrawlArgs {
    /// Where to begin: URLs, or hosts without a scheme.
    #[arg(value_name = "SEED")]
    seeds: Vec<String>,
    /// A file of seeds, a line each; - for standard input, or the URL of such a list, also s3://BUCKET/KEY. What follows a # does not count, at the
    /// beginning or after a space.
    #[arg(long = "seeds", value_name = "FILE|-|URL")]
    seed_files: Vec<OsString>,
    #[command(flatten)]
    config: ConfigFlags,
    /// The folder for results and for the crawl itself [default: trapline-crawl].
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Start over: remove what the folder holds of an earlier crawl. With --store memory: only its results.
    #[arg(long)]
    fresh: bool,
    /// Do not ask before --fresh removes something.
    #[arg(long, requires = "fresh")]
    yes: bool,
    /// Where the crawl is kept: disk:PATH, postgres://USER@HOST/DATABASE, grpc://HOST:PORT, memory: [default: in the folder].
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Keep pages: warc:DIR (WARC files), file:DIR or s3://BUCKET/PREFIX (bodies); no page is done before it is kept. Can be given several times.
    ///
    /// Behind a `?` stands what is chosen, such as warc:pages?max_size=1GiB&prefix=news. For all: chain=fetch or chain=disposition. For
    /// warc: max_size, prefix, name, level, dedup. For file and s3: compression=zstd, brotli or none. Where an S3 server is and who
    /// we are there is read from the AWS_ variables of the environment.
    #[arg(long, value_name = "URL")]
    archive: Vec<String>,
    /// How far around the seeds: host, domain, prefix or any [default: host].
    #[arg(long, value_name = "KIND")]
    scope: Option<String>,
    /// How many links away from a seed.
    #[arg(long, value_name = "N")]
    depth: Option<String>,
    /// Stop when so many pages are done, earlier runs included. Crawlers that share a store count each for itself.
    #[arg(long, value_name = "N")]
    max_pages: Option<String>,
    /// Stop after this long, such as 10m.
    #[arg(long, value_name = "DURATION")]
    max_time: Option<String>,
    /// Stop when so much has come, such as 1GiB.
    #[arg(long, value_name = "SIZE")]
    max_bytes: Option<String>,
    /// Fetch only what matches, a regular expression over the whole URL. Can be given several times.
    #[arg(long, value_name = "REGEX")]
    include: Vec<String>,
    /// Do not fetch what matches. Can be given several times.
    #[arg(long, value_name = "REGEX")]
    exclude: Vec<String>,
    /// What is wanted first, how much of it, and what again: basic, breadth_first, depth_first, fifo, lifo, score, discovery or revisit
    /// [default: basic].
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// What the strategy is told, such as pages=50 for discovery. Can be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    strategy_arg: Vec<String>,
    /// How long a host is left alone after a fetch [default: 1s].
    #[arg(long, value_name = "DURATION")]
    delay: Option<String>,
    /// How many fetches may go on at once [default: 200].
    #[arg(long, value_name = "N")]
    concurrency: Option<String>,
    /// How many of them on one host [default: 1].
    #[arg(long, value_name = "N")]
    per_host: Option<String>,
    /// How many pages of a host at most.
    #[arg(long, value_name = "N")]
    budget: Option<String>,
    /// How to introduce ourselves, as product/version.
    #[arg(long, value_name = "TEXT")]
    user_agent: Option<String>,
    /// Whom operators of servers can turn to: a URL or a mail address.
    #[arg(long, value_name = "TEXT")]
    contact: Option<String>,
    /// Where a name leads, instead of asking name servers: host=address, host=address:port or *=address:port.
    #[arg(long, value_name = "HOST=ADDRESS")]
    resolve: Vec<String>,
    /// Let addresses of this network be dialled, such as 127.0.0.0/8.
    #[arg(long, value_name = "CIDR")]
    allow_network: Vec<String>,
    /// Fetch images, scripts and style sheets too.
    #[arg(long)]
    embeds: bool,
    /// Do not look for sitemaps.
    #[arg(long)]
    no_sitemaps: bool,
    /// Do not ask robots.txt, nor heed what pages ask of robots. Only for servers of your own.
    #[arg(long)]
    ignore_robots: bool,
    /// A file to which a line is appended for each URL that was settled, in the columns of Heritrix's crawl.log.
    #[arg(long, value_name = "FILE")]
    crawl_log: Option<String>,
    /// A collector to which traces of visits are sent, over OTLP with HTTP: http://127.0.0.1:4318. It is never waited for.
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Progress as lines of JSON.
    #[arg(long)]
    json: bool,
    /// No progress, only complaints and the report.
    #[arg(long, short)]
    quiet: bool,
}

impl CrawlArgs {
    fn flags(&self) -> Flags {
        let out = self.out.as_ref().map(|out| out.display());
        Flags::default()
            .text("--out", "output.dir", out)
            .text("--store", "crawl.store", self.store.as_ref())
            .texts("--archive", "output.archives", &self.archive)
            .text("--scope", "scope.kind", self.scope.as_ref())
            .text("--depth", "scope.max_depth", self.depth.as_ref())
            .text("--max-pages", "crawl.max_pages", self.max_pages.as_ref())
            .text("--max-time", "crawl.max_time", self.max_time.as_ref())
            .text("--max-bytes", "crawl.max_bytes", self.max_bytes.as_ref())
            .texts("--include", "scope.include", &self.include)
            .texts("--exclude", "scope.exclude", &self.exclude)
            .text("--strategy", "strategy.name", self.strategy.as_ref())
            .texts("--strategy-arg", "strategy.args", &self.strategy_arg)
            .text("--delay", "pace.delay", self.delay.as_ref())
            .text("--concurrency", "crawl.concurrency", self.concurrency.as_ref())
            .text("--per-host", "pace.per_host", self.per_host.as_ref())
            .text("--budget", "queue.budget", self.budget.as_ref())
            .text("--user-agent", "fetch.user_agent", self.user_agent.as_ref())
            .text("--contact", "fetch.contact", self.contact.as_ref())
            .texts("--resolve", "fetch.resolve", &self.resolve)
            .texts("--allow-network", "fetch.allow_networks", &self.allow_network)
            .text("--crawl-log", "output.crawl_log", self.crawl_log.as_ref())
            .text("--otlp", "log.otlp", self.otlp.as_ref())
            .switch("--embeds", "scope.embeds", self.embeds, "true")
            .switch("--no-sitemaps", "sitemaps.follow", self.no_sitemaps, "false")
            .switch("--ignore-robots", "robots.policy", self.ignore_robots, "ignore")
    }
}

/// Crawls from seeds into a folder, with options as `--set` takes them. For other commands.
pub(crate) fn crawl_into(folder: &Path, seeds: Vec<String>, settings: &[String]) -> Result<ExitCode, String> {
    let args = CrawlArgs { seeds, out: Some(folder.to_owned()), ..CrawlArgs::default() };
    let flags = args.flags().set(settings);
    let load = move |more: &Flags| {
        let loaded = config::load(None, [], &flags.clone().and(more.clone()));
        loaded.map(|loaded| loaded.config).map_err(|refused| refused.to_string())
    };
    let config = load(&Flags::default())?;
    run::crawl(&args, &config, Arc::new(load))
}

/// Crawls.
pub(crate) fn run(args: &CrawlArgs) -> ExitCode {
    let (from, flags) = (args.config.clone(), args.flags());
    let load = move |more: &Flags| {
        let loaded = from.load(flags.clone().and(more.clone()));
        loaded.map(|loaded| loaded.config).map_err(|refused| refused.to_string())
    };
    let ended = load(&Flags::default()).and_then(|config| {
        log::init(&config.log)?;
        run::crawl(args, &config, Arc::new(load))
    });
    match ended {
        Ok(code) => code,
        Err(message) => {
            complain(&format!("trapline crawl: {message}"));
            ExitCode::from(2)
        }
    }
}
