//! `trapline frontier import`: whole crawls from a file, our own or the dump of a URLFrontier.

mod own;
#[cfg(test)]
pub(crate) mod round_trip;
mod target;
mod urlfrontier;

use std::fs::File;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;

use super::address::Address;
use super::fields::Fields;
use super::lines::{Line, Lines};
use super::output::Output;
use super::transfer::Format;
use super::{Ended, complain, listing, progress};
use target::Tally;

/// Take whole crawls over from a file
///
/// Reads what `export` writes, or the dump of a URLFrontier (its `DumpURLs`); which of the two it is, is seen by itself. Crawls keep the names
/// that they have in the file; `--crawl` gives another one to the only crawl of a file, or to all of a dump. The store and the crawls are made if they are
/// not there.
///
/// A crawl that is made goes on as the one that was exported: same order, waits, budgets, settings. It is paused until all of it is there. In a crawl that has
/// something in it, everything known stays as it is. An import that was interrupted can be repeated.
///
/// The first bad line ends the import, unless `--skip-bad` passes over such lines. Exit code 0: all of the file was taken or known. 1: bad lines were passed over.
/// 2: it could not be done, or not to the end.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:new import crawl.jsonl
  zcat news.jsonl.gz | trapline frontier --store disk:new --crawl copy import -
  trapline frontier --store disk:new --crawl news import urlfrontier-dump.jsonl --skip-bad")]
pub(super) struct Import {
    /// The file; `-` reads standard input
    file: PathBuf,
    /// trapline or urlfrontier, where it should not be seen by itself
    #[arg(long, value_parser = |name: &str| named(name))]
    format: Option<Format>,
    /// Report bad lines and go on
    #[arg(long)]
    skip_bad: bool,
}

/// The longest line that is read: a request with a body of a hundred megabytes fits.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// So many bad lines are told of one by one.
const TOLD_MAX: u64 = 100;

type Input = Lines<Box<dyn Read>>;

fn named(name: &str) -> Result<Format, String> {
    let found = Format::NAMES.iter().find(|(known, _)| *known == name);
    found.map(|(_, format)| *format).ok_or_else(|| "write trapline or urlfrontier".to_owned())
}

/// A file that is being imported.
struct Reading<'a> {
    at: Address<'a>,
    lines: Input,
    /// What was read of the first line, until somebody wants it.
    first: Option<(u64, Fields)>,
    skip_bad: bool,
    bad: u64,
    progress: ProgressBar,
}

impl Import {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let name =
            if self.is_stdin() { "standard input".to_owned() } else { self.file.display().to_string() };
        let mut lines: Input = Lines::of(self.open()?, name.clone(), LINE_BYTES_MAX);
        // Nothing is made before it is known that this is a file that can be imported.
        let (number, first) = match lines.next()? {
            None => return Err(format!("{name} is empty; an export has at least a header and an end")),
            Some((number, Ok(Line::Json(fields)))) => (number, fields),
            Some((number, Ok(Line::Text(_)))) => {
                return Err(format!("{name}: line {number}: it is not JSON; a list of URLs is for `admit`"));
            }
            Some((number, Err(problem))) => return Err(format!("{name}: line {number}: {problem}")),
        };
        let seen = Format::of(&first);
        let format = match (self.format, seen) {
            (Some(format), _) => format,
            (None, seen) => seen.map_err(|problem| format!("{name}: line {number}: {problem}"))?,
        };
        let mut reading = Reading {
            at,
            lines,
            first: Some((number, first)),
            skip_bad: self.skip_bad,
            bad: 0,
            progress: progress::begin(true),
        };
        let mut tallies = Vec::new();
        let imported = match format {
            Format::Trapline => own::import(&mut reading, || at.store_or_new(), &mut tallies),
            Format::UrlFrontier => urlfrontier::import(&mut reading, &mut tallies),
        };
        reading.progress.finish_and_clear();
        if reading.bad > TOLD_MAX {
            complain(&format!("… and {} bad lines more", reading.bad - TOLD_MAX));
        }
        let rows: Vec<_> = tallies.iter().map(Tally::row).collect();
        out.rows(&Tally::COLUMNS, &rows);
        if rows.is_empty() && imported.is_ok() {
            out.say("no crawls");
        }
        imported.map_err(|problem| {
            let before =
                if rows.is_empty() { "Nothing was imported" } else { "What is told above was imported" };
            let skip = if problem.is_bad_line && !self.skip_bad {
                ", or pass over bad lines with --skip-bad"
            } else {
                ""
            };
            format!("{name}: {}\n  {before}. Mend it and import it again{skip}.", problem.message)
        })?;
        Ok(if reading.bad == 0 { Ended::Well } else { Ended::WithComplaints })
    }

    fn is_stdin(&self) -> bool {
        self.file == Path::new("-")
    }

    fn open(&self) -> Result<Box<dyn Read>, String> {
        if self.is_stdin() {
            return Ok(Box::new(stdin()));
        }
        match File::open(&self.file) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(format!("cannot read {}: {error}", self.file.display())),
        }
    }
}

/// Why an import did not come to its end.
struct Problem {
    message: String,
    /// Whether it is one that `--skip-bad` would have passed over.
    is_bad_line: bool,
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self { message, is_bad_line: false }
    }
}

impl From<trapline_frontier::StoreError> for Problem {
    fn from(error: trapline_frontier::StoreError) -> Self {
        error.to_string().into()
    }
}

/// What is wrong with a line, for `at` a number.
fn wrong(number: u64, problem: &str) -> Problem {
    format!("line {number}: {problem}").into()
}

impl Reading<'_> {
    /// The next line that is an object; bad ones are passed over, if that is wanted.
    fn next(&mut self) -> Result<Option<(u64, Fields)>, Problem> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        loop {
            let Some((number, line)) = self.lines.next()? else { return Ok(None) };
            match line {
                Ok(Line::Json(fields)) => return Ok(Some((number, fields))),
                Ok(Line::Text(_)) => self.bad(number, "it is not a JSON object")?,
                Err(problem) => self.bad(number, &problem)?,
            }
        }
    }

    /// A bad line: told and passed over, or the end.
    fn bad(&mut self, number: u64, problem: &str) -> Result<(), Problem> {
        if !self.skip_bad {
            return Err(Problem { is_bad_line: true, ..wrong(number, problem) });
        }
        self.bad += 1;
        if self.bad <= TOLD_MAX {
            self.progress.suspend(|| complain(&format!("line {number}: {problem}")));
        }
        Ok(())
    }
}

/// Whether a crawl has a note.
fn has_note(frontier: &trapline_frontier::Frontier, key: &str) -> Result<Option<Vec<u8>>, String> {
    let mut value = None;
    let query = trapline_frontier::Query::Notes { prefix: key.to_owned() };
    listing::each_page(frontier, query, |rows| {
        if let trapline_frontier::Rows::Notes(notes) = rows {
            // They are listed by key: the first of those that begin so is the one, if it is there.
            value = notes.into_iter().next().filter(|note| note.key == key).map(|note| note.value);
        }
        false
    })?;
    Ok(value)
}
