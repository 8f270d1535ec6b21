//! `trapline fetch`: fetches URLs and shows what came of each, one line of JSON.
//!
//! A window on `trapline-fetch`, for people who wonder what a crawl would get to see. It follows no redirects and asks
//! robots.txt only if told to; it decides nothing itself.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use trapline_core::{Timestamp, parse_duration, parse_url};
use trapline_extract::{Content, Head, Limits, Page};
use trapline_fetch::{
    DecodeFault, FetchError, FetchErrorKind, FetchOptions, FetchRequest, Fetched, Fetcher, HostPattern,
    HostRule, Network, Override, Protocol, Proxy, Redirect, RobotsCache, RobotsOptions, RobotsStanding,
    Truncated,
};

use crate::ended::{self, Ended, complain};
use crate::output::{Output, Row};

/// Fetch URLs and show what came of each, one line of JSON
///
/// Every result is one line, in the order of the URLs: status or error, address, protocol, headers, times, sizes, what was odd.
/// Redirects are shown, not followed. Addresses that are not globally routable are refused before anything is sent, unless
/// --allow-network opens them.
///
/// The exit code is 0 if every URL had a response, whatever its status; 1 if one had none, or robots.txt forbade it; 2 if the
/// command could not do its work.
#[derive(Args)]
#[command(after_help = "Examples:
  $ trapline fetch https://example.com/ --contact me@example.com
  {\"url\":\"https://example.com/\",\"status\":200,…}

  Look at the page, and at the facts beside it:
  $ trapline fetch https://example.com/ --body - 2> facts.json

  A server on this machine, under a name of your choice:
  $ trapline fetch http://shop.example/ --resolve shop.example=127.0.0.1:8080 --allow-network 127.0.0.0/8

  Only what robots.txt allows:
  $ trapline fetch https://example.com/private/ --robots")]
pub(crate) struct FetchArgs {
    /// What to fetch.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// Let addresses of this network be dialled, such as 127.0.0.0/8. Can be given several times.
    #[arg(long, value_name = "CIDR")]
    allow_network: Vec<Network>,
    /// Where a name leads, instead of asking name servers: host=address, host=address:port or *=address:port. Can be given
    /// several times.
    #[arg(long, value_name = "HOST=ADDRESS")]
    resolve: Vec<Override>,
    /// How to introduce ourselves, as product/version.
    #[arg(long, value_name = "TEXT")]
    user_agent: Option<String>,
    /// Whom operators of servers can turn to: a URL or a mail address, sent behind the user agent.
    #[arg(long, value_name = "TEXT")]
    contact: Option<String>,
    /// A header to send, as `Name: value`. Can be given several times.
    #[arg(long, short = 'H', value_name = "HEADER")]
    header: Vec<String>,
    /// Through a proxy: http://host:port or socks5://host:port, with user:password@ if need be.
    #[arg(long, value_name = "URL")]
    proxy: Option<Proxy>,
    /// Accept wrong certificates of hosts like this, such as *.example.com, and show what is wrong. Can be given several times.
    #[arg(long, value_name = "HOST")]
    lenient_tls: Vec<HostPattern>,
    /// Speak HTTP/1.1 only.
    #[arg(long)]
    http1: bool,
    /// How many bytes of a body are taken after decoding.
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<usize>,
    /// How long a fetch may take, such as 30s.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// Where the decoded body goes: a file, for one URL, or - for standard output; the lines of JSON go to standard error then.
    #[arg(long, value_name = "FILE|-")]
    body: Option<PathBuf>,
    /// Ask robots.txt first, and do not fetch what it forbids.
    #[arg(long)]
    robots: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// Fetches all URLs.
pub(crate) fn run(args: &FetchArgs) -> ExitCode {
    ended::exit("fetch", fetch_all(args))
}

fn fetch_all(args: &FetchArgs) -> Result<Ended, String> {
    let options = options(args)?;
    let headers = headers(args)?;
    for warning in options.warnings() {
        complain(&format!("trapline fetch: {warning}"));
    }
    if args.urls.len() > 1 && args.body.as_ref().is_some_and(|body| body.as_os_str() != "-") {
        return Err("--body with a file is for one URL; give one URL, or - for standard output".to_owned());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(async {
        let fetcher = Fetcher::new(options).map_err(|error| error.to_string())?;
        let robots = args.robots.then(|| RobotsCache::new(fetcher.clone(), None, RobotsOptions::default()));
        let mut facts = Facts::new(args);
        let mut ended = Ended::Well;
        for url in &args.urls {
            if facts.is_closed() {
                break;
            }
            ended = ended.and(fetch_one(args, &headers, url, &fetcher, robots.as_ref(), &mut facts).await?);
        }
        facts.finish().map(|()| ended)
    })
}

fn options(args: &FetchArgs) -> Result<FetchOptions, String> {
    let mut options = FetchOptions::default();
    options.dial.guard.allow_networks.clone_from(&args.allow_network);
    options.dial.dns.overrides.clone_from(&args.resolve);
    options.dial.proxy.clone_from(&args.proxy);
    if let Some(user_agent) = &args.user_agent {
        options.user_agent.clone_from(user_agent);
    }
    options.contact.clone_from(&args.contact);
    options.http1_only = args.http1;
    if let Some(most) = args.max_bytes {
        options.limits.decoded_bytes_max = most;
        options.limits.encoded_bytes_max = options.limits.encoded_bytes_max.max(most as u64);
    }
    if let Some(timeout) = args.timeout {
        options.limits.total_timeout = timeout;
    }
    options.hosts = args
        .lenient_tls
        .iter()
        .map(|hosts| HostRule { lenient_tls: true, ..HostRule::new(hosts.clone()) })
        .collect();
    Ok(options)
}

fn headers(args: &FetchArgs) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for header in &args.header {
        let bad = || format!("`{header}` is no header: write `Name: value`");
        let (name, value) = header.split_once(':').ok_or_else(bad)?;
        let name = name.trim().parse::<HeaderName>().map_err(|_| bad())?;
        let value = value.trim().parse::<HeaderValue>().map_err(|_| bad())?;
        headers.append(name, value);
    }
    Ok(headers)
}

async fn fetch_one(
    args: &FetchArgs,
    headers: &HeaderMap,
    url: &str,
    fetcher: &Fetcher,
    robots: Option<&RobotsCache>,
    facts: &mut Facts,
) -> Result<Ended, String> {
    let Ok(parsed) = parse_url(url, None) else {
        facts.tell(&vec![
            ("url", json!(url)),
            ("error", json!("url")),
            ("message", json!("this is no URL: write it whole, such as https://example.com/")),
        ]);
        return Ok(Ended::WithComplaints);
    };
    if let Some(robots) = robots {
        let (file, _) = robots.of(now(), &parsed).await;
        let decision = file.rules.check(&parsed);
        if !decision.allowed {
            let line = decision.line.map(|line| json!({"number": line.number, "text": line.to_string()}));
            let message = match file.standing {
                RobotsStanding::Unreachable => "robots.txt cannot be had, so that nothing is allowed",
                _ => "robots.txt does not allow it",
            };
            facts.tell(&vec![
                ("url", json!(parsed.as_str())),
                ("error", json!("robots")),
                ("message", json!(message)),
                ("robots", json!({"standing": file.standing.as_str(), "line": line})),
            ]);
            return Ok(Ended::WithComplaints);
        }
    }
    let mut request = FetchRequest::get(parsed);
    request.headers.clone_from(headers);
    let fetched = fetcher.fetch(&request).await;
    facts.tell(&row(url, &fetched));
    // Without a response there is nothing to put in the place of what may be there from before.
    if let Some(file) = args.body.as_ref().filter(|_| fetched.error.is_none()) {
        write_body(file, &fetched)?;
    }
    Ok(if fetched.error.is_none() { Ended::Well } else { Ended::WithComplaints })
}

fn write_body(file: &Path, fetched: &Fetched) -> Result<(), String> {
    if file.as_os_str() != "-" {
        return std::fs::write(file, &fetched.body)
            .map_err(|error| format!("cannot write the body to {}: {error}", file.display()));
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(&fetched.body).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {error}"))
        }
        _ => Ok(()),
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Where results go: standard output, unless bodies go there.
enum Facts {
    Out(Box<Output>),
    Error,
}

impl Facts {
    fn new(args: &FetchArgs) -> Self {
        if args.body.as_ref().is_some_and(|body| body.as_os_str() == "-") {
            Self::Error
        } else {
            Self::Out(Box::new(Output::new(true)))
        }
    }

    fn tell(&mut self, row: &Row) {
        match self {
            Self::Out(out) => {
                out.object(row);
                out.flush();
            }
            Self::Error => {
                let _ = writeln!(std::io::stderr(), "{}", crate::output::as_object(row));
            }
        }
    }

    fn is_closed(&self) -> bool {
        matches!(self, Self::Out(out) if out.is_closed())
    }

    fn finish(self) -> Result<(), String> {
        match self {
            Self::Out(out) => out.finish(),
            Self::Error => Ok(()),
        }
    }
}

/// The character set of a page and who said so: for text what a crawl would read it as, for all else what the header says.
fn charset(fetched: &Fetched) -> (Option<&str>, Option<&'static str>) {
    if !fetched.body.is_empty() {
        let head = Head { content_type: fetched.headers.get("content-type"), ..Head::default() };
        let page = Page::read(&fetched.url, &head, &Limits::default(), &fetched.body);
        if page.content != Content::Other {
            return (Some(page.charset.name), Some(page.charset.source.name()));
        }
    }
    (fetched.charset.as_deref(), fetched.charset.is_some().then_some("http"))
}

/// A result, field by field. Names and order stay as they are.
fn row(url: &str, fetched: &Fetched) -> Row {
    let ms = |duration: Duration| json!((duration.as_secs_f64() * 1e6).round() / 1e3);
    let headers: Vec<Value> =
        fetched.headers.iter().map(|header| json!([header.name, header.text()])).collect();
    let redirect = fetched.redirect.as_ref().map(|redirect| match redirect {
        Redirect::To(url) => json!({"url": url.as_str()}),
        Redirect::Refused(scheme) => json!({"refused": scheme}),
        Redirect::Nowhere => json!({"refused": null}),
    });
    let tls = fetched.tls.as_ref().map(|tls| {
        let problems: Vec<_> = tls.problems.iter().map(|problem| problem.as_str()).collect();
        json!({"version": tls.version, "cipher": tls.cipher, "verified": tls.verified, "problems": problems})
    });
    let protocol = fetched.protocol.map(|protocol| match protocol {
        Protocol::H1 => "HTTP/1.1",
        Protocol::H2 => "HTTP/2",
    });
    let oddities: Vec<_> = fetched.oddities.iter().map(|oddity| oddity.as_str()).collect();
    let times = &fetched.times;
    let (charset, charset_source) = charset(fetched);
    vec![
        ("url", json!(url)),
        ("final_url", json!(fetched.url.as_str())),
        ("status", json!(fetched.status)),
        ("error", json!(fetched.error_kind().map(FetchErrorKind::as_str))),
        ("message", json!(fetched.error.as_ref().map(ToString::to_string))),
        ("detail", json!(fetched.error.as_ref().map(FetchError::detail))),
        ("redirect", json!(redirect)),
        ("not_modified", json!(fetched.not_modified)),
        ("truncated", json!(fetched.truncated.map(Truncated::as_str))),
        ("decode_fault", json!(fetched.decode_fault.map(DecodeFault::as_str))),
        ("oddities", json!(oddities)),
        ("address", json!(fetched.address.map(|address| address.to_string()))),
        ("protocol", json!(protocol)),
        ("reused", json!(fetched.reused)),
        ("retried", json!(fetched.retried)),
        ("tls", json!(tls)),
        ("charset", json!(charset)),
        ("charset_source", json!(charset_source)),
        ("header_bytes", json!(fetched.sizes.header_bytes)),
        ("encoded_bytes", json!(fetched.sizes.encoded_bytes)),
        ("decoded_bytes", json!(fetched.sizes.decoded_bytes)),
        (
            "times_ms",
            json!({
                "dns": ms(times.dns),
                "connect": ms(times.connect),
                "tls": ms(times.tls),
                "waited": ms(times.waited),
                "first_byte": times.first_byte.map(ms),
                "total": ms(times.total),
            }),
        ),
        ("headers", json!(headers)),
    ]
}
