//! `trapline serve`: a frontier for callers in any language, until it is told to end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use trapline_server::{Clock, Limits, Network, Options, Server, TlsFiles, Tokens, listen_address};

use crate::config::{ConfigFlags, Flags};
use crate::ended::{self, Ended, complain};
use crate::frontier_command::address::DEFAULT_STORE;
use crate::output::Output;
use crate::{log, moment, size, store_url};

/// Tokens, where they are not in a file.
const TOKENS_VARIABLE: &str = "TRAPLINE_TOKENS";

/// Serve a frontier to callers in any language
///
/// Opens a store and serves it: over gRPC, with health and reflection; over HTTP, with /healthz, /readyz and /metrics for Prometheus.
/// Other commands can use the store meanwhile. Ends in good order on Ctrl-C or SIGTERM: calls get a few seconds to end, everything
/// answered is then kept, and leases stay valid.
///
/// It listens at this machine's loopback. Any other address needs a certificate (--tls-cert, --tls-key), and tokens (--tokens) or an
/// authority of the callers' certificates (--tls-client-ca). For callers that can do neither there is --allow-plaintext.
///
/// Tokens are in a file, one a line: `full TOKEN` may do everything, `read TOKEN` may look. Or in the variable TRAPLINE_TOKENS, in the
/// same way. Callers send `authorization: Bearer TOKEN`. Where there are tokens, everything but /healthz and gRPC's health needs one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline serve
  trapline serve --store disk:crawl --grpc-listen 127.0.0.1:7071 --http-listen 127.0.0.1:8080
  trapline serve --store disk:crawl --grpc-listen 0.0.0.0:7071 --http-listen 0.0.0.0:8080 \\
      --tls-cert cert.pem --tls-key key.pem --tokens tokens.txt
  trapline serve --grpc-listen 10.0.0.5:7071 --allow-plaintext 10.0.0.0/24

  curl http://127.0.0.1:8080/metrics
  curl --cacert ca.pem -H \"Authorization: Bearer $TOKEN\" https://frontier.example:8080/metrics")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    config: ConfigFlags,
    /// The store: disk:PATH, postgres://USER@HOST/DATABASE, or memory: to try things out. Made if it is not there
    #[arg(long, value_name = "URL", default_value = DEFAULT_STORE)]
    store: String,
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
    #[arg(long, value_name = "BYTES", default_value = "4MiB", value_parser = size::parse)]
    max_message: u64,
    /// So many connections at a time, of each port; what comes beyond is closed
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().connections)]
    max_connections: usize,
    /// Print for programs: one JSON object
    #[arg(long)]
    json: bool,
}

/// Serves.
pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    ended::exit("serve", serve(args))
}

fn serve(args: &ServeArgs) -> Result<Ended, String> {
    let loaded = args.config.load(Flags::default()).map_err(|refused| refused.to_string())?;
    log::init(&loaded.config.log)?;
    let options = options(args)?;
    let store = store_url::share_and_follow(&args.store)?;
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
    out.card(&vec![
        ("store", json!(store_url::shown(&args.store))),
        ("process", json!(std::process::id())),
        ("grpc", json!(format!("{scheme}://{}", server.grpc_address()))),
        ("http", json!(format!("{scheme}://{}", server.http_address()))),
    ]);
    out.say("Serving; Ctrl-C ends it.");
    out.flush();
    let (told, shutdown) = tokio::sync::oneshot::channel();
    let listening = std::thread::spawn(move || {
        signals.forever().next();
        let _ = told.send(());
    });
    let ran = runtime.block_on(server.run(async {
        let _ = shutdown.await;
    }));
    handle.close();
    let _ = listening.join();
    ran.map_err(|error| error.to_string())?;
    out.finish().map(|()| Ended::Well)
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
    })
}
