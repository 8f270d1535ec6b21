//! What stands behind `disk:` in a store's URL: the folder, how safe an answer is to be, how much of the disk is left alone, and how
//! much memory may be taken.

use trapline_core::parse_duration;
use trapline_stores::{DiskOptions, Durability};

use crate::size;

/// A folder, and what was chosen for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DiskUrl<'a> {
    pub(super) path: &'a str,
    /// None: the default.
    pub(super) durability: Option<Durability>,
    /// None: the default.
    pub(super) min_free_disk: Option<u64>,
    /// None: the default.
    pub(super) max_memory: Option<u64>,
}

impl DiskUrl<'_> {
    pub(super) fn options(self) -> DiskOptions {
        let usual = DiskOptions::default();
        DiskOptions {
            durability: self.durability.unwrap_or(usual.durability),
            min_free_disk: self.min_free_disk.unwrap_or(usual.min_free_disk),
            max_memory: self.max_memory.or(usual.max_memory),
            ..usual
        }
    }
}

/// Reads `PATH` or `PATH?durability=NAME&period=DURATION&min_free_disk=BYTES&max_memory=BYTES`. Where a path has a `?` in it, one
/// more behind it ends it.
pub(super) fn parse(text: &str) -> Result<DiskUrl<'_>, String> {
    let (path, parameters) = text.rsplit_once('?').unwrap_or((text, ""));
    if path.is_empty() {
        return Err("write the folder behind it, such as `disk:crawl`".to_owned());
    }
    let (mut durability, mut period, mut min_free_disk, mut max_memory) = (None, None, None, None);
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let place = match name {
            "durability" => &mut durability,
            "period" => &mut period,
            "min_free_disk" => &mut min_free_disk,
            "max_memory" => &mut max_memory,
            _ => {
                return Err(format!(
                    "`{name}` means nothing to it; behind the last `?` there can be `durability`, `period`, `min_free_disk` and \
                     `max_memory`"
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
    let bytes = |name: &str, value: Option<&str>| {
        value.map(size::parse).transpose().map_err(|problem| format!("{name}: {problem}"))
    };
    let min_free_disk = bytes("min_free_disk", min_free_disk)?;
    let max_memory = bytes("max_memory", max_memory)?;
    Ok(DiskUrl { path, durability, min_free_disk, max_memory })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn durability_stands_behind_the_folder() {
        let check = |text: &str, path, durability| {
            assert_eq!(parse(text), Ok(DiskUrl { path, durability, ..DiskUrl::default() }));
        };
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
    fn so_much_of_the_disk_is_left_alone() {
        let options = |text| parse(text).map(DiskUrl::options);
        let usual = DiskOptions::default();
        assert_eq!(options("a"), Ok(usual));
        assert_eq!(options("a?min_free_disk=0"), Ok(DiskOptions { min_free_disk: 0, ..usual }));
        let both = DiskOptions { min_free_disk: 2 << 30, durability: Durability::Explicit, ..usual };
        assert_eq!(options("a?min_free_disk=2GiB&durability=explicit"), Ok(both));
    }

    #[test]
    fn so_much_memory_may_be_taken() {
        let options = parse("a?max_memory=512MiB").map(DiskUrl::options);
        assert_eq!(options, Ok(DiskOptions { max_memory: Some(512 << 20), ..DiskOptions::default() }));
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
        check(
            "a?b",
            "`b` means nothing to it; behind the last `?` there can be `durability`, `period`, `min_free_disk` and `max_memory`",
        );
        check("a?min_free_disk=1GiB&min_free_disk=1GiB", "`min_free_disk` is there twice");
        check(
            "a?max_memory=half",
            "max_memory: `half` is not an amount of bytes: write digits and a unit (B, KiB, MiB, GiB or TiB), such as 512MiB \
             or 10GiB, or plain 0",
        );
        check(
            "a?min_free_disk=lots",
            "min_free_disk: `lots` is not an amount of bytes: write digits and a unit (B, KiB, MiB, GiB or TiB), such as \
             512MiB or 10GiB, or plain 0",
        );
    }
}
