//! Sitemaps: the pages a site says it has. XML url sets and indexes, plain text, RSS and Atom, each perhaps gzipped.
//!
//! Whatever the bytes, the answer is what was found in them: broken XML gives what came before the break and what can be told
//! behind it. Memory is bounded by the entries that are found, not by what the bytes unpack to. Not here: fetching, following
//! an index, and whether an address of another host counts; it is marked, and the caller decides.

mod collect;
mod date;
mod fault;
mod lines;
mod text;
mod xml;

use trapline_core::Timestamp;
use url::Url;

pub use fault::{SitemapFault, SitemapFaultKind};

use collect::Collection;
use text::Text;

/// How much is read. The defaults are what the sitemap protocol allows, and a little more for addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitemapLimits {
    /// Entries of one file, those included that have no good address. Defaults to 50,000.
    pub entries_max: usize,
    /// Bytes of one file, unpacked, and of all its addresses together, resolved. Defaults to 52,428,800 (50 MB, as the protocol counts them).
    pub decoded_bytes_max: u64,
    /// Bytes of one address; longer ones are passed over. Defaults to 8,192.
    pub url_bytes_max: usize,
    /// Faults that are listed. Defaults to 100.
    pub faults_max: usize,
}

impl Default for SitemapLimits {
    fn default() -> Self {
        Self { entries_max: 50_000, decoded_bytes_max: 50 << 20, url_bytes_max: 8_192, faults_max: 100 }
    }
}

/// What was found in a sitemap.
#[derive(Clone, Debug, PartialEq)]
pub struct Sitemap {
    /// What it is.
    pub kind: SitemapKind,
    /// What it lists: pages, or, if it is an index, other sitemaps.
    pub entries: Vec<SitemapEntry>,
    /// What was wrong with it.
    pub faults: Vec<SitemapFault>,
    /// How many more faults there were.
    pub faults_left_off: u64,
    /// Whether it goes on behind a limit.
    pub truncated: bool,
}

/// What a sitemap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SitemapKind {
    /// XML with pages.
    UrlSet,
    /// XML with other sitemaps.
    Index,
    /// An address a line.
    Text,
    /// A feed, RSS 0.9 to 2.0.
    Rss,
    /// A feed, Atom.
    Atom,
    /// Nothing that we know.
    Unknown,
}

impl SitemapKind {
    /// A name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::UrlSet => "urlset",
            Self::Index => "index",
            Self::Text => "text",
            Self::Rss => "rss",
            Self::Atom => "atom",
            Self::Unknown => "unknown",
        }
    }
}

/// A page, or another sitemap.
#[derive(Clone, Debug, PartialEq)]
pub struct SitemapEntry {
    /// Its address, `http` or `https`, resolved against that of the sitemap.
    pub url: Url,
    /// Whether it is on another host than the sitemap. Anybody can list anybody's pages: whoever takes such entries should
    /// know that the other host wants it.
    pub foreign: bool,
    /// When it changed last, if it says so in a way that can be read.
    pub lastmod: Option<Timestamp>,
    /// How often it is said to change.
    pub changefreq: Option<ChangeFrequency>,
    /// How important it is said to be, from 0 to 1.
    pub priority: Option<f32>,
}

/// How often a page is said to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeFrequency {
    /// With every visit.
    Always,
    /// Every hour.
    Hourly,
    /// Every day.
    Daily,
    /// Every week.
    Weekly,
    /// Every month.
    Monthly,
    /// Every year.
    Yearly,
    /// It is an archive.
    Never,
}

impl ChangeFrequency {
    const ALL: [(Self, &str); 7] = [
        (Self::Always, "always"),
        (Self::Hourly, "hourly"),
        (Self::Daily, "daily"),
        (Self::Weekly, "weekly"),
        (Self::Monthly, "monthly"),
        (Self::Yearly, "yearly"),
        (Self::Never, "never"),
    ];

    /// The protocol's word for it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(frequency, _)| *frequency == self).map_or("", |(_, name)| name)
    }

    fn read(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| text.eq_ignore_ascii_case(name)).map(|(frequency, _)| *frequency)
    }
}

impl Sitemap {
    /// Reads the sitemap that came from this address.
    ///
    /// ```
    /// use trapline_extract::{Sitemap, SitemapKind, SitemapLimits};
    ///
    /// let url = trapline_core::parse_url("https://example.com/sitemap.xml", None)?;
    /// let bytes = b"<urlset><url><loc>/a?b&amp;c</loc><lastmod>2026-05-01</lastmod></url>";
    /// let sitemap = Sitemap::read(&url, bytes, &SitemapLimits::default());
    /// assert_eq!(sitemap.kind, SitemapKind::UrlSet);
    /// assert_eq!(sitemap.entries[0].url.as_str(), "https://example.com/a?b&c");
    /// # Ok::<(), url::ParseError>(())
    /// ```
    pub fn read(url: &Url, bytes: &[u8], limits: &SitemapLimits) -> Self {
        let mut found = Collection::new(url, limits);
        let mut text = Text::new(bytes, limits.decoded_bytes_max);
        match text.first() {
            None => found.fault(0, SitemapFaultKind::Empty),
            Some(b'<') => text = xml::read(text, &mut found),
            Some(_) => text = lines::read(text, &mut found),
        }
        text.report(&mut found);
        found.finish()
    }
}
