//! What an operator wants and does not want, by regular expressions over whole URLs.

use regex::{RegexSet, RegexSetBuilder};

use super::{HostPolicies, Origin, Prospect};
use crate::chain::{Flow, Rule};

/// How much memory the compiled expressions may take.
const COMPILED_BYTES_MAX: usize = 64 << 20;

/// Expressions that URLs must or must not match. They take time in proportion to the URL, whatever they are.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    include: Option<RegexSet>,
    exclude: Option<RegexSet>,
}

impl Patterns {
    /// Compiles expressions: one of `include` must match if there are any, none of `exclude` may.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self, PatternError> {
        Ok(Self { include: compile(include)?, exclude: compile(exclude)? })
    }
}

fn compile(patterns: &[String]) -> Result<Option<RegexSet>, PatternError> {
    if patterns.is_empty() {
        return Ok(None);
    }
    for pattern in patterns {
        regex::Regex::new(pattern)
            .map_err(|error| PatternError { pattern: pattern.clone(), reason: error.to_string() })?;
    }
    let set = RegexSetBuilder::new(patterns).size_limit(COMPILED_BYTES_MAX).build();
    set.map(Some).map_err(|error| PatternError { pattern: patterns.join(" | "), reason: error.to_string() })
}

/// An expression that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no regular expression: {reason}")]
pub struct PatternError {
    /// The expression.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Drops what does not match, and what does. Seeds are fetched all the same, if they are not excluded.
pub(super) struct Matches {
    pub(super) usual: Patterns,
    pub(super) hosts: HostPolicies,
}

impl Rule<Prospect> for Matches {
    fn name(&self) -> &'static str {
        "patterns"
    }

    fn apply(&self, prospect: &mut Prospect) -> Flow {
        let url = prospect.url.as_str();
        let own = self.hosts.of(prospect.url.host_str().unwrap_or_default());
        let patterns = own.and_then(|terms| terms.patterns.as_ref()).unwrap_or(&self.usual);
        if let Some(exclude) = &patterns.exclude
            && let Some(pattern) = exclude.matches(url).iter().next()
        {
            let detail = format!("excluded by `{}`", exclude.patterns()[pattern]);
            return prospect.drop("patterns", detail);
        }
        let exempt = matches!(prospect.origin, Origin::Seed | Origin::Sitemap);
        if let Some(include) = &patterns.include
            && !exempt
            && !include.is_match(url)
        {
            return prospect.drop("patterns", "not included");
        }
        Flow::Next
    }
}
