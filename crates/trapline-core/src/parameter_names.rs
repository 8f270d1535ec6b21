//! Names of URL parameters to leave out of identities: a list of patterns, and the lists that come built in.
//!
//! Not a parser of queries: [`CanonicalRules`](crate::CanonicalRules) takes queries apart and asks here about
//! each name.

/// Patterns for parameter names, compared without regard to ASCII case. A pattern that ends with `*` stands
/// for every name that begins like it: `utm_*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterNames {
    patterns: Vec<String>,
}

impl ParameterNames {
    /// What campaigns and click counters append: `utm_*`, `fbclid`, `gclid` and their kin.
    pub const TRACKING: [&'static str; 16] = [
        "utm_*", "fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "msclkid", "yclid", "twclid",
        "ttclid", "igshid", "mc_cid", "mc_eid", "_ga", "_gl",
    ];

    /// What servers append to know a visitor without cookies. `sid` and its kin are missing here, because
    /// they mean a session only if the value looks like one.
    pub const SESSION: [&'static str; 5] = ["jsessionid", "phpsessid", "aspsessionid*", "cfid", "cftoken"];

    /// Makes a list from patterns. A `*` anywhere but at the end is an ordinary character.
    pub fn new<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Self {
        Self { patterns: patterns.into_iter().map(str::to_owned).collect() }
    }

    /// The list [`TRACKING`](Self::TRACKING).
    pub fn tracking() -> Self {
        Self::new(Self::TRACKING)
    }

    /// Whether a pattern stands for this name.
    pub fn contains(&self, name: &str) -> bool {
        self.patterns.iter().any(|pattern| stands_for(pattern, name))
    }
}

/// Whether a pattern stands for a name. It compares bytes, since a prefix may end where the name has no
/// character boundary.
pub(crate) fn stands_for(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        None => pattern.eq_ignore_ascii_case(name),
        Some(prefix) => {
            let start = name.as_bytes().get(..prefix.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_at_the_end_stands_for_the_rest_of_the_name() {
        let check = |patterns: &[&str], name: &str, contains| {
            let names = ParameterNames::new(patterns.iter().copied());
            assert_eq!(names.contains(name), contains, "{name} in {patterns:?}");
        };
        check(&["utm_*"], "utm_source", true);
        check(&["utm_*"], "UTM_Source", true);
        check(&["utm_*"], "utm_", true);
        check(&["utm_*"], "utm", false);
        check(&["utm_*"], "my_utm_source", false);
        check(&["gclid"], "gclid", true);
        check(&["gclid"], "gclids", false);
        check(&["a*b"], "a*b", true);
        check(&["a*b"], "axb", false);
        check(&["*"], "anything", true);
        check(&["aé*"], "aéb", true);
        check(&["ab*"], "aé", false);
        check(&[], "", false);
    }
}
