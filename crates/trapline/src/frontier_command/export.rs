//! `trapline frontier export`: whole crawls, written as lines of JSON.

use std::io::{self, BufWriter, Write, stdout};
use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;
use trapline_core::Timestamp;
use trapline_frontier::{Frontier, Query, Record, Rows, Scan, Stats, StoreError};

use super::address::Address;
use super::output::Output;
use super::transfer::{Counts, write};
use super::whole_file::WholeFile;
use super::{Ended, IMPORT_NOTE, complain, moment, progress};

/// Write whole crawls to a file, for `import`
///
/// The crawl that `--crawl` names, or all of the store: settings and state; every URL with its state and its whole request, those
/// of a queue in the order in which they would be claimed; queues with terms, budgets and waits; notes. One JSON object a line, the last of which counts
/// the others. The store is not changed.
///
/// An output file is there as a whole or not at all. It has everything in it that the crawl knows: cookies, headers and bodies of requests, and the
/// secret of the crawl's identities. Keep it as you keep the store.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl export --output crawl.jsonl
  trapline frontier --store disk:crawl --crawl news export | gzip > news.jsonl.gz
  trapline frontier --store disk:crawl export | jq -r 'select(.state == \"dead\") | .url'")]
pub(super) struct Export {
    /// Where to; standard output unless given
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// How many URLs are asked for at once, and how many queues: those are put in order for each page.
const URLS: usize = 1000;
const QUEUES: usize = 100_000;

/// Why an export did not come to its end.
pub(super) enum Trouble {
    /// Nobody reads on.
    Closed,
    Failed(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(format!("cannot write: {error}")),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Export {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let store = at.store()?;
        let crawls: Vec<String> = if at.is_named {
            vec![at.crawl.to_owned()]
        } else {
            let crawls = pollster::block_on(trapline_frontier::crawls(&*store, moment::now()));
            let crawls = crawls.map_err(|error| error.to_string())?;
            crawls.iter().map(|crawl| crawl.name.to_string()).collect()
        };
        let frontiers = crawls.iter().map(|crawl| Address { crawl, ..at }.enter(&store));
        let frontiers = frontiers.collect::<Result<Vec<_>, _>>()?;
        let progress = progress::begin(true);
        let now = moment::now();
        let written = match &self.output {
            None => {
                let mut to = BufWriter::with_capacity(1 << 18, stdout().lock());
                export(&frontiers, now, &mut to, &progress).and_then(|counts| {
                    to.flush()?;
                    Ok(counts)
                })
            }
            Some(path) => {
                let cannot = |error: io::Error| format!("cannot write {}: {error}", path.display());
                let mut to = WholeFile::begin(path).map_err(cannot)?;
                export(&frontiers, now, &mut to, &progress).and_then(|counts| {
                    to.finish().map_err(|error| Trouble::Failed(cannot(error)))?;
                    Ok(counts)
                })
            }
        };
        progress.finish_and_clear();
        match (written, &self.output) {
            (Err(Trouble::Closed), _) => Ok(Ended::Well),
            (Err(Trouble::Failed(message)), None) => Err(message),
            (Err(Trouble::Failed(message)), Some(path)) => {
                Err(format!("{message}\n  {} is as it was before.", path.display()))
            }
            (Ok(counts), None) => {
                let Counts { urls, queues, notes } = counts;
                complain(&format!("{urls} URLs, {queues} queues and {notes} notes exported"));
                Ok(Ended::Well)
            }
            (Ok(counts), Some(path)) => {
                out.card(&vec![
                    ("file", json!(path.display().to_string())),
                    ("crawls", json!(crawls)),
                    ("urls", json!(counts.urls)),
                    ("queues", json!(counts.queues)),
                    ("notes", json!(counts.notes)),
                ]);
                Ok(Ended::Well)
            }
        }
    }
}

/// Writes a whole file.
pub(super) fn export(
    frontiers: &[Frontier],
    now: Timestamp,
    to: &mut impl Write,
    progress: &ProgressBar,
) -> Result<Counts, Trouble> {
    writeln!(to, "{}", write::header(now))?;
    let mut all = Counts::default();
    for frontier in frontiers {
        all.add(export_crawl(frontier, now, to, progress)?);
    }
    writeln!(to, "{}", write::end(frontiers.len() as u64, all))?;
    Ok(all)
}

/// Writes a crawl. All of it is asked for at one moment, so that it stands still as long as nobody else uses it.
fn export_crawl(
    frontier: &Frontier,
    now: Timestamp,
    to: &mut impl Write,
    progress: &ProgressBar,
) -> Result<Counts, Trouble> {
    let report = pollster::block_on(frontier.report(now))?;
    let before = stats(frontier, now)?;
    writeln!(to, "{}", write::crawl(&report))?;
    let total: u64 = before.urls.iter().sum();
    let mut counts = Counts::default();
    let mut scan = Scan { limit: URLS, ..Scan::new(Query::Records) };
    loop {
        let page = pollster::block_on(frontier.scan(now, &scan))?;
        let Rows::Records(records) = page.rows else {
            return Err(Trouble::Failed("the store does not tell its records".to_owned()));
        };
        for record in &records {
            let line = match record {
                Record::Url(url) => {
                    counts.urls += 1;
                    let usual = frontier.prepare_in((*url.request).clone(), Some(&url.key));
                    write::url(url, usual.ok().map(|candidate| candidate.identity))
                }
                Record::Queue(queue) => {
                    counts.queues += 1;
                    scan.limit = QUEUES;
                    write::queue(queue)
                }
                Record::Note(note) if note.key == IMPORT_NOTE => continue,
                Record::Note(note) => {
                    counts.notes += 1;
                    write::note(note)
                }
                Record::Crawl(crawl) => write::counts(crawl),
            };
            writeln!(to, "{line}")?;
        }
        progress.set_message(format!("{}: {} of {total} URLs", report.name, counts.urls));
        if page.cursor.is_none() {
            break;
        }
        scan.cursor = page.cursor;
    }
    if counts.urls != total || stats(frontier, now)? != before {
        return Err(Trouble::Failed(format!(
            "the crawl `{}` was used while it was exported: {} URLs were written, and it had {total}; let nobody use it, and \
             export it again",
            report.name, counts.urls
        )));
    }
    writeln!(to, "{}", write::crawl_end(&report.name, counts))?;
    Ok(counts)
}

fn stats(frontier: &Frontier, now: Timestamp) -> Result<Stats, Trouble> {
    Ok(pollster::block_on(frontier.stats(now))?)
}
