//! What the service counts: verbs, calls and connections. Labels come from fixed lists, never from what callers send, so that there
//! are as many lines after ten thousand hosts as after one.
//!
//! What the store itself can tell is in `census.rs`, what a crawl does in `crawl_metrics.rs`.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tonic::Code;
use trapline_frontier::{Admission, Answer, ErrorKind};

use crate::exposition::Exposition;
use crate::histogram::{Histogram, SECONDS};
use crate::methods::METHODS;

/// What a store is asked to do.
#[derive(Clone, Copy)]
pub(crate) enum Verb {
    Admit,
    Claim,
    Settle,
    Steer,
    Scan,
    Stats,
    Now,
    Ear,
    Flush,
}

const VERBS: [&str; 9] = ["admit", "claim", "settle", "steer", "scan", "stats", "now", "ear", "flush"];

const RESULTS: [&str; 7] = ["ok", "invalid", "not_found", "unsupported", "unavailable", "full", "corrupt"];

const ADMISSIONS: [&str; 5] = ["added", "known", "rescored", "restated", "refused"];

/// In the order of [`Answer`].
const ANSWERS: [&str; 7] = ["done", "retry", "released", "dead", "disregarded", "renewed", "stale"];

/// In the order of [`Code`].
const CODES: [&str; 17] = [
    "ok",
    "cancelled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
];

/// A port of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortName {
    Grpc,
    Http,
}

const PORTS: [&str; 2] = ["grpc", "http"];

/// Why a connection was closed before anything was answered on it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turned {
    /// There are as many as there may be.
    Full,
    /// Its peer is none that is served here.
    Stranger,
    /// No TLS where there must be.
    Plaintext,
    /// TLS failed, or took too long.
    Handshake,
}

const TURNED: [&str; 4] = ["full", "stranger", "plaintext", "handshake"];

#[derive(Default)]
struct PortCounts {
    open: AtomicI64,
    accepted: AtomicU64,
    turned: [AtomicU64; TURNED.len()],
}

/// All counts of a service.
#[derive(Default)]
pub(crate) struct Metrics {
    results: [[AtomicU64; RESULTS.len()]; VERBS.len()],
    seconds: VerbSeconds,
    admissions: [AtomicU64; ADMISSIONS.len()],
    settlements: [AtomicU64; ANSWERS.len()],
    leases: AtomicU64,
    /// One more than there are methods: those that there are not.
    calls: Calls,
    ports: [PortCounts; PORTS.len()],
}

struct VerbSeconds([Histogram; VERBS.len()]);

impl Default for VerbSeconds {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Histogram::new(SECONDS, 1e6)))
    }
}

struct Calls(Vec<[AtomicU64; CODES.len()]>);

impl Default for Calls {
    fn default() -> Self {
        Self((0..=METHODS.len()).map(|_| Default::default()).collect())
    }
}

impl Metrics {
    /// A verb was done, or was not.
    pub(crate) fn verb(&self, verb: Verb, took: Duration, error: Option<ErrorKind>) {
        let result = match error {
            None => 0,
            Some(ErrorKind::Invalid) => 1,
            Some(ErrorKind::NotFound) => 2,
            Some(ErrorKind::Unsupported) => 3,
            Some(ErrorKind::Unavailable) => 4,
            Some(ErrorKind::Full) => 5,
            Some(ErrorKind::Corrupt) => 6,
        };
        self.results[verb as usize][result].fetch_add(1, Relaxed);
        self.seconds.0[verb as usize].add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn admissions<'a>(&self, answers: impl IntoIterator<Item = &'a Admission>) {
        for answer in answers {
            let place = match answer {
                Admission::Added => 0,
                Admission::Known => 1,
                Admission::Rescored => 2,
                Admission::Restated => 3,
                Admission::Refused(_) => 4,
            };
            self.admissions[place].fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn settlement(&self, answer: Answer) {
        self.settlements[answer as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn leases(&self, granted: usize) {
        self.leases.fetch_add(granted as u64, Relaxed);
    }

    /// A call of the method at this place of the list has ended.
    pub(crate) fn call(&self, method: usize, code: Code) {
        self.calls.0[method][code as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn opened(&self, port: PortName) {
        self.ports[port as usize].accepted.fetch_add(1, Relaxed);
        self.ports[port as usize].open.fetch_add(1, Relaxed);
    }

    pub(crate) fn closed(&self, port: PortName) {
        self.ports[port as usize].open.fetch_sub(1, Relaxed);
    }

    pub(crate) fn turned(&self, port: PortName, why: Turned) {
        self.ports[port as usize].turned[why as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn write(&self, out: &mut Exposition) {
        out.family("trapline_store_calls_total", "counter", "Calls of the store's verbs, by result.");
        for (verb, results) in VERBS.iter().zip(&self.results) {
            for (result, count) in RESULTS.iter().zip(results) {
                out.sample("", &[("verb", verb), ("result", result)], count.load(Relaxed));
            }
        }
        out.family("trapline_store_seconds", "histogram", "How long the store's verbs took.");
        for (verb, seconds) in VERBS.iter().zip(&self.seconds.0) {
            seconds.write(out, &[("verb", verb)]);
        }
        out.family("trapline_admissions_total", "counter", "URLs that were offered, by what became of them.");
        for (answer, count) in ADMISSIONS.iter().zip(&self.admissions) {
            out.sample("", &[("answer", answer)], count.load(Relaxed));
        }
        out.family(
            "trapline_settlements_total",
            "counter",
            "Leases that were settled, by what became of them.",
        );
        for (answer, count) in ANSWERS.iter().zip(&self.settlements) {
            out.sample("", &[("answer", answer)], count.load(Relaxed));
        }
        out.family("trapline_leases_granted_total", "counter", "Leases that were granted by this process.")
            .value(self.leases.load(Relaxed));
        out.family("trapline_grpc_calls_total", "counter", "Calls that have ended, by method and code.");
        let paths = METHODS.iter().map(|method| method.path).chain(["/other/other"]);
        for (path, codes) in paths.zip(&self.calls.0) {
            let (service, method) = path[1..].split_once('/').unwrap_or((path, ""));
            for (code, count) in CODES.iter().zip(codes) {
                let count = count.load(Relaxed);
                // Most methods never end with most codes.
                if count > 0 || *code == "ok" {
                    out.sample("", &[("service", service), ("method", method), ("code", code)], count);
                }
            }
        }
        out.family("trapline_connections", "gauge", "Connections that are open.");
        for (port, counts) in PORTS.iter().zip(&self.ports) {
            out.sample("", &[("port", port)], counts.open.load(Relaxed));
        }
        out.family("trapline_connections_accepted_total", "counter", "Connections that were accepted.");
        for (port, counts) in PORTS.iter().zip(&self.ports) {
            out.sample("", &[("port", port)], counts.accepted.load(Relaxed));
        }
        out.family(
            "trapline_connections_turned_away_total",
            "counter",
            "Connections that were closed unanswered, by reason.",
        );
        for (port, counts) in PORTS.iter().zip(&self.ports) {
            for (why, count) in TURNED.iter().zip(&counts.turned) {
                out.sample("", &[("port", port), ("reason", why)], count.load(Relaxed));
            }
        }
    }
}
