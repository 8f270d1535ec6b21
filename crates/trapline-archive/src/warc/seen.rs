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

    /// Reads what the newest indexes in a folder say, as far as there is room. What makes no sense is passed over, and so is what is not
    /// all there.
    pub(super) fn read(&self, folder: &Path) -> io::Result<()> {
        let mut indexes = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|extension| extension == "cdxj") {
                indexes.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        indexes.sort();
        let mut found = Vec::new();
        while found.len() < self.most
            && let Some((_, path)) = indexes.pop()
        {
            for line in BufReader::new(std::fs::File::open(&path)?).lines() {
                found.extend(original_in(&line?));
            }
        }
        // The newest last, which are forgotten last.
        for (digest, original) in found.into_iter().rev() {
            self.add(digest, original);
        }
        Ok(())
    }
}

/// What a line of an index says of a body that was written there.
fn original_in(line: &str) -> Option<(Digest, Original)> {
    let fields: serde_json::Value = serde_json::from_str(&line[line.find('{')?..]).ok()?;
    if fields["mime"] == "warc/revisit" || !fields["truncated"].is_null() {
        return None;
    }
    let digest = Digest::parse(fields["digest"].as_str()?)?;
    let (url, at) = (fields["url"].as_str()?, fields["date"].as_str()?);
    Some((digest, Original { url: url.to_owned(), at: at.to_owned() }))
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
