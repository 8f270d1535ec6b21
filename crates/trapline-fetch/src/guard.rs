//! The address guard: whether an address may be dialled.
//!
//! It judges a `SocketAddr`, the very one that is given to `connect`, and nothing else: no names, no URLs, no
//! answers of name servers. So it does not matter how an address was come by. It opens no socket itself.

mod carried;
mod network;
mod ports;
mod ranges;

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

pub use carried::{Carried, carried};
pub use network::{Network, NetworkError};
pub use ports::{dangerous_port, dangerous_ports};
pub use ranges::{GLOBAL_UNICAST_V6, SPECIAL_V4, SPECIAL_V6, SpecialRange, special_range};

/// What the operator opens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardOptions {
    /// Networks that may be dialled although they are special: `10.0.0.0/8` to crawl an intranet, `127.0.0.0/8`
    /// for a server on this machine. An IPv6 address that carries an IPv4 address needs both to be open.
    /// Defaults to none.
    pub allow_networks: Vec<Network>,
    /// Ports that may be dialled although something else than a web server usually listens there.
    /// Defaults to none.
    pub allow_ports: BTreeSet<u16>,
    /// Prefixes with which this network translates IPv6 to IPv4 (NAT64, RFC 6052; 32, 40, 48, 56, 64 or 96 bits).
    /// Their addresses may be dialled if the IPv4 address inside may. Name yours, if your network has one: the guard
    /// cannot tell a translator's addresses from others. `64:ff9b::/96` is the usual one.
    /// Defaults to none.
    pub nat64_prefixes: Vec<Network>,
}

/// Judges addresses.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    options: GuardOptions,
}

/// Why an address may not be dialled. For operators: it names the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The address.
    pub address: SocketAddr,
    /// What is wrong with it.
    pub reason: RefusalReason,
}

/// What is wrong with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// It lies in a range that is not globally routable.
    Special(&'static SpecialRange),
    /// It carries an IPv4 address that lies in such a range.
    Carries(Carried, &'static SpecialRange),
    /// At its port listens something else than a web server.
    Port(&'static str),
}

impl RefusalReason {
    /// Whether the port is what is wrong, and not the address.
    pub fn is_port(&self) -> bool {
        matches!(self, Self::Port(_))
    }
}

impl Guard {
    /// A guard that lets through what is globally routable, and what the operator opened.
    ///
    /// A translation prefix of a length that RFC 6052 does not know is an error.
    pub fn new(options: GuardOptions) -> Result<Self, GuardError> {
        for prefix in &options.nat64_prefixes {
            if !prefix.first().is_ipv6() || !carried::NAT64_PREFIXES.contains(&prefix.prefix()) {
                return Err(GuardError { prefix: *prefix });
            }
        }
        Ok(Self { options })
    }

    /// What the operator opened.
    pub fn options(&self) -> &GuardOptions {
        &self.options
    }

    /// Whether this address may be dialled.
    pub fn check(&self, address: SocketAddr) -> Result<(), Refusal> {
        let refuse = |reason| Err(Refusal { address, reason });
        if let Some(service) = dangerous_port(address.port())
            && !self.options.allow_ports.contains(&address.port())
        {
            return refuse(RefusalReason::Port(service));
        }
        if let Some(range) = self.closed(address.ip()) {
            return refuse(RefusalReason::Special(range));
        }
        if let IpAddr::V6(outside) = address.ip() {
            for inside in carried(outside, &self.options.nat64_prefixes) {
                if let Some(range) = self.closed(inside.address.into()) {
                    return refuse(RefusalReason::Carries(inside, range));
                }
            }
        }
        Ok(())
    }

    /// The special range that an address lies in, unless the operator opened it.
    fn closed(&self, address: IpAddr) -> Option<&'static SpecialRange> {
        let opened = |networks: &[Network]| networks.iter().any(|network| network.contains(address));
        special_range(address)
            .filter(|_| !opened(&self.options.allow_networks) && !opened(&self.options.nat64_prefixes))
    }
}

/// A translation prefix that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{prefix} is no NAT64 prefix: expected an IPv6 network with 32, 40, 48, 56, 64 or 96 bits")]
pub struct GuardError {
    /// What was given.
    pub prefix: Network,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ip = self.address.ip();
        match self.reason {
            RefusalReason::Special(range) => {
                write!(f, "{ip} is not dialled: {} ({}); ", range.network, range.purpose)?;
                write!(f, "allow_networks opens it")
            }
            RefusalReason::Carries(inside, range) => {
                write!(f, "{ip} is not dialled: it carries {} ({}), ", inside.address, inside.form)?;
                write!(f, "which is in {} ({}); allow_networks opens it", range.network, range.purpose)
            }
            RefusalReason::Port(service) => {
                write!(f, "{} is not dialled: at port {} ", self.address, self.address.port())?;
                write!(f, "{service} is expected; allow_ports opens it")
            }
        }
    }
}
