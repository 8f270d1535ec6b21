//! The notes of a crawl: small values by key, for a while or for good. Long ones lie in the store's library, if it has one.
//!
//! Notes of hosts are nearly as many as hosts, and what a robots.txt says may have kilobytes, so that memory is no place for it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use trapline_core::Timestamp;

use super::album::Album;
use super::{Found, Owner};
use crate::library::Library;
use crate::report::Note;
use crate::verbs::NoteWrite;

/// All notes of a crawl.
#[derive(Debug)]
pub(super) struct Notes {
    notes: Album<String, StoredNote>,
    /// When they are over, and their keys.
    expiries: BTreeSet<(Timestamp, String)>,
    library: Option<Arc<dyn Library>>,
}

/// A note as it is kept.
#[derive(Clone, Debug)]
pub(super) struct StoredNote {
    pub(super) value: NoteValue,
    pub(super) expires: Option<Timestamp>,
}

/// What it says, or where the library has that.
#[derive(Clone, Debug)]
pub(super) enum NoteValue {
    Here(Vec<u8>),
    /// And how many bytes it takes there.
    Elsewhere {
        place: u64,
        bytes: u32,
    },
}

impl StoredNote {
    pub(super) fn place(&self) -> Option<u64> {
        match self.value {
            NoteValue::Here(_) => None,
            NoteValue::Elsewhere { place, .. } => Some(place),
        }
    }
}

impl Notes {
    /// Longer values are left to a library: shorter ones take less here than remembering where they are and finding them there.
    ///
    /// Stays as it is: logs tell by it which values they have.
    const HERE_MAX: usize = 64;

    pub(super) fn new(library: Option<Arc<dyn Library>>) -> Self {
        Self { notes: Album::default(), expiries: BTreeSet::new(), library }
    }

    pub(super) fn len(&self) -> usize {
        self.notes.len()
    }

    /// Those whose keys begin with this, in the order of their keys.
    pub(super) fn beginning_with<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a String, &'a StoredNote)> {
        self.notes.range(prefix.to_owned()..).take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// A note as it was written. None if the library cannot read it, which it notes.
    pub(super) fn show(&self, key: &str, note: &StoredNote) -> Option<Note> {
        let value = match (&note.value, &self.library) {
            (NoteValue::Here(value), _) => value.clone(),
            (NoteValue::Elsewhere { place, .. }, Some(library)) => library.note(*place)?,
            (NoteValue::Elsewhere { .. }, None) => return None,
        };
        Some(Note { key: key.to_owned(), value, expires: note.expires })
    }

    /// Writes a note, or takes one away.
    pub(super) fn write(&mut self, note: &NoteWrite) {
        let NoteWrite { key, value, expires } = note;
        self.remove(key);
        if let Some(value) = value {
            let library = self.library.as_deref().filter(|_| value.len() > Self::HERE_MAX);
            let place = library.and_then(|library| library.put_note(key, value));
            let elsewhere = |(place, bytes)| NoteValue::Elsewhere { place, bytes };
            let value = place.map_or_else(|| NoteValue::Here(value.clone()), elsewhere);
            self.insert(key.clone(), StoredNote { value, expires: *expires });
        }
    }

    /// Keeps a note whose key is not there.
    pub(super) fn insert(&mut self, key: String, note: StoredNote) {
        self.expiries.extend(note.expires.map(|expires| (expires, key.clone())));
        self.notes.insert(key, note);
    }

    fn remove(&mut self, key: &str) {
        let Some(old) = self.notes.remove(key) else { return };
        if let Some(expires) = old.expires {
            self.expiries.remove(&(expires, key.to_owned()));
        }
        self.free(&old);
    }

    fn free(&self, note: &StoredNote) {
        if let (NoteValue::Elsewhere { place, bytes }, Some(library)) = (&note.value, &self.library) {
            library.free_note(*place, *bytes);
        }
    }

    /// Whether the time of some is over.
    pub(super) fn are_overdue(&self, now: Timestamp) -> bool {
        self.expiries.first().is_some_and(|(expires, _)| *expires <= now)
    }

    /// Drops those whose time is over.
    pub(super) fn drop_overdue(&mut self, now: Timestamp) {
        while self.are_overdue(now) {
            if let Some((_, key)) = self.expiries.pop_first()
                && let Some(note) = self.notes.remove(&key)
            {
                self.free(&note);
            }
        }
    }

    /// Where the library has those that it has, with their keys.
    pub(super) fn places(&self) -> impl Iterator<Item = (&String, u64)> {
        self.notes.iter().filter_map(|(key, note)| Some((key, note.place()?)))
    }

    /// Frees what a library has of them all, which are about to be dropped.
    pub(super) fn free_all(&self) {
        for note in self.notes.values() {
            self.free(note);
        }
    }

    /// Where the library has one.
    pub(super) fn place(&self, key: &str) -> Option<u64> {
        self.notes.get(key)?.place()
    }

    /// Those of so many from a key on that are at places wanted, and the key to go on with.
    pub(super) fn find_places(
        &self,
        from: &str,
        count: usize,
        is_wanted: impl Fn(u64) -> bool,
    ) -> (Vec<Found>, Option<String>) {
        let mut rest = self.notes.range::<str, _>((Bound::Included(from), Bound::Unbounded));
        let some = rest.by_ref().take(count);
        let found = some.filter_map(|(key, note)| {
            let place = note.place().filter(|place| is_wanted(*place))?;
            Some(Found { owner: Owner::Note(key.clone()), place, more_bytes: 0 })
        });
        let found = found.collect();
        (found, rest.next().map(|(key, _)| key.clone()))
    }

    /// Lets the library put one elsewhere that it has.
    pub(super) fn relocate(&mut self, key: &str) {
        let Some(library) = &self.library else { return };
        if let Some(note) = self.notes.get(key).cloned()
            && let Some(place) = note.place()
        {
            let (place, bytes) = library.copy(place, false);
            let moved = StoredNote { value: NoteValue::Elsewhere { place, bytes }, expires: note.expires };
            self.notes.insert(key.to_owned(), moved);
            self.free(&note);
        }
    }

    /// Whether what is kept twice agrees.
    pub(super) fn check(&self) -> Result<(), String> {
        let expiries: BTreeMap<&String, Timestamp> =
            self.expiries.iter().map(|(expires, key)| (key, *expires)).collect();
        let agree = expiries.len() == self.expiries.len()
            && self.notes.iter().all(|(key, note)| expiries.get(key).copied() == note.expires)
            && expiries.keys().all(|key| self.notes.contains_key(*key));
        if agree { Ok(()) } else { Err("notes and when they are over do not agree".to_owned()) }
    }

    pub(super) fn begin_shot(&mut self) {
        self.notes.begin_shot();
    }

    pub(super) fn drop_shot(&mut self) {
        self.notes.drop_shot();
    }

    pub(super) fn take_shot(&mut self) -> Option<Vec<(String, StoredNote)>> {
        self.notes.take_shot()
    }
}
