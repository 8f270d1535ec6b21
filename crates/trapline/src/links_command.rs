//! `trapline links`: the links of a page from standard input, one line of JSON each, and what else it says of itself.
//!
//! A window on `trapline-extract`, for people who wonder what a crawl finds on a page. It fetches nothing.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use trapline_core::parse_url;
use trapline_extract::{Directives, Head, Limits, Link, Page, PageReader, SNIFF_BYTES, sniff};
use url::Url;

use crate::output::{Output, Row};

/// Show the links of a page: HTML or CSS from standard input, one line of JSON for each link
///
/// Links come in the order of the page, each as often as it is there, resolved against the page's first <base> or else --base.
/// `rel` holds the tokens of the attribute in lower case, or is null; `kind` is navigation, embed or redirect. Links to other
/// languages have `hreflang` as well.
///
/// What is wrong with a page, or left out of it, goes to standard error. The exit code is 0 as long as input could be read and
/// answers written.
#[derive(Args)]
#[command(after_help = "Examples:
  $ echo '<a href=../b rel=nofollow>b</a> <img src=c.png>' | trapline links --base https://example.com/a/
  {\"url\":\"https://example.com/b\",\"tag\":\"a\",\"attr\":\"href\",\"rel\":\"nofollow\",\"kind\":\"navigation\"}
  {\"url\":\"https://example.com/a/c.png\",\"tag\":\"img\",\"attr\":\"src\",\"rel\":null,\"kind\":\"embed\"}

  $ echo 'a { background: url(b.png) }' | trapline links --base https://example.com/ --content-type text/css
  {\"url\":\"https://example.com/b.png\",\"tag\":\"css\",\"attr\":\"url\",\"rel\":null,\"kind\":\"embed\"}")]
pub(crate) struct LinksArgs {
    /// The address of the page, against which its links are resolved
    #[arg(long, value_name = "URL", value_parser = absolute_url)]
    base: Url,
    /// The page's Content-Type header. Without it the bytes decide, and text that could be anything is taken for HTML, or for
    /// CSS if it looks like that
    #[arg(long, value_name = "CT")]
    content_type: Option<String>,
    /// Print one more line at the end, {"facts": …}: title, description, language, canonical, robots directives, OpenGraph,
    /// JSON-LD, alternates, encoding, media type, SimHash, digest, faults
    #[arg(long)]
    facts: bool,
}

fn absolute_url(text: &str) -> Result<Url, String> {
    parse_url(text, None)
        .map_err(|error| format!("{error}; a page's address looks like https://example.com/page"))
}

/// Reads standard input and prints what was found.
pub(crate) fn run(args: &LinksArgs) -> ExitCode {
    let page = match read(args, io::stdin().lock()) {
        Ok(page) => page,
        Err(error) => {
            complain(&format!("trapline links: cannot read standard input: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let mut output = Output::new(true);
    for link in &page.links {
        output.object(&link_row(link));
        if output.is_closed() {
            break;
        }
    }
    if args.facts {
        output.object(&vec![("facts", facts(&page))]);
    }
    for fault in &page.faults {
        complain(&format!("trapline links: {fault}"));
    }
    match output.finish() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            complain(&format!("trapline links: {message}"));
            ExitCode::FAILURE
        }
    }
}

/// Nobody may be listening, and that is no reason to stop.
fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// Reads a page piece by piece: only what is found is held.
fn read(args: &LinksArgs, mut input: impl Read) -> io::Result<Page> {
    let mut start = Vec::with_capacity(SNIFF_BYTES);
    input.by_ref().take(SNIFF_BYTES as u64).read_to_end(&mut start)?;
    let content_type = args.content_type.as_deref().or_else(|| presumed_type(&start));
    let head = Head { content_type, ..Head::default() };
    let mut reader = PageReader::new(&args.base, &head, &Limits::default());
    reader.feed(&start);
    let mut piece = vec![0; 1 << 16];
    loop {
        match input.read(&mut piece) {
            Ok(0) => return Ok(reader.finish()),
            Ok(length) => reader.feed(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// What text without a type is taken for: who asks for the links of something has something with links.
fn presumed_type(start: &[u8]) -> Option<&'static str> {
    if sniff(None, start) != "text/plain" {
        return None;
    }
    let text = start.trim_ascii_start();
    let has = |byte| start.contains(&byte);
    let is_css = [&b"@import"[..], b"@charset", b"@media", b"@font-face", b"/*"]
        .iter()
        .any(|word| text.starts_with(word))
        || has(b'{') && has(b':') && !has(b'<');
    Some(if is_css { "text/css" } else { "text/html" })
}

fn link_row(link: &Link) -> Row {
    let mut row: Row = vec![
        ("url", json!(link.url)),
        ("tag", json!(link.tag)),
        ("attr", json!(link.attribute)),
        ("rel", json!(link.rel)),
        ("kind", json!(link.kind.name())),
    ];
    row.extend(link.hreflang.as_ref().map(|hreflang| ("hreflang", json!(hreflang))));
    row
}

fn facts(page: &Page) -> Value {
    let agents =
        page.robots.agents.iter().map(|(name, directives)| (name.clone(), directives_of(directives)));
    let graph = page.open_graph.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>();
    let alternates = page.alternates.iter().map(|its| json!({"hreflang": its.hreflang, "url": its.url}));
    let faults = page.faults.iter().map(|fault| (fault.kind.name().to_owned(), json!(fault.count)));
    json!({
        "base": page.base.as_str(),
        "mime": page.mime,
        "content": page.content.name(),
        "charset": page.charset.name,
        "charset_source": page.charset.source.name(),
        "title": page.title,
        "description": page.description,
        "language": page.language,
        "canonical": page.canonical,
        "robots": directives_of(&page.robots.everyone),
        "robots_of": agents.collect::<serde_json::Map<_, _>>(),
        "open_graph": graph,
        "json_ld": page.json_ld,
        "alternates": alternates.collect::<Vec<_>>(),
        "simhash": page.simhash.map(|hash| format!("{:016x}", hash.0)),
        "text_bytes": page.text_bytes,
        "digest": page.digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "body_bytes": page.body_bytes,
        "faults": faults.collect::<serde_json::Map<_, _>>(),
    })
}

/// The directives that were given, as words.
fn directives_of(directives: &Directives) -> Value {
    let given = [
        ("noindex", directives.noindex),
        ("nofollow", directives.nofollow),
        ("noarchive", directives.noarchive),
        ("nosnippet", directives.nosnippet),
        ("noimageindex", directives.noimageindex),
    ];
    let mut words = given.iter().filter(|(_, given)| *given).map(|(name, _)| json!(name)).collect::<Vec<_>>();
    words.extend(
        directives.unavailable_after.iter().map(|moment| json!(format!("unavailable_after: {moment}"))),
    );
    words.extend(directives.others.iter().map(|other| json!(other)));
    Value::Array(words)
}
