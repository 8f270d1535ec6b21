//! How much is given on what hosts and pages say to robots.

use std::fmt;

use crate::candidate::HostPolicies;

/// How much is given on what hosts and pages say to robots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RobotsPolicy {
    /// robots.txt decides, and what pages and links ask for (`nofollow`) is done.
    #[default]
    Obey,
    /// robots.txt decides, and nothing else.
    RobotsTxt,
    /// Neither is asked. For hosts of one's own.
    Ignore,
    /// As with `Obey`, but what any of the crawl's names may do is done.
    MostFavored,
}

impl RobotsPolicy {
    /// Every policy, with the name it has in the configuration.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("obey", Self::Obey),
        ("robots_txt", Self::RobotsTxt),
        ("ignore", Self::Ignore),
        ("most_favored", Self::MostFavored),
    ];

    /// Whether pages and links are heeded that ask not to follow them.
    pub fn heeds_pages(self) -> bool {
        matches!(self, Self::Obey | Self::MostFavored)
    }
}

impl fmt::Display for RobotsPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES.iter().find(|(_, policy)| policy == self).map_or("", |(name, _)| name))
    }
}

/// The policy for all, and those that some hosts have of their own.
#[derive(Clone, Debug)]
pub(crate) struct RobotsPolicies {
    pub(crate) usual: RobotsPolicy,
    pub(crate) hosts: HostPolicies,
}

impl RobotsPolicies {
    /// The policy for a host.
    pub(crate) fn of(&self, host: &str) -> RobotsPolicy {
        self.hosts.of(host).and_then(|terms| terms.robots).unwrap_or(self.usual)
    }
}
