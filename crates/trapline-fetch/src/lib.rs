//! HTTP for crawlers: one guarded door to the network, a cap on everything, and a record of what happened.
//!
//! Every outgoing connection goes through `Dialer`, which alone opens sockets and looks at the address that it really dials.
//! Redirects are answers, not journeys: who fetches decides what becomes of them.

mod credentials;
mod dial;
mod dial_error;
mod dns;
mod guard;
mod host_pattern;
mod proxy;
mod stream;
mod tls;

pub use credentials::Credentials;
pub use dial::{
    Destination, DialCounts, DialOptions, DialTimes, Dialed, Dialer, DialerError, Protocol, Route,
};
pub use dial_error::{DialError, DialErrorKind};
pub use dns::{DnsOptions, Families, Override, OverrideError};
pub use guard::{
    Carried, GLOBAL_UNICAST_V6, Guard, GuardError, GuardOptions, Network, NetworkError, Refusal,
    RefusalReason, SPECIAL_V4, SPECIAL_V6, SpecialRange, carried, dangerous_port, dangerous_ports,
    special_range,
};
pub use host_pattern::{HostPattern, HostPatternError};
pub use proxy::{Proxy, ProxyError, ProxyKind, ThroughProxy};
pub use stream::Stream;
pub use tls::{Offer, Roots, TlsError, TlsFacts, TlsProblem};
