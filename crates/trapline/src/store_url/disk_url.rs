//! What stands behind `disk:` in a store's URL: the folder, and how safe an answer is to be.

use trapline_core::parse_duration;
use trapline_stores::{DiskOptions, Durability};

/// A folder, and what was chosen for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DiskUrl<'a> {
    pub(super) path: &'a str,
    /// None: the default.
    pub(super) durability: Option<Durability>,
}

impl DiskUrl<'_> {
    pub(super) fn options(self) -> DiskOptions {
        DiskOptions { durability: self.durability.unwrap_or_default(), ..DiskOptions::default() }
    }
}

/// Reads `PATH` or `PATH?durability=NAME&period=DURATION`. Where a path has a `?` in it, one more behind it ends it.
pub(super) fn parse(text: &str) -> Result<DiskUrl<'_>, String> {
    let (path, parameters) = text.rsplit_once('?').unwrap_or((text, ""));
    if path.is_empty() {
        return Err("write the folder behind it, such as `disk:crawl`".to_owned());
    }
    let (mut durability, mut period) = (None, None);
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let place = match name {
            "durability" => &mut durability,
            "period" => &mut period,
            _ => {
                return Err(format!(
                    "`{name}` means nothing to it; behind the last `?` there can be `durability` and `period`"
                ));
            }
        };
        if place.replace(value).is_some() {
            return Err(format!("`{name}` is there twice"));
        }
    }
    let period = period.map(parse_duration).transpose().map_err(|error| error.to_string())?;
    let durability = match (durability, period) {
        (None, None) => None,
        (Some("batch"), None) => Some(Durability::Batch),
        (Some("explicit"), None) => Some(Durability::Explicit),
        (Some("interval"), Some(period)) if !period.is_zero() => Some(Durability::Interval(period)),
        (Some("interval"), _) => {
            return Err("`durability=interval` needs a period, such as `&period=100ms`".to_owned());
        }
        (None | Some("batch" | "explicit"), Some(_)) => {
            return Err("`period` belongs to `durability=interval`".to_owned());
        }
        (Some(other), _) => {
            return Err(format!("`{other}` is no durability; there are `batch`, `interval` and `explicit`"));
        }
    };
    Ok(DiskUrl { path, durability })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn durability_stands_behind_the_folder() {
        let check = |text: &str, path, durability| assert_eq!(parse(text), Ok(DiskUrl { path, durability }));
        check("a", "a", None);
        check("a?", "a", None);
        check("a?b?", "a?b", None);
        check("a?durability=batch", "a", Some(Durability::Batch));
        check("a?b?durability=explicit", "a?b", Some(Durability::Explicit));
        let interval = Some(Durability::Interval(Duration::from_millis(100)));
        check("a?durability=interval&period=100ms", "a", interval);
        check("a?period=100ms&durability=interval", "a", interval);
    }

    #[test]
    fn what_cannot_be_chosen_is_told() {
        let check = |text: &str, problem: &str| assert_eq!(parse(text), Err(problem.to_owned()));
        check("", "write the folder behind it, such as `disk:crawl`");
        check("?durability=batch", "write the folder behind it, such as `disk:crawl`");
        let names = "there are `batch`, `interval` and `explicit`";
        check("a?durability=none", &format!("`none` is no durability; {names}"));
        check("a?durability", &format!("`` is no durability; {names}"));
        check("a?durability=batch&durability=batch", "`durability` is there twice");
        let needs = "`durability=interval` needs a period, such as `&period=100ms`";
        check("a?durability=interval", needs);
        check("a?durability=interval&period=0", needs);
        check("a?period=1s", "`period` belongs to `durability=interval`");
        check("a?durability=batch&period=1s", "`period` belongs to `durability=interval`");
        check(
            "a?durability=interval&period=1",
            "`1` is not a duration: write digits and a unit (ms, s, m, h or d), such as 250ms or 2h, or plain 0",
        );
        check("a?b", "`b` means nothing to it; behind the last `?` there can be `durability` and `period`");
    }
}
