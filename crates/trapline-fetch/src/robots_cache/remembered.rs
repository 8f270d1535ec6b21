//! How a robots.txt is written into a note.
//!
//! A version, what is known beside the file, and the file in the form that `trapline_extract` gives it. What cannot be read is
//! as good as nothing.

use trapline_core::Timestamp;
use trapline_extract::Robots;

use super::{Known, RobotsFile};

const VERSION: u8 = 1;

/// What came of asking for a robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RobotsStanding {
    /// It is there (2xx).
    Found,
    /// There is none (4xx): everything is allowed.
    Missing,
    /// It cannot be had (5xx, no answer, broken): nothing is allowed.
    Unreachable,
}

impl RobotsStanding {
    /// Its name in results. Stays as it is.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Missing => "missing",
            Self::Unreachable => "unreachable",
        }
    }
}

pub(super) fn write_note(file: &RobotsFile) -> Vec<u8> {
    let standing = match file.standing {
        RobotsStanding::Found => 0,
        RobotsStanding::Missing => 1,
        RobotsStanding::Unreachable => 2,
    };
    let mut note = vec![VERSION, standing];
    note.extend_from_slice(&file.failures.to_le_bytes());
    note.extend_from_slice(&file.fetched.as_millis().to_le_bytes());
    note.extend_from_slice(&file.until.as_millis().to_le_bytes());
    note.extend_from_slice(&file.robots.to_bytes());
    note
}

pub(super) fn read_note(note: &[u8]) -> Option<(Robots, Known)> {
    let (head, rest) = note.split_first_chunk::<2>()?;
    let (failures, rest) = rest.split_first_chunk::<4>()?;
    let (fetched, rest) = rest.split_first_chunk::<8>()?;
    let (until, robots) = rest.split_first_chunk::<8>()?;
    let standing = match head {
        [VERSION, 0] => RobotsStanding::Found,
        [VERSION, 1] => RobotsStanding::Missing,
        [VERSION, 2] => RobotsStanding::Unreachable,
        _ => return None,
    };
    let known = Known {
        standing,
        failures: u32::from_le_bytes(*failures),
        fetched: Timestamp::from_millis(u64::from_le_bytes(*fetched)),
        until: Timestamp::from_millis(u64::from_le_bytes(*until)),
    };
    Some((Robots::from_bytes(robots).ok()?, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written_and_nothing_else_is() {
        let known = Known {
            standing: RobotsStanding::Found,
            fetched: Timestamp::from_millis(5),
            until: Timestamp::from_millis(70),
            failures: 3,
        };
        let robots = Robots::parse(b"User-agent: *\nDisallow: /x");
        let file = RobotsFile::new(&["a".to_owned()], robots, known);
        let note = write_note(&file);
        let (read, of_note) = read_note(&note).unwrap();
        assert_eq!(of_note, known);
        assert_eq!(read.to_bytes(), file.robots.to_bytes());
        for length in 0..note.len() {
            assert!(read_note(&note[..length]).is_none(), "cut to {length}");
        }
        let mut other = note.clone();
        other[0] = 9;
        assert!(read_note(&other).is_none());
    }
}
