//! The kinds of trouble a simulation can be told to have.

use std::fmt;

/// A kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// Workers die with their leases.
    Deaths,
    /// Workers stall past their deadline and settle as if nothing had happened.
    Stalls,
    /// Settlements arrive just before, at or just after the deadline.
    Late,
    /// Leases are settled twice.
    Doubles,
    /// Answers get lost: of claims, whose leases nobody knows of, and of settlements and admissions, which are repeated.
    Lost,
    /// Clocks jump ahead, by milliseconds or by days, and some are behind.
    Jumps,
    /// Operators steer at random.
    Operators,
    /// The store is closed and opened again, in good order or not. Only for stores that keep something.
    Restarts,
}

impl Trouble {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Deaths,
        Self::Stalls,
        Self::Late,
        Self::Doubles,
        Self::Lost,
        Self::Jumps,
        Self::Operators,
        Self::Restarts,
    ];
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}").to_lowercase())
    }
}

/// Which kinds of trouble there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults(u8);

impl Faults {
    /// None: everybody does as agreed.
    pub const NONE: Self = Self(0);
    /// All of them.
    pub const ALL: Self = Self(u8::MAX);

    /// Whether a kind is among them.
    pub fn has(self, fault: Trouble) -> bool {
        self.0 & (1 << fault as u8) != 0
    }

    /// With one more kind.
    #[must_use]
    pub fn with(self, fault: Trouble) -> Self {
        Self(self.0 | 1 << fault as u8)
    }

    /// Reads `all`, `none`, or names with commas between them. A name after `-` is left out: of what was named before, or
    /// of all, if the list begins with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut faults = if text.trim_start().starts_with('-') { Self::ALL } else { Self::NONE };
        for name in text.split(',').map(str::trim) {
            let find = |name: &str| Trouble::ALL.into_iter().find(|fault| fault.to_string() == name);
            match (name, name.strip_prefix('-').and_then(find), find(name)) {
                ("all", ..) => faults = Self::ALL,
                ("none", ..) => {}
                (_, Some(fault), _) => faults = Self(faults.0 & !(1 << fault as u8)),
                (_, _, Some(fault)) => faults = faults.with(fault),
                _ => {
                    let known = Trouble::ALL.map(|fault| fault.to_string()).join(", ");
                    return Err(format!("there is no fault `{name}`; known are {known}, all and none"));
                }
            }
        }
        Ok(faults)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<_> = Trouble::ALL
            .into_iter()
            .filter(|fault| self.has(*fault))
            .map(|fault| fault.to_string())
            .collect();
        f.pad(&match named.len() {
            0 => "none".to_owned(),
            count if count == Trouble::ALL.len() => "all".to_owned(),
            _ => named.join(","),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_alike() {
        for text in ["none", "all", "deaths", "deaths,stalls,restarts", "late,doubles,lost,jumps,operators"] {
            assert_eq!(Faults::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Faults::parse("lost, deaths").unwrap().to_string(), "deaths,lost");
        let without = Faults::parse("all,-restarts").unwrap();
        assert!(!without.has(Trouble::Restarts) && without.has(Trouble::Deaths));
        assert_eq!(Faults::parse("-restarts").unwrap(), without);
        assert_eq!(Faults::parse("-restarts,-deaths,lost"), Faults::parse("all,-deaths,-restarts"));
        for bad in ["", "death", "all,", "-all", "Deaths", "deaths;stalls"] {
            let error = Faults::parse(bad).unwrap_err();
            assert!(
                error.ends_with(
                    "known are deaths, stalls, late, doubles, lost, jumps, operators, restarts, all and none"
                ),
                "{error}"
            );
        }
    }
}
