//! Things in the order of their keys, photographed while they change: whoever changes one that was not taken yet keeps it as it
//! was, once. For what there may be many of and what is not in [`super::chunks`].

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::{Bound, Deref};

/// So many are taken at once.
const TAKEN_AT_ONCE: usize = 1024;

/// A photograph being taken.
#[derive(Debug)]
pub(super) struct Sitting<K, V> {
    /// The last key there was when it began; nothing beyond it is in the picture.
    last: K,
    /// Everything up to this key was taken, and may change.
    taken: Option<K>,
    /// How those were that have changed since; None where there was nothing.
    changed: BTreeMap<K, Option<V>>,
}

impl<K: Ord + Clone, V: Clone> Sitting<K, V> {
    /// Of everything up to a key.
    pub(super) fn of_all_to(last: K) -> Self {
        Self { last, taken: None, changed: BTreeMap::new() }
    }

    /// Something is about to change, and is this now.
    pub(super) fn keep(&mut self, key: &K, is: Option<V>) {
        let is_past = self.taken.as_ref().is_some_and(|taken| key <= taken);
        if !is_past && *key <= self.last && !self.changed.contains_key(key) {
            self.changed.insert(key.clone(), is);
        }
    }

    /// The last key that was taken.
    pub(super) fn taken(&self) -> Option<&K> {
        self.taken.as_ref()
    }

    /// Takes the next ones. `present` are those that there are now after the last key that was taken, in order. None when the
    /// picture is complete.
    pub(super) fn take(&mut self, present: impl Iterator<Item = (K, V)>) -> Option<Vec<(K, V)>> {
        let mut present = present.take_while(|(key, _)| *key <= self.last).peekable();
        let mut photos = Vec::new();
        for _ in 0..TAKEN_AT_ONCE {
            let changed_first = match (self.changed.first_key_value(), present.peek()) {
                (None, None) => break,
                (Some((changed, _)), Some((there, _))) => changed <= there,
                (changed, _) => changed.is_some(),
            };
            let (key, photo) = if changed_first {
                let Some((key, was)) = self.changed.pop_first() else { break };
                // As it is now, it is not in the picture.
                present.next_if(|(there, _)| *there == key);
                (key, was)
            } else {
                let Some((key, there)) = present.next() else { break };
                (key, Some(there))
            };
            self.taken = Some(key.clone());
            photos.extend(photo.map(|photo| (key, photo)));
        }
        let is_complete = photos.is_empty() && self.changed.is_empty() && present.peek().is_none();
        (!is_complete).then_some(photos)
    }
}

/// A map in the order of its keys that can be photographed. It is read as what it is, and changed here only.
#[derive(Debug)]
pub(super) struct Album<K, V> {
    things: BTreeMap<K, V>,
    shot: Option<Box<Sitting<K, V>>>,
}

impl<K, V> Default for Album<K, V> {
    fn default() -> Self {
        Self { things: BTreeMap::new(), shot: None }
    }
}

impl<K, V> Deref for Album<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &Self::Target {
        &self.things
    }
}

impl<K: Ord + Clone, V: Clone> Album<K, V> {
    pub(super) fn insert(&mut self, key: K, thing: V) -> Option<V> {
        if let Some(shot) = &mut self.shot {
            shot.keep(&key, self.things.get(&key).cloned());
        }
        self.things.insert(key, thing)
    }

    pub(super) fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let (key, thing) = self.things.remove_entry(key)?;
        if let Some(shot) = &mut self.shot {
            shot.keep(&key, Some(thing.clone()));
        }
        Some(thing)
    }

    /// Begins a photograph of everything as it is now.
    pub(super) fn begin_shot(&mut self) {
        let last = self.things.last_key_value().map(|(key, _)| key.clone());
        self.shot = last.map(|last| Box::new(Sitting::of_all_to(last)));
    }

    /// The next things in the photograph, with their keys; None when it is complete, or none was begun.
    pub(super) fn take_shot(&mut self) -> Option<Vec<(K, V)>> {
        let shot = self.shot.as_mut()?;
        let from = shot.taken().map_or(Bound::Unbounded, |taken| Bound::Excluded(taken.clone()));
        let present = self.things.range((from, Bound::Unbounded));
        let taken = shot.take(present.map(|(key, thing)| (key.clone(), thing.clone())));
        if taken.is_none() {
            self.shot = None;
        }
        taken
    }

    /// Gives a photograph up.
    pub(super) fn drop_shot(&mut self) {
        self.shot = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is put, replaced and removed meanwhile, before and behind what was taken.
    #[test]
    fn a_photograph_shows_what_was_there_when_it_began() {
        for len in [0, 1, TAKEN_AT_ONCE as u64, 7 * TAKEN_AT_ONCE as u64 + 3] {
            let mut album = Album::default();
            for key in 0..len {
                album.insert(key * 3, key);
            }
            let expected: Vec<_> = album.iter().map(|(key, thing)| (*key, *thing)).collect();
            album.begin_shot();
            let mut seen = Vec::new();
            let mut random = len;
            loop {
                for change in 0..200 {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let key = (random >> 33) % (len * 4 + 1);
                    if change % 3 == 0 {
                        album.remove(&key);
                    } else {
                        album.insert(key, u64::MAX);
                    }
                }
                let Some(photos) = album.take_shot() else { break };
                assert!(photos.len() <= TAKEN_AT_ONCE);
                seen.extend(photos);
            }
            assert_eq!(seen, expected, "{len}");
            assert!(album.shot.is_none());
        }
    }

    /// What is added behind the end is not in the picture, and costs nothing.
    #[test]
    fn nothing_is_kept_of_what_comes_later() {
        let mut album = Album::default();
        album.insert(1, 1);
        album.begin_shot();
        for key in 2..1000 {
            album.insert(key, 0);
            album.remove(&key);
        }
        assert_eq!(album.shot.as_ref().map(|shot| shot.changed.len()), Some(0));
        assert_eq!(album.take_shot(), Some(vec![(1, 1)]));
        assert_eq!(album.take_shot(), None);
    }
}
