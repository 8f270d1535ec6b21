//! `trapline explain URL…`: all that decides what becomes of a URL, in one place.
//!
//! It asks the same rules as the crawl and the frontier itself, and decides nothing. Nothing is fetched (unless somebody wants
//! robots.txt), admitted or changed.

mod explanation;
mod judgement;
mod next;
mod telling;

use std::io::{BufRead, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::config::{ConfigFlags, Flags};
use crate::ended::{self, Ended, complain};
use crate::output::Output;
use explanation::Explainer;

/// The longest line of a list.
const LINE_BYTES_MAX: u64 = 65_536;

/// Explain what a crawl makes of URLs, and what happens to them next
///
/// For each URL: its canonical form, identity, partition, queue, class and cost; what each rule of the scope and of the
/// candidate chain says; what robots.txt says, and which line; the policy in force; its state and page record; its queue's
/// budget and pace; and what will happen next, and when.
///
/// The crawl is that of the configuration: its store, or the one in the output folder, running or not. Without one, rules are
/// told as they would hold for a new crawl.
///
/// A URL that the crawl does not know is judged as a link on a page of a seed's host, one link away from a seed; --via and --depth
/// say otherwise.
///
/// Exit code 0: all were explained. 1: something is no URL. 2: it could not be done.
#[derive(Args)]
#[command(after_help = "\
Examples:
  $ trapline explain https://example.org/about
  $ trapline explain --store disk:crawl/store --json https://example.org/a | jq .next
  $ trapline explain --config crawl.toml - < urls.txt
  $ trapline explain --out crawl --fetch-robots https://example.org/private/")]
pub(crate) struct ExplainArgs {
    /// What is to be explained; - for a list on standard input, a line each
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    #[command(flatten)]
    config: ConfigFlags,
    /// Where the crawl is kept: disk:PATH, postgres://USER@HOST/DATABASE, grpc://HOST:PORT [default: in its folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The crawl's name in its store [default: default]
    #[arg(long, value_name = "NAME")]
    crawl: Option<String>,
    /// The output folder of the crawl [default: trapline-crawl]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The page on which an unknown URL would be found
    #[arg(long, value_name = "URL")]
    via: Option<String>,
    /// How many links from a seed an unknown URL would be
    #[arg(long, value_name = "N", default_value_t = 1)]
    depth: u32,
    /// Ask servers for robots.txt where the crawl does not have it
    #[arg(long)]
    fetch_robots: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ExplainArgs) -> ExitCode {
    ended::exit("explain", explain(args))
}

fn explain(args: &ExplainArgs) -> Result<Ended, String> {
    let out = args.out.as_ref().map(|out| out.display());
    let flags = Flags::default()
        .text("--out", "output.dir", out)
        .text("--store", "crawl.store", args.store.as_ref())
        .text("--crawl", "crawl.name", args.crawl.as_ref());
    let load = |more: &Flags| {
        let loaded = args.config.load(flags.clone().and(more.clone()));
        loaded.map(|loaded| loaded.config).map_err(|refused| refused.to_string())
    };
    let config = load(&Flags::default())?;
    crate::log::init(&config.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let mut output = Output::new(args.json);
    let mut ended = Ended::Well;
    let explained = runtime.block_on(async {
        let explainer =
            Explainer::open(config, &load, args.via.clone(), args.depth, args.fetch_robots).await?;
        let mut first = true;
        for_each(&args.urls, async |text| {
            match explainer.explain(text).await? {
                Ok(row) => {
                    if !std::mem::take(&mut first) {
                        output.say("");
                    }
                    if output.is_json() {
                        output.object(&row);
                    } else {
                        output.card(&telling::in_words(&row));
                    }
                }
                Err(wrong) => {
                    ended = Ended::WithComplaints;
                    complain(&format!("`{text}`: {wrong}"));
                    if output.is_json() {
                        output.object(&vec![("url", json!(text)), ("error", json!(wrong))]);
                    }
                }
            }
            Ok(!output.is_closed())
        })
        .await
    });
    runtime.shutdown_background();
    explained?;
    output.finish().map(|()| ended)
}

/// Each URL that was named, and each line of the list where that was. Ends where nobody wants more.
async fn for_each(
    named: &[String],
    mut each: impl AsyncFnMut(&str) -> Result<bool, String>,
) -> Result<(), String> {
    for text in named {
        if text != "-" {
            if !each(text).await? {
                return Ok(());
            }
            continue;
        }
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            let trouble = |error: std::io::Error| format!("cannot read standard input: {error}");
            let read = (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(trouble)?;
            if read == 0 {
                break;
            }
            if read as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
                input.skip_until(b'\n').map_err(trouble)?;
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim();
            if !text.is_empty() && !each(text).await? {
                return Ok(());
            }
        }
    }
    Ok(())
}
