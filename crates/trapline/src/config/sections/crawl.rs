//! `[crawl]`, `[output]` and `[chains]`: what is crawled, where it is kept, and by which steps.

use std::path::PathBuf;
use std::time::Duration;

use trapline_crawl::candidate::FingerprintFunction;
use trapline_crawl::disposition::CanonicalSolver;

use crate::archive_url::{self, ArchiveUrl};
use crate::config::options::options;
use crate::config::texts::{Size, choice};
use crate::config::value::Text;
use crate::store_url;

options! {
    /// What is crawled, and when it is enough.
    Crawl {
        /// The crawl's name in its store. Several crawls in one store do not see each other. Defaults to default.
        name: String = "default".to_owned();
        /// Where the crawl begins: URLs, or hosts without a scheme. Those of the command line come to them. Defaults to none.
        seeds: Vec<String> = Vec::new();
        /// Whether the page that a seed redirects to becomes a seed itself, so that `example.org` also stands for
        /// `www.example.org` where the one leads to the other. Defaults to true.
        redirected_seeds: bool = true;
        /// The crawl ends when so many pages were fetched, those of earlier runs among them. Of several crawlers that share a
        /// store, each counts what was done when it began and its own pages since. Defaults to none.
        max_pages: Option<u64> = None;
        /// The crawl ends after this long, counted from the beginning of the run. Defaults to none.
        max_time: Option<Duration> = None;
        /// The crawl ends when so much was received, in earlier runs too; counted like pages. Defaults to none.
        max_bytes: Option<Size> = None;
        /// How many fetches may be under way at once, of all hosts together. Each takes a socket, so mind the limit on open
        /// files (`trapline doctor`). Defaults to 200.
        concurrency: u32 = 200;
        /// Whether fewer fetches are begun while processors or memory are short. Defaults to true.
        adaptive: bool = true;
        /// Where the crawl remembers what is to be done and what was done, as the URL of a store: `disk:PATH`,
        /// `postgres://USER@HOST/DATABASE`, `grpc://HOST:PORT`, or `memory:`, which survives nothing. Defaults to none: a folder in the output
        /// folder.
        store: Option<StoreAddress> = None;
        /// How long a fetch is reserved for who took it. It is renewed while the fetch goes on; after a crash the URL waits this
        /// long for its next turn. Defaults to 1m.
        lease: Duration = Duration::from_secs(60);
        /// After so many crashes in a row while it was fetched, a URL is given up, so that a page that kills its crawler cannot do
        /// it for ever; 0 means never. Defaults to 5.
        max_deliveries: u32 = 5;
        /// Whether the crawl waits for more URLs at its end instead of ending. Defaults to false.
        pause_at_finish: bool = false;
        /// By which rules two URLs are one page: `exact` (as parsed), `default` (escapes and the order of parameters do not
        /// matter), `tracking` (also without the parameters of campaigns), `aggressive` (also without `www.`, session ids and
        /// the slash at the end). Fixed when a crawl begins. Defaults to default.
        canonical: Canonical = Canonical::Default;
    }
}

choice! {
    /// Rules by which two URLs are one page; names of the profiles of `CanonicalRules`.
    Canonical: "exact, default, tracking or aggressive, in quotes" {
        Exact = "exact",
        Default = "default",
        Tracking = "tracking",
        Aggressive = "aggressive",
    }
}

/// The URL of a store. It is shown without its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreAddress(pub(crate) String);

impl Text for StoreAddress {
    const FORM: &'static str = "the URL of a store in quotes, such as \"disk:crawl\"";

    fn of(text: &str) -> Result<Self, String> {
        store_url::check(text).map(|()| Self(text.to_owned()))
    }

    fn text(&self) -> String {
        store_url::shown(&self.0)
    }
}

/// The URL of an archive.
#[derive(Clone, Debug)]
pub(crate) struct ArchiveAddress(pub(crate) ArchiveUrl);

impl Text for ArchiveAddress {
    const FORM: &'static str = "the URL of an archive in quotes, such as \"warc:pages\"";

    fn of(text: &str) -> Result<Self, String> {
        archive_url::parse(text).map(Self)
    }

    fn text(&self) -> String {
        self.0.text().to_owned()
    }
}

options! {
    /// What the crawl leaves behind.
    Output {
        /// The folder for results and, unless the store is elsewhere, for the crawl itself. Running the same crawl again goes on
        /// where it was. Defaults to trapline-crawl.
        dir: PathBuf = "trapline-crawl".into();
        /// Where pages are kept, as URLs of archives: `warc:DIR` for WARC files, `file:DIR` and `s3://BUCKET/PREFIX` for bodies, each with
        /// what is chosen behind a `?`, such as `warc:pages?max_size=1GiB&prefix=news`. No page is done before it is kept. Defaults to none.
        archives: Vec<ArchiveAddress> = Vec::new();
        /// Whether `pages.jsonl` is written, a line a visit. Defaults to true.
        pages: bool = true;
        /// Whether `skipped.jsonl` is written: what was not fetched, and why. Defaults to true.
        skipped: bool = true;
        /// A file to which a line is appended for each URL that was settled, in the columns of Heritrix's `crawl.log`. It may be
        /// moved away or truncated at any time. Defaults to none.
        crawl_log: Option<PathBuf> = None;
        /// Under which of its URLs a page is to be known, told as `canonical` in `pages.jsonl`: `first_url` (before redirects),
        /// `last_url` (behind them) or `declared` (what the page itself says, within its registrable domain). Defaults to none: it
        /// is not told.
        canonical: Option<CanonicalSolver> = None;
        /// How often a line tells of the progress where there is no terminal; 0 for never. Defaults to 10s.
        progress: Duration = Duration::from_secs(10);
    }
}

options! {
    /// The steps that URLs and pages go through, by name and in order. Whoever leaves one out does without what it does.
    Chains {
        /// What a URL goes through before it waits to be fetched. Defaults to none: the usual steps.
        candidate: Option<Vec<String>> = None;
        /// By which function the step `fingerprint` goes: `sha1`, `md5` or `hostname_local`. Defaults to sha1.
        fingerprint: FingerprintFunction = FingerprintFunction::Sha1;
        /// What a URL goes through when its turn has come. Defaults to none: the usual steps.
        fetch: Option<Vec<String>> = None;
        /// What becomes of a page. Defaults to none: the usual steps.
        disposition: Option<Vec<String>> = None;
    }
}
