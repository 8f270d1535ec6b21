//! What was found so far, under the limits.

use trapline_core::parse_url;
use url::Url;

use super::{
    ChangeFrequency, Sitemap, SitemapEntry, SitemapFault, SitemapFaultKind, SitemapKind, SitemapLimits, date,
};

pub(super) struct Collection<'a> {
    base: &'a Url,
    pub(super) limits: &'a SitemapLimits,
    pub(super) kind: SitemapKind,
    entries: Vec<SitemapEntry>,
    /// Those without a good address too.
    seen: usize,
    /// Bytes of all addresses: one long address of a sitemap makes every short one in it long.
    urls_bytes: u64,
    full: bool,
    faults: Vec<SitemapFault>,
    faults_left_off: u64,
    truncated: bool,
}

/// An entry as it was written.
#[derive(Default)]
pub(super) struct Found {
    pub(super) url: String,
    /// Whether the address must stand on its own: in plain text, anything could be a relative one.
    pub(super) absolute: bool,
    pub(super) lastmod: String,
    pub(super) changefreq: String,
    pub(super) priority: String,
}

impl<'a> Collection<'a> {
    pub(super) fn new(base: &'a Url, limits: &'a SitemapLimits) -> Self {
        Self {
            base,
            limits,
            kind: SitemapKind::Unknown,
            entries: Vec::new(),
            seen: 0,
            urls_bytes: 0,
            full: false,
            faults: Vec::new(),
            faults_left_off: 0,
            truncated: false,
        }
    }

    pub(super) fn fault(&mut self, at: u64, kind: SitemapFaultKind) {
        if self.faults.len() < self.limits.faults_max {
            self.faults.push(SitemapFault { at, kind });
        } else {
            self.faults_left_off += 1;
        }
    }

    /// Says that there was more than was read.
    pub(super) fn cut(&mut self) {
        self.truncated = true;
    }

    /// Whether there is no room for what was found last.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn add(&mut self, at: u64, found: &Found) {
        if self.seen >= self.limits.entries_max {
            return self.fill(at, SitemapFaultKind::TooManyEntries);
        }
        self.seen += 1;
        let (url, foreign) = match self.resolve(found) {
            Ok(url) => url,
            Err(kind) => return self.fault(at, kind),
        };
        self.urls_bytes += url.as_str().len() as u64;
        if self.urls_bytes > self.limits.decoded_bytes_max {
            return self.fill(at, SitemapFaultKind::TooLong);
        }
        let lastmod = self.read(at, &found.lastmod, date::read, SitemapFaultKind::BadDate);
        let changefreq =
            self.read(at, &found.changefreq, ChangeFrequency::read, SitemapFaultKind::BadFrequency);
        let priority = self.read(at, &found.priority, read_priority, SitemapFaultKind::BadPriority);
        self.entries.push(SitemapEntry { url, foreign, lastmod, changefreq, priority });
    }

    /// There is no room for more.
    fn fill(&mut self, at: u64, why: SitemapFaultKind) {
        if !self.full {
            self.fault(at, why);
            self.cut();
        }
        self.full = true;
    }

    fn resolve(&self, found: &Found) -> Result<(Url, bool), SitemapFaultKind> {
        let text = found.url.trim();
        if text.is_empty() {
            return Err(SitemapFaultKind::NoUrl);
        }
        if text.len() > self.limits.url_bytes_max {
            return Err(SitemapFaultKind::LongUrl);
        }
        let base = (!found.absolute).then_some(self.base);
        let url = parse_url(text, base).map_err(|_| SitemapFaultKind::BadUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(SitemapFaultKind::OtherScheme);
        }
        // Percent-encoding can make it longer than it was written.
        if url.as_str().len() > 3 * self.limits.url_bytes_max {
            return Err(SitemapFaultKind::LongUrl);
        }
        let foreign = url.host() != self.base.host();
        Ok((url, foreign))
    }

    fn read<T>(
        &mut self,
        at: u64,
        text: &str,
        read: impl Fn(&str) -> Option<T>,
        fault: SitemapFaultKind,
    ) -> Option<T> {
        let text = text.trim();
        let value = Some(text).filter(|text| !text.is_empty()).map(read)?;
        if value.is_none() {
            self.fault(at, fault);
        }
        value
    }

    pub(super) fn finish(self) -> Sitemap {
        Sitemap {
            kind: self.kind,
            entries: self.entries,
            faults: self.faults,
            faults_left_off: self.faults_left_off,
            truncated: self.truncated,
        }
    }
}

fn read_priority(text: &str) -> Option<f32> {
    text.replacen(',', ".", 1).parse().ok().filter(|priority| (0.0..=1.0).contains(priority))
}
