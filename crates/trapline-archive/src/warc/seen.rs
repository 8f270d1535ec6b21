//! Bodies that were written before, by their digests, so that they are not written again. Only what is safe on disk is here, and no
//! more than there is room for: what was not heard of for longest is forgotten.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use trapline_core::{Civil, Timestamp};

use crate::digest::Digest;

/// Where a body was written first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Original {
    pub(super) url: String,
    /// As it is written there.
    pub(super) at: String,
}

impl Original {
    pub(super) fn new(url: &str, at: Timestamp) -> Self {
        Self { url: url.to_owned(), at: Civil::from(at).to_string() }
    }
}

/// Bodies that were written, in two halves: when the first is full, it becomes the second, and what was there is forgotten.
pub(super) struct Seen {
    most: usize,
    halves: Mutex<[HashMap<Digest, Original>; 2]>,
}

impl Seen {
    pub(super) fn new(most: usize) -> Self {
        Self { most, halves: Mutex::default() }
    }

    pub(super) fn original(&self, digest: &Digest) -> Option<Original> {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(original) = halves[0].get(digest) {
            return Some(original.clone());
        }
        let original = halves[1].remove(digest)?;
        insert(&mut halves, self.most, *digest, original.clone());
        Some(original)
    }

    pub(super) fn add(&self, digest: Digest, original: Original) {
        if self.most > 0 {
            let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
            insert(&mut halves, self.most, digest, original);
        }
    }

    /// Reads what the indexes in a folder say, the newest last. What makes no sense is passed over.
    pub(super) fn read(&self, folder: &Path) -> io::Result<()> {
        if self.most == 0 {
            return Ok(());
        }
        let mut indexes = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|extension| extension == "cdxj") {
                indexes.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        indexes.sort();
        for (_, path) in indexes {
            for line in BufReader::new(std::fs::File::open(&path)?).lines() {
                let line = line?;
                let fields =
                    line.find('{').and_then(|at| serde_json::from_str::<serde_json::Value>(&line[at..]).ok());
                let Some(fields) = fields.filter(|fields| fields["mime"] != "warc/revisit") else { continue };
                let digest = fields["digest"].as_str().and_then(Digest::parse);
                if let (Some(digest), Some(url), Some(at)) =
                    (digest, fields["url"].as_str(), fields["date"].as_str())
                {
                    self.add(digest, Original { url: url.to_owned(), at: at.to_owned() });
                }
            }
        }
        Ok(())
    }
}

fn insert(halves: &mut [HashMap<Digest, Original>; 2], most: usize, digest: Digest, original: Original) {
    if halves[0].len() >= (most / 2).max(1) {
        halves[1] = std::mem::take(&mut halves[0]);
    }
    halves[0].insert(digest, original);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_heard_of_for_longest_is_forgotten() {
        let seen = Seen::new(4);
        let digest = |n: u8| Digest::of(&[&[n]]);
        for n in 0..4 {
            seen.add(digest(n), Original::new(&n.to_string(), Timestamp::ZERO));
        }
        assert_eq!(seen.original(&digest(0)).unwrap().url, "0");
        seen.add(digest(4), Original::new("4", Timestamp::ZERO));
        seen.add(digest(5), Original::new("5", Timestamp::ZERO));
        assert_eq!(seen.original(&digest(0)).unwrap().url, "0");
        assert_eq!(seen.original(&digest(1)), None);
        let none = Seen::new(0);
        none.add(digest(1), Original::new("1", Timestamp::ZERO));
        assert_eq!(none.original(&digest(1)), None);
    }
}
