//! Something for each of many patterns for hosts, found by a host without going through all of them.
//!
//! It answers what [`HostPattern::most_exact`] would: crawls with thousands of policies ask it for every link.

use std::collections::BTreeMap;

use crate::host_pattern::{HostPattern, Place, plain_name};

/// Something for each of some patterns.
#[derive(Clone, Debug)]
pub struct HostTable<T> {
    /// In their order, of which the later one counts where two are equally exact.
    entries: Vec<(HostPattern, T)>,
    /// By a name or an address.
    ones: BTreeMap<String, usize>,
    /// By a suffix with its dot: those below it, and a domain with itself.
    below: BTreeMap<String, usize>,
    domains: BTreeMap<String, usize>,
    /// All others, which have to be compared one by one.
    others: Vec<usize>,
}

impl<T> Default for HostTable<T> {
    fn default() -> Self {
        Self::from_iter([])
    }
}

impl<T> FromIterator<(HostPattern, T)> for HostTable<T> {
    fn from_iter<I: IntoIterator<Item = (HostPattern, T)>>(entries: I) -> Self {
        let entries: Vec<_> = entries.into_iter().collect();
        let (mut ones, mut below, mut domains) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut others = Vec::new();
        for (number, (pattern, _)) in entries.iter().enumerate() {
            match pattern.place() {
                Place::One(name) => drop(ones.insert(name.to_owned(), number)),
                Place::Below(suffix) => drop(below.insert(suffix.to_owned(), number)),
                Place::Domain(suffix) => drop(domains.insert(suffix.to_owned(), number)),
                Place::Anywhere => others.push(number),
            }
        }
        Self { entries, ones, below, domains, others }
    }
}

impl<T> HostTable<T> {
    /// What the most exact pattern has for a host.
    pub fn of(&self, host: &str) -> Option<&T> {
        if self.entries.is_empty() {
            return None;
        }
        let name = plain_name(host).to_ascii_lowercase();
        if let Some(number) = self.ones.get(&name) {
            return Some(&self.entries[*number].1);
        }
        let others = self.others.iter().copied().filter(|number| self.entries[*number].0.matches(host));
        let best = self.by_suffix(&name).into_iter().chain(others);
        let best = best.max_by_key(|number| (self.entries[*number].0.exactness(), *number));
        best.map(|number| &self.entries[number].1)
    }

    /// The longest suffix that is there is the most exact one, and without its domain before with it.
    fn by_suffix(&self, name: &str) -> Option<usize> {
        if self.below.is_empty() && self.domains.is_empty() {
            return None;
        }
        let whole = format!(".{name}");
        let dots = whole.match_indices('.').map(|(at, _)| at);
        let found = |at: usize| {
            let suffix = &whole[at..];
            // Below a name is something, and more than a dot.
            let below = self.below.get(suffix).filter(|_| at > 1);
            let domain = self.domains.get(suffix);
            below.or(domain).copied()
        };
        dots.filter_map(found).find(|number| self.entries[*number].0.matches(name))
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, of)| of)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Few letters, so that much fits.
    fn pattern() -> impl Strategy<Value = String> {
        let name = "[ab]{1,2}(\\.[ab]{1,2}){0,2}";
        prop_oneof![
            name.prop_map(|name: String| name),
            name.prop_map(|name: String| format!("*.{name}")),
            name.prop_map(|name: String| format!("domain:{name}")),
            "[ab*?]{1,3}(\\.[ab*?]{1,2}){0,2}".prop_map(|name: String| name),
            Just("*".to_owned()),
            Just("192.0.2.1".to_owned()),
            Just("::1".to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn a_table_answers_as_if_all_were_compared(
            patterns in prop::collection::vec(pattern(), 0..8),
            hosts in prop::collection::vec("[abA]{1,2}(\\.[ab]{1,2}){0,3}\\.?|192\\.0\\.2\\.1|\\[::1\\]|\\.a\\.b|\\.\\.|", 1..8),
        ) {
            let patterns: Vec<HostPattern> = patterns.iter().filter_map(|text| text.parse().ok()).collect();
            let table: HostTable<usize> = patterns.iter().cloned().zip(0..).collect();
            for host in &hosts {
                let expected = HostPattern::most_exact(patterns.iter().zip(0..), host);
                prop_assert_eq!(table.of(host).copied(), expected, "{} in {:?}", host, patterns);
            }
        }
    }
}
