//! `trapline serve`: a frontier for callers in any language, until it is told to end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use trapline_server::{Clock, Crawler, Limits, Network, Options, Server, TlsFiles, Tokens, listen_address};

use crate::config::{ConfigFlags, Flags};
use crate::crawl_command::{self, ServedCrawl};
use crate::ended::{self, Ended, complain};
use crate::frontier_command::address::DEFAULT_STORE;
use crate::output::Output;
use crate::store_url::Shared;
use crate::{log, moment, size, store_url};

/// Tokens, where they are not in a file.
const TOKENS_VARIABLE: &str = "TRAPLINE_TOKENS";

/// How long what a crawl has in flight may take to land when the service ends.
const LANDING: Duration = Duration::from_secs(5);

/// Serve a frontier to callers in any language
///
/// Opens a store and serves it: over gRPC, with health and reflection; over HTTP, with /healthz, /readyz and /metrics for Prometheus.
/// Other commands can use the store meanwhile. Ends in good order on Ctrl-C or SIGTERM: calls get a few seconds to end, everything
/// answered is then kept, and leases stay valid.
///
/// With --crawl it crawls too, as the configuration says: `trapline.v1.Crawler` takes URLs, streams results, pauses, and sets policies.
/// Results are also written into a folder, as `trapline crawl` does; `trapline status`, `report` and the others work on it.
///
/// It listens at this machine's loopback. Any other address needs a certificate (--tls-cert, --tls-key), and tokens (--tokens) or an
/// authority of the callers' certificates (--tls-client-ca). For callers that can do neither there is --allow-plaintext.
///
/// Tokens are in a file, one a line: `full TOKEN` may do everything, `read TOKEN` may look. Or in the variable TRAPLINE_TOKENS, in the
/// same way. Callers send `authorization: Bearer TOKEN`. Where there are tokens, everything but /healthz and gRPC's health needs one.
///
/// Other commands, here and elsewhere, name what is served as their store: grpc://HOST:PORT, or grpcs:// with TLS. Their token is in
/// the variable TRAPLINE_TOKEN.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline serve
  trapline serve --store disk:crawl --grpc-listen 127.0.0.1:7071 --http-listen 127.0.0.1:8080
  trapline serve --store disk:crawl --grpc-listen 0.0.0.0:7071 --http-listen 0.0.0.0:8080 \\
      --tls-cert cert.pem --tls-key key.pem --tokens tokens.txt
  trapline serve --grpc-listen 10.0.0.5:7071 --allow-plaintext 10.0.0.0/24
  trapline serve --crawl --out news --config crawl.toml

  trapline crawl https://example.org/ --store grpc://127.0.0.1:7071

  curl http://127.0.0.1:8080/metrics
  curl --cacert ca.pem -H \"Authorization: Bearer $TOKEN\" https://frontier.example:8080/metrics")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    config: ConfigFlags,
    /// The store: disk:PATH, postgres://USER@HOST/DATABASE, grpc://HOST:PORT of another service, or memory: to try things out. Made if
    /// it is not there [default: that of the crawl with --crawl, otherwise disk:trapline-data]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Crawl too, as the configuration says, and serve the crawl. Without URLs it waits for some
    #[arg(long)]
    crawl: bool,
    /// With --crawl: the folder for results [default: trapline-crawl]
    #[arg(long, short, value_name = "DIR", requires = "crawl")]
    out: Option<PathBuf>,
    /// Where gRPC is spoken
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7071", value_parser = listen_address)]
    grpc_listen: SocketAddr,
    /// Where health and metrics are
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080", value_parser = listen_address)]
    http_listen: SocketAddr,
    /// A file of tokens, one a line: `full TOKEN` or `read TOKEN`
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// The service's certificate, and those between it and its authority, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The authority of callers' certificates, as PEM: who has none is not served
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    /// Serve callers in this network without TLS and without a token. Can be given several times
    #[arg(long, value_name = "CIDR")]
    allow_plaintext: Vec<Network>,
    /// The longest message that is sent or received
    #[arg(long, value_name = "BYTES", default_value = "4MiB", value_parser = message_bytes)]
    max_message: u64,
    /// So many connections at a time, of each port; what comes beyond is closed
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().connections, value_parser = connections)]
    max_connections: usize,
    /// Print for programs: one JSON object
    #[arg(long)]
    json: bool,
}

/// Shorter ones would not let much in, and gRPC counts no longer ones.
fn message_bytes(text: &str) -> Result<u64, String> {
    let bytes = size::parse(text)?;
    if (1 << 10..1 << 31).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("it has to be from 1KiB to less than 2GiB".to_owned())
    }
}

/// Nobody could connect to a service with none, and what counts them has an end.
fn connections(text: &str) -> Result<usize, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("it has to be 1 or more: with 0 nobody could connect".to_owned()),
        Ok(count) => Ok(count as usize),
        Err(_) => Err(format!("it has to be a number from 1 to {}", u32::MAX)),
    }
}

/// Serves.
pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    ended::exit("serve", serve(args))
}

fn serve(args: &ServeArgs) -> Result<Ended, String> {
    let flags = Flags::default()
        .text("--out", "output.dir", args.out.as_ref().map(|out| out.display()))
        .text("--store", "crawl.store", args.store.as_ref());
    let from = args.config.clone();
    let load = move |more: &Flags| {
        let loaded = from.load(flags.clone().and(more.clone()));
        loaded.map(|loaded| loaded.config).map_err(|refused| refused.to_string())
    };
    let config = load(&Flags::default())?;
    log::init(&config.log)?;
    let mut options = options(args)?;
    let store_url = match &config.crawl.store {
        Some(store) => store.0.clone(),
        None if args.crawl => crawl_command::store_url(&config.output.dir),
        None => DEFAULT_STORE.to_owned(),
    };
    if args.crawl {
        ended::crawls_as("serve");
    }
    let crawl_name = config.crawl.name.clone();
    let crawl = args.crawl.then(|| ServedCrawl::prepare(config, Arc::new(load))).transpose()?;
    let crawler = crawl.is_some().then(|| Arc::new(Crawler::default()));
    options.crawler.clone_from(&crawler);
    let Shared { store, is_owner } = store_url::take_and_follow(&store_url)?;
    // From here on time only goes forward, whatever becomes of the machine's clock.
    moment::follow(moment::now());
    // Only now: while the store is being opened, a signal may end the process as usual.
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| format!("cannot listen to signals: {error}; try again"))?;
    let handle = signals.handle();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    let has_tls = options.tls.is_some();
    let server = runtime.block_on(Server::bind(options, store, Clock::new(moment::now)))?;
    for warning in server.warnings() {
        complain(&format!("WARNING: {warning}"));
    }
    let scheme = if has_tls { "https" } else { "http" };
    let mut out = Output::new(args.json);
    let mut card = vec![
        ("store", json!(store_url::shown(&store_url))),
        ("process", json!(std::process::id())),
        ("grpc", json!(format!("{scheme}://{}", server.grpc_address()))),
        ("http", json!(format!("{scheme}://{}", server.http_address()))),
    ];
    if let Some(crawl) = &crawl {
        card.extend([("crawl", json!(crawl_name)), ("folder", json!(crawl.folder().display().to_string()))]);
    }
    out.card(&card);
    out.say("Serving; Ctrl-C ends it.");
    out.flush();
    let (told, mut hurry) = tokio::sync::mpsc::unbounded_channel();
    let listening = std::thread::spawn(move || {
        for _ in signals.forever() {
            let _ = told.send(());
        }
    });
    let ran = runtime.block_on(async {
        let shared = Shared { store: server.store(), is_owner };
        let in_memory = store_url::is_memory(&store_url);
        // Dropped when the crawl is over, and when it need not begin any more.
        let (is_crawling, over) = oneshot::channel::<()>();
        let (is_wanted, unwanted) = oneshot::channel::<()>();
        let crawling = async {
            if let Some((crawl, crawler)) = crawl.zip(crawler.clone()) {
                tokio::select! {
                    () = crawl.run(shared, in_memory, crawler) => {}
                    _ = unwanted => {}
                }
            }
            drop(is_crawling);
        };
        let ending = async {
            let _ = hurry.recv().await;
            if let Some(crawler) = &crawler {
                land(crawler, over, is_wanted, &mut hurry).await;
            }
        };
        tokio::join!(crawling, server.run(ending)).1
    });
    handle.close();
    let _ = listening.join();
    ran.map_err(|error| error.to_string())?;
    out.finish().map(|()| Ended::Well)
}

/// Stops a crawl: what is in flight has a while to land, then it goes back to its place; at once if somebody is in a hurry.
async fn land(
    crawler: &Crawler,
    mut over: oneshot::Receiver<()>,
    is_wanted: oneshot::Sender<()>,
    hurry: &mut UnboundedReceiver<()>,
) {
    crawler.stops();
    let landed = match crawler.handle() {
        Some(handle) => {
            handle.stop().await;
            let landed = tokio::select! {
                _ = &mut over => true,
                () = tokio::time::sleep(LANDING) => false,
                _ = hurry.recv() => false,
            };
            if !landed {
                handle.abort().await;
            }
            landed
        }
        None => {
            // It has not begun yet.
            drop(is_wanted);
            false
        }
    };
    if !landed {
        let _ = over.await;
    }
    // Whoever listens to results has heard the last one.
    crawler.ended("it was stopped".to_owned());
}

fn options(args: &ServeArgs) -> Result<Options, String> {
    let mut tokens = Tokens::default();
    if let Some(path) = &args.tokens {
        let (read, warning) = Tokens::read(path)?;
        if let Some(warning) = warning {
            complain(&format!("WARNING: {warning}"));
        }
        tokens = read;
    }
    if let Some(text) = std::env::var_os(TOKENS_VARIABLE) {
        let text = text.to_str().ok_or_else(|| format!("{TOKENS_VARIABLE} is no text"))?;
        tokens = tokens.and(Tokens::parse(TOKENS_VARIABLE, text)?);
    }
    let tls = args.tls_cert.clone().zip(args.tls_key.clone());
    let message_bytes =
        usize::try_from(args.max_message).map_err(|error| format!("--max-message: {error}"))?;
    Ok(Options {
        grpc: args.grpc_listen,
        http: args.http_listen,
        tokens,
        tls: tls.map(|(cert, key)| TlsFiles { cert, key, client_ca: args.tls_client_ca.clone() }),
        allow_plaintext: args.allow_plaintext.clone(),
        limits: Limits { message_bytes, connections: args.max_connections, ..Limits::default() },
        crawler: None,
    })
}
