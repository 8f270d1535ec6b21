//! Which texts were seen, by their prints: 8 bytes and some room for each, whatever its length.
//!
//! Two texts may have the same print, if hardly ever: only for where nothing much depends on it.

use trapline_core::public_hash;

/// A set of prints that only grows.
#[derive(Debug, Default)]
pub(crate) struct PrintSet {
    /// 0 where there is none. A power of two, at most three quarters full.
    table: Vec<u64>,
    count: usize,
}

impl PrintSet {
    /// Adds the print of a text. False if it is there already.
    pub(crate) fn insert(&mut self, text: &str) -> bool {
        if (self.count + 1) * 4 > self.table.len() * 3 {
            let room = (self.table.len() * 2).max(8);
            for print in std::mem::replace(&mut self.table, vec![0; room]) {
                if print != 0 {
                    put(&mut self.table, print);
                }
            }
        }
        let new = put(&mut self.table, public_hash(text).max(1));
        self.count += usize::from(new);
        new
    }

    /// What it takes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        8 * self.table.capacity()
    }
}

fn put(table: &mut [u64], print: u64) -> bool {
    let mask = table.len() - 1;
    let mut slot = print as usize & mask;
    while table[slot] != 0 {
        if table[slot] == print {
            return false;
        }
        slot = (slot + 1) & mask;
    }
    table[slot] = print;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_not_new() {
        let mut set = PrintSet::default();
        for number in 0..10_000 {
            assert!(set.insert(&number.to_string()), "{number}");
            assert!(!set.insert(&(number / 2).to_string()), "{number}");
        }
    }
}
