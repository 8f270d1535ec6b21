//! A set of texts that only grows, for millions of them: one after the other in one piece of memory, and a table of where each begins.
//!
//! It cannot be gone through, and nothing is ever taken out.

/// A set of texts: some 16 bytes for each beside the text itself.
#[derive(Debug, Default)]
pub(crate) struct TextSet {
    /// Each behind its length.
    texts: Vec<u8>,
    /// Where texts begin, plus one; 0 where there is none. A power of two, at most three quarters full.
    table: Vec<u64>,
    count: usize,
}

impl TextSet {
    /// Adds a text. False if it is there already.
    pub(crate) fn insert(&mut self, text: &str) -> bool {
        if self.contains(text) {
            return false;
        }
        if (self.count + 1) * 4 > self.table.len() * 3 {
            self.grow();
        }
        let at = self.texts.len() as u64;
        self.texts.extend_from_slice(&(text.len() as u64).to_le_bytes()[..LENGTH_BYTES]);
        self.texts.extend_from_slice(text.as_bytes());
        place(&mut self.table, text.as_bytes(), at);
        self.count += 1;
        true
    }

    pub(crate) fn contains(&self, text: &str) -> bool {
        if self.table.is_empty() {
            return false;
        }
        let mask = self.table.len() - 1;
        let mut slot = hash(text.as_bytes()) as usize & mask;
        while let Some(at) = self.table[slot].checked_sub(1) {
            if self.text(at) == text.as_bytes() {
                return true;
            }
            slot = (slot + 1) & mask;
        }
        false
    }

    /// What it takes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.texts.capacity() + 8 * self.table.capacity()
    }

    fn text(&self, at: u64) -> &[u8] {
        let start = at as usize + LENGTH_BYTES;
        let mut length = [0; 8];
        length[..LENGTH_BYTES].copy_from_slice(&self.texts[at as usize..start]);
        &self.texts[start..start + u64::from_le_bytes(length) as usize]
    }

    fn grow(&mut self) {
        let mut table = vec![0; (self.table.len() * 2).max(8)];
        for at in self.table.iter().filter_map(|at| at.checked_sub(1)) {
            place(&mut table, self.text(at), at);
        }
        self.table = table;
    }
}

/// URLs are shorter than this can count: 16 MiB.
const LENGTH_BYTES: usize = 3;

/// Notes in a table where a text begins.
fn place(table: &mut [u64], text: &[u8], at: u64) {
    let mask = table.len() - 1;
    let mut slot = hash(text) as usize & mask;
    while table[slot] != 0 {
        slot = (slot + 1) & mask;
    }
    table[slot] = at + 1;
}

/// FNV-1a, mixed once more. Who could make texts collide cannot put many in.
fn hash(text: &[u8]) -> u64 {
    let hash = text.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^ (hash >> 29)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_holds_what_a_set_of_strings_holds() {
        let (mut set, mut model) = (TextSet::default(), BTreeSet::new());
        assert!(!set.contains(""));
        for number in 0_u64..20_000 {
            // Some come twice, and some are long.
            let text = format!("host-{}.{}", number * 7919 % 12_345, "x".repeat((number % 300) as usize));
            assert_eq!(set.insert(&text), model.insert(text.clone()), "{text}");
            assert!(set.contains(&text) && !set.contains(&text[1..]), "{text}");
        }
        assert!(model.iter().all(|text| set.contains(text)));
        assert!(set.insert("") && set.contains("") && !set.insert(""));
    }
}
