//! `trapline sitemap`: what a sitemap lists, one line of JSON an entry.
//!
//! A window on `trapline-extract`: nothing is fetched, no index followed, and no entry left out because of its host.

use std::io::{self, Read};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use trapline_core::parse_url;
use trapline_extract::{Sitemap, SitemapKind, SitemapLimits};

use crate::ended::{self, Ended, complain};
use crate::moment;
use crate::output::Output;

/// List the entries of a sitemap, one line of JSON each
///
/// Reads a sitemap from standard input: an XML url set or index, plain text, RSS or Atom, also gzipped. Broken ones give what can
/// be found in them; what is wrong goes to standard error. At most 50,000 entries and 50 MB, unpacked, are read.
///
/// kind is page, or sitemap for the entries of an index. foreign says that the entry is on another host than --url, so that this
/// sitemap alone is no reason to fetch it. lastmod is in UTC. What an entry does not say is null.
///
/// The exit code is 0 if the input could be read, and 2 if not.
#[derive(Args)]
#[command(after_help = "Examples:
  $ trapline sitemap --url https://example.com/sitemap.xml < sitemap.xml
  {\"url\":\"https://example.com/\",\"kind\":\"page\",\"lastmod\":\"2026-05-01T00:00:00.000Z\",\"changefreq\":\"daily\",\"priority\":0.8,\"foreign\":false}

  $ curl -s https://example.com/sitemap.xml.gz | trapline sitemap --url https://example.com/sitemap.xml.gz")]
pub(crate) struct SitemapArgs {
    /// Where the sitemap came from: relative addresses are resolved against it
    #[arg(long, value_name = "URL")]
    url: String,
}

/// Lists.
pub(crate) fn run(args: &SitemapArgs) -> ExitCode {
    ended::exit("sitemap", list(args))
}

fn list(args: &SitemapArgs) -> Result<Ended, String> {
    let url = parse_url(&args.url, None).map_err(|error| {
        format!("`{}` is no URL: {error}\n  --url takes the address that the sitemap came from", args.url)
    })?;
    let limits = SitemapLimits::default();
    let mut bytes = Vec::new();
    // Packed or not, what is longer than may be unpacked is too long.
    let most = limits.decoded_bytes_max + 1;
    io::stdin()
        .lock()
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot read standard input: {error}"))?;
    let sitemap = Sitemap::read(&url, &bytes, &limits);
    let kind = if sitemap.kind == SitemapKind::Index { "sitemap" } else { "page" };
    let mut output = Output::new(true);
    for entry in &sitemap.entries {
        output.object(&vec![
            ("url", json!(entry.url.as_str())),
            ("kind", json!(kind)),
            ("lastmod", json!(entry.lastmod.map(moment::write))),
            ("changefreq", json!(entry.changefreq.map(|frequency| frequency.name()))),
            // As it was written, and not as the nearest of the longer kind of number.
            ("priority", json!(entry.priority.and_then(|priority| priority.to_string().parse::<f64>().ok()))),
            ("foreign", json!(entry.foreign)),
        ]);
    }
    output.finish()?;
    for fault in &sitemap.faults {
        complain(&format!("trapline sitemap: byte {}: {}", fault.at, fault.kind));
    }
    if sitemap.faults_left_off > 0 {
        complain(&format!("trapline sitemap: and {} more", sitemap.faults_left_off));
    }
    Ok(Ended::Well)
}
