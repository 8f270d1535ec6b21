//! The demo for real: the generated web is served on this machine, and `trapline crawl` crawls it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use trapline_sim::{Web, WebSize};

use super::report::{clock, thousands};
use super::web_server::WebServer;
use crate::crawl_command;

/// What is to be shown.
pub(super) struct RealDemo {
    pub(super) seed: u64,
    pub(super) size: WebSize,
    pub(super) workers: u32,
    pub(super) delay: String,
    /// Where the results go; None for a folder that is removed afterwards.
    pub(super) out: Option<PathBuf>,
}

/// A folder that is gone afterwards.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Serves the web and crawls it.
pub(super) fn run(demo: &RealDemo) -> Result<ExitCode, String> {
    let begun = Instant::now();
    let web = Arc::new(Web::generate(demo.seed, demo.size));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let server = runtime
        .block_on(WebServer::start(Arc::clone(&web)))
        .map_err(|error| format!("cannot serve the web on this machine: {error}"))?;
    let temporary = demo.out.is_none().then(|| {
        Temporary(std::env::temp_dir().join(format!(
            "trapline-demo-{}-{}",
            std::process::id(),
            server.address.port()
        )))
    });
    let folder: &Path = match (&demo.out, &temporary) {
        (Some(out), _) => out,
        (None, Some(temporary)) => &temporary.0,
        (None, None) => Path::new("trapline-demo"),
    };
    eprintln!(
        "Serving a generated web of {} hosts and {} pages on {}, and crawling it into {}.",
        thousands(demo.size.hosts.into()),
        thousands(demo.size.pages.into()),
        server.address,
        folder.display()
    );
    let seeds: Vec<String> = web.seeds().map(|url| url.replacen("https://", "http://", 1)).collect();
    let settings = [
        format!("pace.delay={}", demo.delay),
        format!("crawl.concurrency={}", demo.workers),
        format!("fetch.resolve=*={}", server.address),
        "fetch.allow_networks=127.0.0.0/8".to_owned(),
        "fetch.contact=demo@localhost".to_owned(),
        "scope.kind=any".to_owned(),
        "sitemaps.follow=false".to_owned(),
        "retry.wait=500ms".to_owned(),
        "output.progress=5s".to_owned(),
    ];
    let code = crawl_command::crawl_into(folder, seeds, &settings)?;
    println!(
        "\nServed {} requests in {}.{}",
        thousands(server.requests.load(Ordering::Relaxed)),
        clock(begun.elapsed()),
        match &demo.out {
            Some(out) => format!(" What was found is in {}: look at pages.jsonl.", out.display()),
            None => " With --out DIR the results stay: a line a page in pages.jsonl.".to_owned(),
        }
    );
    Ok(code)
}
