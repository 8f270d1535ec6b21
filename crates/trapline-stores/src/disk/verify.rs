//! Verifying a store: everything in its folder is read, every checksum compared, every command done again from the first
//! day, every snapshot held against that, and every invariant of the engine looked at.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use trapline_frontier::{Engine, ErrorKind, StoreError};

use super::files::{Files, Folder};
use super::folder;
use super::frames::Places;
use super::ledger::segment_of;
use super::message::logged;
use super::recovery;
use super::scan::{self, Damage, Scanned};
use super::segment::Segment;
use super::snapshot::{self, Snapshot, Unusable};
use super::texts::{self, Texts};

/// What was found in a store's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of the newest file of the log.
    pub segments: u64,
    /// How many records were read, and their bytes.
    pub records: u64,
    /// How many bytes those are.
    pub bytes: u64,
    /// How many snapshots were read.
    pub snapshots: u64,
    /// How many URLs are known, in all crawls.
    pub urls: u64,
    /// How many crawls there are.
    pub crawls: u64,
    /// What is damaged. Nothing, in a healthy store.
    pub damages: Vec<Damage>,
    /// Whether nothing is lost by that: the log is whole, and it or a snapshot that is whole has its beginning.
    pub has_all: bool,
    /// What a killed process has left behind, or one that works has just begun, and the next opening removes: no damage.
    /// A torn end of the log among it.
    pub leftovers: Vec<String>,
}

/// How far a verification has come: records read.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64);

/// Reads everything in a store's folder. It changes nothing, and may be done while a process uses the store: what that one
/// writes meanwhile is not looked at.
///
/// # Errors
/// If the folder is no store's, cannot be read, or was written by a newer version. Damage is no error but an answer.
pub fn verify(path: impl AsRef<Path>, progress: Progress<'_>) -> Result<Verified, StoreError> {
    verify_on(&folder_of(path.as_ref(), "verify")?, progress)
}

/// The files of a store that is there.
pub(crate) fn folder_of(path: &Path, attempted: &str) -> Result<Arc<dyn Files>, StoreError> {
    let segments = path.join(folder::SEGMENTS);
    if !segments.is_dir() {
        let message =
            format!("disk store: cannot {attempted} `{}`: there is no store in that folder", path.display());
        return Err(StoreError::new(ErrorKind::NotFound, message));
    }
    Ok(Arc::new(Folder::new(segments)))
}

/// The same in files of another kind. For tests.
///
/// # Errors
/// As [`verify`].
pub fn verify_on(files: &Arc<dyn Files>, progress: Progress<'_>) -> Result<Verified, StoreError> {
    for _ in 0..ATTEMPTS {
        let before = files.list().unwrap_or_default();
        let verified = verify_once(files, progress);
        if verified.as_ref().is_ok_and(|verified| verified.damages.is_empty()) {
            return verified;
        }
        // Who owns the store removes what is not needed any more. What was found may be nothing but that.
        let after = files.list().unwrap_or_default();
        if before.iter().all(|name| after.contains(name)) {
            return verified;
        }
    }
    let message = format!(
        "disk store: cannot verify {}: it is in use, and files were removed while they were read, {ATTEMPTS} times: make a \
         checkpoint, and verify that",
        files.describe("")
    );
    Err(StoreError::new(ErrorKind::Unavailable, message))
}

/// So often it is begun anew if files were removed meanwhile.
const ATTEMPTS: u32 = 3;

fn verify_once(files: &Arc<dyn Files>, progress: Progress<'_>) -> Result<Verified, StoreError> {
    let cannot = |error: io::Error| {
        let message = format!("disk store: cannot verify {}: {error}", files.describe(""));
        StoreError::new(ErrorKind::Unavailable, message)
    };
    let texts = Arc::new(Texts::new(Arc::clone(files)));
    let mut verified = Verified::default();
    let begin = scan::begin(&**files).map_err(cannot)?;
    let mut snapshots = read_snapshots(files, &texts, &mut verified).map_err(cannot)?;
    // What came before a repair is not to be replayed, nor what was removed.
    let mut doing = match begin {
        1 => Doing::Engine(Box::new(texts.engine())),
        _ => Doing::Waiting(None),
    };
    let mut expected = 1;
    let mut troubles = Vec::new();
    let scanned = scan::scan(&**files, begin, |record, segment, at| {
        progress(record.sequence);
        let Some((record_texts, message)) = record.parts() else {
            return Some("the record lacks some of its texts".to_owned());
        };
        let command = match logged::read(message, record_texts) {
            Ok(command) => command,
            Err(error) => return Some(format!("the record cannot be read: {error}")),
        };
        // After a gap nobody knows what the engine would answer.
        if record.sequence != std::mem::replace(&mut expected, record.sequence + 1)
            && doing.engine().is_some()
        {
            doing = Doing::Lost;
        }
        snapshots.meet(&mut doing, record.sequence, &mut troubles);
        if record.rules > Engine::RULES && !matches!(doing, Doing::Waiting(Some(_)) | Doing::Lost) {
            let file = files.describe(&Segment::name(segment));
            doing = Doing::Waiting(Some(recovery::other_rules("verify", &file, record)));
        }
        let engine = doing.engine()?;
        let _ = engine.follow(record.rules);
        texts.begin_again(texts::place(segment, at as u64), record_texts, record.extent);
        let answers = command.replay(engine);
        texts.take();
        if answers.as_ref().ok() != Some(&record.answers) || texts.take_failure().is_some() {
            doing = Doing::Lost;
            return Some(format!(
                "record {} answered otherwise when it was written than it does now",
                record.sequence
            ));
        }
        None
    });
    let Scanned { newest, records, bytes, next, damages, torn, newer, .. } = scanned.map_err(cannot)?;
    if let Some(newer) = newer {
        let message = format!(
            "disk store: cannot verify: {newer}; nothing was changed: use the version that wrote it, or a later one"
        );
        return Err(StoreError::new(ErrorKind::Unsupported, message));
    }
    (verified.segments, verified.records, verified.bytes) = (newest, records, bytes);
    let is_log_whole = damages.is_empty();
    verified.damages.extend(damages);
    verified.leftovers.extend(torn.map(|torn| format!("{torn}; the next opening cuts it off")));
    if is_log_whole {
        snapshots.meet(&mut doing, next, &mut troubles);
        match &mut doing {
            Doing::Engine(engine) => {
                let before = verified.damages.len();
                verified.look_at(engine, &texts);
                troubles.extend(snapshots.late());
                verified.has_all = verified.damages.len() == before && troubles.is_empty();
            }
            Doing::Waiting(Some(rules)) => return Err(rules.clone()),
            Doing::Waiting(None) => {
                let what = "it has no snapshot any more from which it could go on, and its log does not begin at the beginning";
                verified.damages.push(Damage {
                    file: files.describe(""),
                    bytes: None,
                    what: what.to_owned(),
                });
            }
            Doing::Lost => {}
        }
    }
    verified.damages.extend(troubles);
    Ok(verified)
}

/// What does the commands again.
enum Doing {
    Engine(Box<Engine>),
    /// None, until a snapshot says how it stands: what came before cannot be replayed, because the store was repaired, or
    /// because of its rules; then what is to be said if there is no such snapshot.
    Waiting(Option<StoreError>),
    /// None any more, because of a damage.
    Lost,
}

impl Doing {
    fn engine(&mut self) -> Option<&mut Engine> {
        match self {
            Self::Engine(engine) => Some(engine),
            Self::Waiting(_) | Self::Lost => None,
        }
    }
}

/// The snapshots that are whole.
struct Whole<'a> {
    files: &'a Arc<dyn Files>,
    texts: &'a Arc<Texts>,
    /// Their digests and the names of their files, by the record that comes next.
    digests: BTreeMap<u64, (String, u64)>,
    /// The oldest of them: its file may be gone when it is needed, if the store is in use.
    oldest: Option<Snapshot>,
}

impl Whole<'_> {
    /// Before a record, holds the snapshot that was taken there against the engine; or goes on from it.
    fn meet(&mut self, doing: &mut Doing, next: u64, troubles: &mut Vec<Damage>) {
        let Some((file, digest)) = self.digests.remove(&next) else { return };
        match doing {
            Doing::Engine(engine) => {
                if engine.digest() != digest {
                    let what = format!("it is not what the log leads to at record {}", next - 1);
                    troubles.push(Damage { file, bytes: None, what });
                }
            }
            Doing::Waiting(_) => {
                let oldest = self.oldest.take_if(|oldest| oldest.position.next == next);
                let read = || snapshot::read(&**self.files, &snapshot::name(next), self.texts).ok();
                if let Some(snapshot) = oldest.or_else(read) {
                    self.texts.set_ledger(snapshot.ledger);
                    *doing = Doing::Engine(Box::new(snapshot.engine));
                }
            }
            Doing::Lost => {}
        }
    }

    /// Those that nothing in the log leads to.
    fn late(self) -> impl Iterator<Item = Damage> {
        let what = "it goes further than the log, which has lost its end";
        let damage = move |(file, _)| Damage { file, bytes: None, what: what.to_owned() };
        self.digests.into_values().map(damage)
    }
}

/// Reads all snapshots.
fn read_snapshots<'a>(
    files: &'a Arc<dyn Files>,
    texts: &'a Arc<Texts>,
    verified: &mut Verified,
) -> io::Result<Whole<'a>> {
    let mut whole = Whole { files, texts, digests: BTreeMap::new(), oldest: None };
    let mut numbers: Vec<u64> = files.list()?.iter().filter_map(|name| snapshot::number_of(name)).collect();
    numbers.sort_unstable();
    for name in numbers.into_iter().map(snapshot::name) {
        let file = files.describe(&name);
        match snapshot::read(&**files, &name, texts) {
            Ok(mut read) => {
                verified.snapshots += 1;
                for (name, at) in read.places.iter().flat_map(Places::mended) {
                    let file = files.describe(&name);
                    let what = format!(
                        "it is damaged at byte {at}; nothing is lost, since the rest of it makes up for that, and it goes when two more snapshots were taken"
                    );
                    let damage = Damage { file, bytes: None, what };
                    // Two snapshots may have need of it.
                    if !verified.damages.contains(&damage) {
                        verified.damages.push(damage);
                    }
                }
                if let Err(what) = read.engine.check() {
                    verified.damages.push(Damage { file, bytes: None, what });
                } else {
                    whole.digests.insert(read.position.next, (file, read.engine.digest()));
                    whole.oldest.get_or_insert(read);
                }
            }
            // The owner has removed it since it was listed, and then what it refers to.
            Err(Unusable::Unfinished | Unusable::Unreadable(_) | Unusable::Broken(_))
                if !files.list()?.contains(&name) => {}
            Err(Unusable::Unfinished) => {
                verified.leftovers.push(format!(
                    "{file} was never finished; the next opening removes it, and the files of frames that came with it"
                ));
            }
            Err(Unusable::Broken(what) | Unusable::Unreadable(what)) => {
                verified.damages.push(Damage { file, bytes: None, what });
            }
            Err(Unusable::Newer(what)) => verified.damages.push(Damage { file, bytes: None, what }),
        }
    }
    Ok(whole)
}

impl Verified {
    /// Looks at the engine that everything led to: its invariants, and whether every request can be read.
    fn look_at(&mut self, engine: &Engine, texts: &Texts) {
        if let Err(what) = engine.check() {
            self.damages.push(Damage { file: "the engine".to_owned(), bytes: None, what });
        }
        let mut alive: BTreeMap<u64, u64> = BTreeMap::new();
        for place in engine.all_places() {
            *alive.entry(segment_of(place)).or_default() += 1;
        }
        if texts.ledger().alive() != alive {
            let what = "it counts otherwise what is needed of which segment than there is".to_owned();
            self.damages.push(Damage { file: "the ledger".to_owned(), bytes: None, what });
        }
        for (_, key, place) in engine.note_places() {
            if let Err(failure) = texts.read_note(place) {
                let what = format!("what the note `{key}` says: {failure}");
                self.damages.push(Damage { file: "the log".to_owned(), bytes: None, what });
            }
        }
        self.crawls = engine.crawls().count() as u64;
        for (_, identity, key, place) in engine.places() {
            self.urls += 1;
            if let Err(failure) = texts.read(place) {
                let what = format!("the request of URL {:032x} of queue {key}: {failure}", identity.0);
                self.damages.push(Damage { file: "the log".to_owned(), bytes: None, what });
            }
        }
    }
}
