//! Names to addresses: overrides, memory, name servers.
//!
//! It says where a name leads and judges nothing: the guard looks at what is really dialled. Search domains are never tried, because
//! a host in a URL is a whole name. Addresses in URLs do not come here.

mod chain;
mod memory;
mod overrides;
mod turns;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError, NoRecords};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};
use tokio::time::timeout;
use trapline_core::plain_name;

use self::chain::{Chain, follow};
use self::memory::{Memory, Remembered};
pub use self::overrides::{Override, OverrideError};
use self::turns::Turns;
use crate::deadline::after;
use crate::dial_error::{DialError, DialErrorKind};

/// How names are looked up.
#[derive(Debug, Clone)]
pub struct DnsOptions {
    /// Name servers to ask, over UDP and, for long answers, TCP. They are yours, so the guard does not judge them.
    /// Empty: those of the system, and its hosts file. Defaults to empty.
    pub name_servers: Vec<SocketAddr>,
    /// Addresses by your word instead of the name servers', the most exact one first. They do not pass by the guard:
    /// `*=127.0.0.1:8080` also needs `127.0.0.0/8` in `allow_networks`. Defaults to none.
    pub overrides: Vec<Override>,
    /// Which kinds of addresses are asked for. Defaults to both.
    pub families: Families,
    /// How long a name server has to answer one attempt. Defaults to 3 s.
    pub attempt_timeout: Duration,
    /// How often a question is asked before it counts as failed. Defaults to 2.
    pub attempts_max: usize,
    /// How long a name may take, all attempts and aliases together. Defaults to 10 s.
    pub timeout: Duration,
    /// How long addresses of one kind wait for those of the other. Defaults to 300 ms.
    pub second_family_wait: Duration,
    /// How many names are looked up at once, a quarter of them of one registrable domain; more wait. Defaults to 64.
    pub lookups_max: usize,
    /// How many names are remembered. Defaults to 65,536.
    pub names_max: u64,
    /// How many addresses of a kind are remembered for a name. Defaults to 8.
    pub addresses_max: usize,
    /// Over how many aliases (CNAME) a name may lead. Defaults to 8; no more than 8 are followed.
    pub chain_max: usize,
    /// How long addresses are remembered at least, whatever the name servers say. Defaults to 30 s.
    pub ttl_min: Duration,
    /// How long addresses are remembered at most. Defaults to 1 h.
    pub ttl_max: Duration,
    /// How long it is remembered at least that a name has no address. Defaults to 60 s.
    pub negative_ttl_min: Duration,
    /// How long it is remembered at most that a name has no address. Defaults to 1 h.
    pub negative_ttl_max: Duration,
    /// How long it is remembered that name servers failed or were silent. Defaults to 30 s.
    pub failure_ttl: Duration,
}

/// Which kinds of addresses are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Families {
    /// IPv6 and IPv4.
    #[default]
    Both,
    /// Only IPv4.
    V4,
    /// Only IPv6.
    V6,
}

impl Default for DnsOptions {
    fn default() -> Self {
        Self {
            name_servers: Vec::new(),
            overrides: Vec::new(),
            families: Families::default(),
            attempt_timeout: Duration::from_secs(3),
            attempts_max: 2,
            timeout: Duration::from_secs(10),
            second_family_wait: Duration::from_millis(300),
            lookups_max: 64,
            names_max: 65_536,
            addresses_max: 8,
            chain_max: 8,
            ttl_min: Duration::from_secs(30),
            ttl_max: Duration::from_secs(3600),
            negative_ttl_min: Duration::from_secs(60),
            negative_ttl_max: Duration::from_secs(3600),
            failure_ttl: Duration::from_secs(30),
        }
    }
}

type Answer = Result<Arc<[IpAddr]>, DialError>;

/// Says where names lead.
pub(crate) struct Dns {
    options: DnsOptions,
    /// An error if the system's configuration cannot be read; overrides work all the same.
    resolver: Result<TokioResolver, String>,
    memory: Memory<Answer>,
    turns: Turns,
}

/// What the name servers said of one kind of address.
enum Heard {
    Addresses(Vec<IpAddr>, Duration),
    /// There is none, and for how long that holds.
    None(DialErrorKind, Option<Duration>),
    Failure(DialErrorKind, String),
}

impl Dns {
    pub(crate) fn new(mut options: DnsOptions) -> Self {
        options.overrides.sort_by_key(|entry| std::cmp::Reverse(entry.exactness()));
        let resolver = resolver(&options)
            .map_err(|error| format!("the system's name servers are unknown ({error}); set name_servers"));
        let memory = Memory::new(options.names_max);
        let turns = Turns::new(options.lookups_max);
        Self { options, resolver, memory, turns }
    }

    /// Of how many names it is remembered where they lead, about.
    pub(crate) fn remembered(&self) -> u64 {
        self.memory.len()
    }

    /// Where a host name and port lead, in the order in which the addresses should be tried.
    pub(crate) async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        if let Some(address) = self.options.overrides.iter().find_map(|entry| entry.answer(host, port)) {
            return Ok(vec![address]);
        }
        let name = plain_name(host).to_ascii_lowercase();
        let addresses = self.memory.get_or_ask(&name, || self.ask(&name)).await?;
        Ok(addresses.iter().map(|address| SocketAddr::new(*address, port)).collect())
    }

    /// Asks the name servers, and says how long the answer is to be remembered.
    async fn ask(&self, name: &str) -> Remembered<Answer> {
        let _turn = self.turns.take(name).await;
        let options = &self.options;
        let heard = match timeout(options.timeout, self.ask_both(name)).await {
            Ok(heard) => heard,
            Err(_) => Heard::Failure(
                DialErrorKind::DnsTimeout,
                format!("no answer for {name} within {:?}", options.timeout),
            ),
        };
        let (answer, ttl) = match heard {
            Heard::Addresses(addresses, ttl) => {
                (Ok(addresses.into()), ttl.clamp_to(options.ttl_min, options.ttl_max))
            }
            Heard::None(kind, ttl) => {
                let ttl =
                    ttl.unwrap_or_default().clamp_to(options.negative_ttl_min, options.negative_ttl_max);
                (Err(DialError::new(kind, format!("{name}: {}", kind.message()))), ttl)
            }
            Heard::Failure(kind, detail) => (Err(DialError::new(kind, detail)), options.failure_ttl),
        };
        Remembered { answer, until: after(ttl) }
    }

    /// Asks for both kinds at once. Who has an address does not wait long for the other kind.
    async fn ask_both(&self, name: &str) -> Heard {
        match self.options.families {
            Families::V4 => return self.ask_for(name, RecordType::A).await,
            Families::V6 => return self.ask_for(name, RecordType::AAAA).await,
            Families::Both => {}
        }
        let v6 = std::pin::pin!(self.ask_for(name, RecordType::AAAA));
        let v4 = std::pin::pin!(self.ask_for(name, RecordType::A));
        let (first, other) = match select(v6, v4).await {
            Either::Left((first, v4)) => (first, Either::Left(v4)),
            Either::Right((first, v6)) => (first, Either::Right(v6)),
        };
        let second = if matches!(first, Heard::Addresses(..)) {
            timeout(self.options.second_family_wait, other).await.ok()
        } else {
            Some(other.await)
        };
        match second {
            Some(second) => both(first, second),
            // The other kind is asked for again soon.
            None => match first {
                Heard::Addresses(addresses, _) => Heard::Addresses(addresses, Duration::ZERO),
                other => other,
            },
        }
    }

    /// Asks for one kind of address.
    async fn ask_for(&self, name: &str, kind: RecordType) -> Heard {
        let resolver = match &self.resolver {
            Ok(resolver) => resolver,
            Err(trouble) => return Heard::Failure(DialErrorKind::DnsFailed, trouble.clone()),
        };
        let Some(question) = whole_name(name) else {
            // Longer than names can be, or with an empty label: nobody can have registered it.
            return Heard::None(DialErrorKind::DnsNoSuchName, Some(self.options.negative_ttl_max));
        };
        let lookup = match resolver.lookup(question.clone(), kind).await {
            Ok(lookup) => lookup,
            Err(error) => return self.heard_error(name, &error),
        };
        let (links_max, addresses_max) = (self.options.chain_max, self.options.addresses_max);
        match follow(&question, lookup.answers(), links_max, addresses_max) {
            Chain::Addresses(addresses, ttl) => {
                Heard::Addresses(addresses, Duration::from_secs(u64::from(ttl)))
            }
            Chain::Nothing => Heard::None(DialErrorKind::DnsNoAddress, None),
            Chain::TooLong => Heard::None(DialErrorKind::DnsChain, None),
        }
    }

    fn heard_error(&self, name: &str, error: &NetError) -> Heard {
        match error {
            NetError::Dns(DnsError::NoRecordsFound(NoRecords { response_code, negative_ttl, .. })) => {
                let kind = match *response_code {
                    ResponseCode::NXDomain => DialErrorKind::DnsNoSuchName,
                    _ => DialErrorKind::DnsNoAddress,
                };
                Heard::None(kind, negative_ttl.map(|seconds| Duration::from_secs(u64::from(seconds))))
            }
            NetError::Timeout => Heard::Failure(
                DialErrorKind::DnsTimeout,
                format!("name servers did not answer for {name} within {:?}", self.options.attempt_timeout),
            ),
            error => Heard::Failure(DialErrorKind::DnsFailed, format!("cannot look up {name}: {error}")),
        }
    }
}

/// Two kinds of answers as one: addresses win, IPv6 and IPv4 in turns; then failures, because they may pass.
fn both(first: Heard, second: Heard) -> Heard {
    use Heard::{Addresses, Failure, None};
    match (first, second) {
        (Addresses(first, first_ttl), Addresses(second, second_ttl)) => {
            let (v6, v4) = if first[0].is_ipv6() { (first, second) } else { (second, first) };
            Addresses(in_turns(v6, v4), first_ttl.min(second_ttl))
        }
        (Addresses(addresses, _), Failure(..)) | (Failure(..), Addresses(addresses, _)) => {
            Addresses(addresses, Duration::ZERO)
        }
        (Addresses(addresses, ttl), None(..)) | (None(..), Addresses(addresses, ttl)) => {
            Addresses(addresses, ttl)
        }
        (failure @ Failure(..), _) | (_, failure @ Failure(..)) => failure,
        (None(first, first_ttl), None(second, second_ttl)) => {
            // A chain that is too long says more than an answer without records.
            let kind = if second == DialErrorKind::DnsChain { second } else { first };
            None(kind, first_ttl.min(second_ttl))
        }
    }
}

/// One of each in turns, beginning with the first kind, so that one broken kind costs one attempt only.
fn in_turns(first: Vec<IpAddr>, second: Vec<IpAddr>) -> Vec<IpAddr> {
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut all = Vec::with_capacity(first.len() + second.len());
    loop {
        let pair = [first.next(), second.next()];
        if pair == [None, None] {
            return all;
        }
        all.extend(pair.into_iter().flatten());
    }
}

/// The name for questions: from the root, label by label, without any reading of escapes.
fn whole_name(name: &str) -> Option<Name> {
    if name.split('.').any(str::is_empty) {
        return None;
    }
    let mut name = Name::from_labels(name.split('.').map(str::as_bytes)).ok()?;
    name.set_fqdn(true);
    Some(name)
}

fn resolver(options: &DnsOptions) -> Result<TokioResolver, NetError> {
    let mut builder = if options.name_servers.is_empty() {
        TokioResolver::builder_tokio()?
    } else {
        let servers = options.name_servers.iter().map(|server| {
            let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
            for connection in &mut connections {
                connection.port = server.port();
            }
            NameServerConfig::new(server.ip(), true, connections)
        });
        let config = ResolverConfig::from_parts(None, Vec::new(), servers.collect());
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        builder.options_mut().use_hosts_file = ResolveHosts::Never;
        builder
    };
    let settings: &mut ResolverOpts = builder.options_mut();
    // What is remembered, and for how long, is decided here and not there.
    settings.cache_size = 0;
    settings.timeout = options.attempt_timeout;
    settings.attempts = options.attempts_max.max(1) - 1;
    // Aliases are needed to tell which addresses belong to the name.
    settings.preserve_intermediates = true;
    settings.max_active_requests = options.lookups_max.clamp(1, 1024) * 2;
    builder.build()
}

/// `clamp` that does not panic when an operator sets a minimum above the maximum: the minimum wins.
trait ClampTo {
    fn clamp_to(self, least: Duration, most: Duration) -> Duration;
}

impl ClampTo for Duration {
    fn clamp_to(self, least: Duration, most: Duration) -> Duration {
        self.min(most).max(least)
    }
}
