//! The snapshot: an image of the engine as it was at a place of the log, from which opening goes on.
//!
//! ```text
//!  0  8 bytes  "snapshot"
//!  8  u32      version of the format
//! 12  u32      length of this header: frames begin there
//! 16  u128     number of the store
//! 32  u64      number of the record that comes next
//! 40  u64      number of the segment where that is, or would be
//! 48  u64      and the byte there
//! 56  u64      xxh3 of all above
//! 64           from format 2 on: the ledger, see `ledger.rs`, and the xxh3 of it (u64)
//! ```
//!
//! From format 3 on, numbers of URLs are written as steps; from format 5 on, those of retries, visits and dates too; from format 6 on
//! frames may be elsewhere.
//!
//! Each frame is its length (u32), a checksum (u64: xxh3, seeded with the frame's number from 0) and an engine's frame. Or, if the highest
//! bit of the length is set, where the frame is in another file: see `frames.rs`. The last one says that it is the last, so a snapshot that was not
//! finished is none.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use trapline_frontier::{BadImage, Engine, Frame, FrameOf, FrameSource, Picture, ReadFrame};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::due::Size;
use super::files::{Files, LogFile};
use super::frames::{FrameFile, FrameFiles, FramePlace, FramesWriter, Places, Placing};
use super::growing::Growing;
use super::ledger::Ledger;
use super::lent::{Lender, LentFrames};
use super::log::Position;
use super::texts::Texts;

const MAGIC: &[u8; 8] = b"snapshot";
pub(crate) const FORMAT: u32 = 6;
/// The last format without a ledger.
const WITHOUT_LEDGER: u32 = 1;
const HEADER: usize = 64;
/// No ledger has as many bytes: that would be a million segments.
const LEDGER_BYTES_MAX: usize = 32 << 20;
/// So many bytes a text is thought to have of which nothing is known but its place.
pub(crate) const TEXT_BYTES: u64 = 100;
const FRAME_HEADER: usize = 12;
const ENDING: &str = ".snapshot";
/// In the length of a frame: it is elsewhere.
const ELSEWHERE: u32 = 1 << 31;

/// The name of the snapshot of everything before this record.
pub(crate) fn name(next: u64) -> String {
    format!("{next:010}{ENDING}")
}

/// The number in a file's name; None if it is no snapshot's.
pub(crate) fn number_of(file: &str) -> Option<u64> {
    let number = file.strip_suffix(ENDING)?.parse().ok()?;
    (name(number) == file).then_some(number)
}

/// Where the chunks of an image go.
#[derive(Clone, Copy)]
pub(crate) enum Chunks<'f> {
    /// With everything else.
    Inside,
    /// To files of their own, so that a later snapshot can refer to them.
    Beside,
    /// The same, but for those that are as they were in the snapshot before, whose are there.
    Since(&'f Places),
}

impl Chunks<'_> {
    /// What of the engine has to be in the image.
    pub(crate) fn extent(self) -> Picture {
        match self {
            Self::Inside | Self::Beside => Picture::Whole,
            Self::Since(_) => Picture::Changes,
        }
    }
}

/// A snapshot being written.
pub(crate) struct Writer<'f> {
    file: Growing,
    frames: u64,
    beside: Option<FramesWriter<'f>>,
}

/// A snapshot that was written.
pub(crate) struct Written {
    pub(crate) size: Size,
    /// Where its chunks are, if others can refer to them.
    pub(crate) places: Option<Places>,
}

impl<'f> Writer<'f> {
    pub(crate) fn begin(
        files: &'f dyn Files,
        store: u128,
        position: Position,
        ledger: &Ledger,
        chunks: Chunks<'f>,
    ) -> io::Result<Self> {
        let ledger = ledger.encode();
        let length = HEADER + ledger.len() + size_of::<u64>();
        let mut header = Vec::with_capacity(length);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&FORMAT.to_le_bytes());
        header.extend_from_slice(&(length as u32).to_le_bytes());
        header.extend_from_slice(&store.to_le_bytes());
        for number in [position.next, position.segment, position.at] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        header.extend_from_slice(&xxh3_64(&header).to_le_bytes());
        header.extend_from_slice(&ledger);
        header.extend_from_slice(&xxh3_64(&ledger).to_le_bytes());
        let before = match chunks {
            Chunks::Inside => None,
            Chunks::Beside => Some(None),
            Chunks::Since(before) => Some(Some(before)),
        };
        // Whoever makes a copy of the folder meanwhile finds those files if it finds this one.
        let beside = before.map(|before| FramesWriter::begin(files, position.next, before));
        let beside = beside.transpose()?;
        let mut file = Growing::create(files, &name(position.next))?;
        file.put(&[&header])?;
        Ok(Self { file, frames: 0, beside })
    }

    /// Takes the next frames of an image, of which there must be some. Answers the last one, which is written to finish it.
    pub(crate) fn frames(&mut self, frames: Vec<Frame>) -> io::Result<Option<Frame>> {
        if frames.is_empty() {
            return Err(io::Error::other("the image of the engine was given up before it was complete"));
        }
        for frame in frames {
            let bytes = frame.encode();
            match (frame.of(), &mut self.beside) {
                (FrameOf::End, _) => return Ok(Some(frame)),
                (FrameOf::Chunk(of), Some(beside)) => {
                    let place = beside.chunk(of, bytes.as_deref())?;
                    self.put(ELSEWHERE, &place.encode())?;
                    continue;
                }
                (FrameOf::Crawl(name), Some(beside)) => beside.crawl(name),
                _ => {}
            }
            self.put(0, &bytes.ok_or_else(|| io::Error::other("a chunk is left out, and nothing has it"))?)?;
        }
        Ok(None)
    }

    fn put(&mut self, kind: u32, frame: &[u8]) -> io::Result<()> {
        let length = u32::try_from(frame.len()).ok().filter(|length| *length < ELSEWHERE);
        let length = length.ok_or(io::ErrorKind::FileTooLarge)?;
        let checksum = xxh3_64_with_seed(frame, self.frames);
        self.frames += 1;
        self.file.put(&[&(length | kind).to_le_bytes(), &checksum.to_le_bytes(), frame])
    }

    /// Whether something of the snapshot before, to which this one was to refer, could not be read.
    pub(crate) fn has_lost_some(&self) -> bool {
        self.beside.as_ref().is_some_and(|beside| beside.has_lost_some)
    }

    /// Brings it to disk with its last frame.
    pub(crate) fn finish(mut self, last: &Frame, files: &dyn Files) -> io::Result<Written> {
        let mut beside = (0, None);
        if let Some(frames) = self.beside.take() {
            // What it refers to is there before it is whole.
            beside = frames.finish()?;
            files.sync_folder()?;
        }
        let last = last.encode().ok_or_else(|| io::Error::other("the end is left out"))?;
        self.put(0, &last)?;
        self.file.finish()?;
        files.sync_folder()?;
        let (own, (frames, places)) = (self.file.len(), beside);
        let bytes = own + places.as_ref().map_or(0, Places::bytes);
        Ok(Written { size: Size { bytes, written: own + frames }, places })
    }
}

/// A snapshot that was read.
pub(crate) struct Snapshot {
    pub(crate) engine: Engine,
    pub(crate) store: u128,
    pub(crate) position: Position,
    pub(crate) ledger: Ledger,
    /// How many bytes it has, with what it refers to.
    pub(crate) bytes: u64,
    /// Where its chunks are, if others can refer to them.
    pub(crate) places: Option<Places>,
}

/// What a snapshot says of itself.
pub(crate) struct Header {
    pub(crate) store: u128,
    pub(crate) position: Position,
    /// None in a format that had none.
    pub(crate) ledger: Option<Ledger>,
    /// Where frames begin.
    length: u64,
}

/// Why a snapshot is none.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// It was never finished.
    Unfinished,
    /// It is damaged, or the power went while it was written; the log has all that is in it.
    Broken(String),
    /// The disk does not give it; another time it may.
    Unreadable(String),
    /// A format to come, or an engine: what it has, and what is known here.
    Newer(String),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfinished => f.write_str("it was never finished"),
            Self::Broken(what) | Self::Unreadable(what) | Self::Newer(what) => f.write_str(what),
        }
    }
}

impl Unusable {
    /// Whether something has happened to it that should not.
    pub(crate) fn is_trouble(&self) -> bool {
        !matches!(self, Self::Unfinished)
    }
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(format!("it cannot be read: {error}"))
    }
}

/// Reads only what a snapshot says of itself.
pub(crate) fn read_header(files: &dyn Files, file: &str) -> Result<Header, Unusable> {
    header_of(&*files.open(file)?)
}

fn header_of(file: &dyn LogFile) -> Result<Header, Unusable> {
    let broken = |what: &str| Unusable::Broken(what.to_owned());
    let header = file.read_at(0, HEADER)?;
    if header.len() < HEADER {
        return Err(Unusable::Unfinished);
    }
    if header[..8] != *MAGIC {
        return Err(broken("it has no header"));
    }
    let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    let format = number(8) as u32;
    if format > FORMAT {
        return Err(Unusable::Newer(format!(
            "it has format {format}, and this version of Trapline knows snapshots up to format {FORMAT}"
        )));
    }
    if !(WITHOUT_LEDGER..=FORMAT).contains(&format) || number(56) != xxh3_64(&header[..56]) {
        return Err(broken("its header is damaged"));
    }
    let store = u128::from_le_bytes(header[16..32].try_into().expect("sixteen bytes"));
    let position = Position { next: number(32), segment: number(40), at: number(48) };
    if format == WITHOUT_LEDGER {
        return Ok(Header { store, position, ledger: None, length: HEADER as u64 });
    }
    let length = (number(8) >> 32) as usize;
    let ledger_bytes = length.checked_sub(HEADER + size_of::<u64>());
    let ledger_bytes = ledger_bytes.filter(|bytes| *bytes <= LEDGER_BYTES_MAX);
    let ledger_bytes = ledger_bytes.ok_or_else(|| broken("its header is damaged"))?;
    let ledger = file.read_at(HEADER as u64, ledger_bytes + size_of::<u64>())?;
    let Some((ledger, checksum)) = ledger.split_at_checked(ledger_bytes).filter(|(_, rest)| rest.len() == 8)
    else {
        return Err(Unusable::Unfinished);
    };
    let decoded = Ledger::decode(ledger).filter(|_| *checksum == xxh3_64(ledger).to_le_bytes());
    let ledger = Some(decoded.ok_or_else(|| broken("its ledger is damaged"))?);
    Ok(Header { store, position, ledger, length: length as u64 })
}

/// Reads the snapshot in a file.
pub(crate) fn read(files: &dyn Files, file: &str, texts: &Arc<Texts>) -> Result<Snapshot, Unusable> {
    read_into(texts.engine(), files, file, texts, None)
}

/// Reads the snapshot in a file, into an engine without crawls that has these texts. A lender may leave much of it where it is.
pub(crate) fn read_into(
    engine: Engine,
    files: &dyn Files,
    name: &str,
    texts: &Arc<Texts>,
    lender: Option<&Arc<Lender>>,
) -> Result<Snapshot, Unusable> {
    let file = files.open(name)?;
    let Header { store, position, ledger, length } = header_of(&*file)?;
    // All frames that there are: it may refer to any of them.
    let beside = files.list()?.into_iter().filter(|name| FrameFile::named(name).is_some());
    let beside: u64 = beside.filter_map(|name| files.bytes(&name).ok()).sum();
    let bytes = files.bytes(name)? + beside;
    let lent = lender.filter(|lender| lender.lends(bytes));
    let lent = lent.map(|lender| LentFrames::new(lender, &file, files.describe(name)));
    let mut restore = match &lent {
        // The identity alone takes sixteen bytes.
        Some(lent) => engine.restore_from(Arc::clone(lent) as Arc<dyn FrameSource>, bytes / 16),
        None => engine.restore(),
    };
    let mut end = length;
    let mut placing = Placing::default();
    // Reading takes half of the time, and another thread can do that.
    std::thread::scope(|scope| {
        let (sender, frames) = std::sync::mpsc::sync_channel(READ_AHEAD);
        let (file, lent) = (&*file, lent.as_deref());
        let elsewhere = FrameFiles::new(files);
        scope.spawn(move || read_frames((file, length), elsewhere, lent, &sender));
        for frame in frames {
            let (place, elsewhere, frame) = frame?;
            end = place.end;
            placing.frame(frame.of(), elsewhere);
            restore.frame(frame).map_err(|error| {
                // What was whole when it was read first, and cannot be read once more, is not damaged.
                let failure = lent.and_then(|_| lender?.take_failure());
                failure.map_or_else(
                    || unusable(place.start, &error),
                    |failure| Unusable::Unreadable(failure.to_string()),
                )
            })?;
        }
        Ok::<_, Unusable>(())
    })?;
    let engine = restore.finish().map_err(|_| Unusable::Unfinished)?;
    if let Some(failure) = texts.take_failure() {
        return Err(Unusable::Unreadable(failure.to_string()));
    }
    let ledger = ledger.unwrap_or_else(|| Ledger::of_places(engine.all_places(), TEXT_BYTES));
    let mut places = placing.finish();
    if let Some(places) = &mut places {
        FrameFiles::new(files).look_at_parity(places)?;
    }
    let bytes = end + places.as_ref().map_or(0, Places::bytes);
    Ok(Snapshot { engine, store, position, ledger, bytes, places })
}

/// So many frames are read ahead.
const READ_AHEAD: usize = 64;

/// Where it stands in the snapshot; where it is if elsewhere, and whether it is damaged there; and what it has.
type PlacedFrame = (Range<u64>, Option<(FramePlace, bool)>, ReadFrame);

/// Reads the frames from a byte on, and says where each is, until one is none or nobody wants them any more.
fn read_frames(
    (file, begin): (&dyn LogFile, u64),
    mut elsewhere: FrameFiles<'_>,
    lent: Option<&LentFrames>,
    sender: &SyncSender<Result<PlacedFrame, Unusable>>,
) {
    let mut at = begin;
    for number in 0.. {
        let Some(found) = read_bytes(file, at, number).transpose() else { return };
        let frame = found.and_then(|found| {
            let place = at..at + (FRAME_HEADER + found.len()) as u64;
            at = place.end;
            let (elsewhere, bytes) = match found {
                Found::Here(bytes) => {
                    lent.inspect(|lent| lent.begins(place.start));
                    (None, bytes)
                }
                Found::Elsewhere(there) => {
                    let (read, file) = elsewhere.read(there).map_err(|why| match why {
                        // Whoever is killed while it is written leaves references to what was still in memory.
                        Unusable::Broken(_) if !is_finished(file, at, number + 1) => Unusable::Unfinished,
                        why => why,
                    })?;
                    let name = || elsewhere.describe(there.file());
                    lent.inspect(|lent| lent.is_elsewhere(there, &file, name));
                    (Some((there, read.is_mended)), read.bytes)
                }
            };
            let frame = match lent {
                Some(_) => ReadFrame::lend(&bytes, number),
                None => ReadFrame::read(&bytes),
            };
            frame
                .map(|frame| (place.clone(), elsewhere, frame))
                .map_err(|error| unusable(place.start, &error))
        });
        let is_none = frame.is_err();
        if sender.send(frame).is_err() || is_none {
            return;
        }
    }
}

/// Whether the frames from a byte on, of which the first has this number, come to an end.
fn is_finished(file: &dyn LogFile, mut at: u64, first: u64) -> bool {
    let mut last = None;
    for number in first.. {
        let Ok(Some(found)) = read_bytes(file, at, number) else { break };
        at += (FRAME_HEADER + found.len()) as u64;
        last = Some(found);
    }
    match last {
        Some(Found::Here(bytes)) => ReadFrame::read(&bytes).is_ok_and(|frame| frame.of() == FrameOf::End),
        _ => false,
    }
}

/// The files that a snapshot refers to, as far as it can be read.
pub(crate) fn files_needed(files: &dyn Files, name: &str) -> io::Result<BTreeSet<FrameFile>> {
    let file = files.open(name)?;
    let mut needed = BTreeSet::new();
    let Ok(Header { length: mut at, .. }) = header_of(&*file) else { return Ok(needed) };
    for number in 0.. {
        let Ok(Some(found)) = read_bytes(&*file, at, number) else { break };
        at += (FRAME_HEADER + found.len()) as u64;
        if let Found::Elsewhere(place) = found {
            needed.insert(place.file());
        }
    }
    Ok(needed)
}

/// What stands in a snapshot for a frame.
pub(crate) enum Found {
    Here(Vec<u8>),
    Elsewhere(FramePlace),
}

impl Found {
    fn len(&self) -> usize {
        match self {
            Self::Here(bytes) => bytes.len(),
            Self::Elsewhere(_) => FramePlace::BYTES,
        }
    }
}

/// The frame at a byte, or where it is; None at the end.
pub(crate) fn read_bytes(file: &dyn LogFile, at: u64, number: u64) -> Result<Option<Found>, Unusable> {
    let head = file.read_at(at, FRAME_HEADER)?;
    if head.is_empty() {
        return Ok(None);
    }
    let Some((length, checksum)) = head.split_first_chunk().filter(|_| head.len() == FRAME_HEADER) else {
        return Err(Unusable::Unfinished);
    };
    let length = u32::from_le_bytes(*length);
    let (is_elsewhere, length) = (length & ELSEWHERE != 0, (length & !ELSEWHERE) as usize);
    let frame = file.read_at(at + FRAME_HEADER as u64, length)?;
    if frame.len() != length {
        return Err(Unusable::Unfinished);
    }
    let broken = || Unusable::Broken(format!("it is damaged at byte {at}"));
    if *checksum != xxh3_64_with_seed(&frame, number).to_le_bytes() {
        return Err(broken());
    }
    if !is_elsewhere {
        return Ok(Some(Found::Here(frame)));
    }
    FramePlace::decode(&frame).map(|place| Some(Found::Elsewhere(place))).ok_or_else(broken)
}

fn unusable(at: u64, error: &BadImage) -> Unusable {
    match error {
        BadImage::Newer(_) => Unusable::Newer(error.to_string()),
        _ => Unusable::Broken(format!("at byte {at}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::files::Folder;

    /// Nothing more to take does not mean that everything was taken: only the last frame says so.
    #[test]
    fn an_image_that_was_given_up_makes_no_snapshot() {
        let path = std::env::temp_dir().join(format!("trapline-given-up-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let (folder, position) = (Folder::new(&path), Position { next: 1, segment: 1, at: 64 });
        let mut writer = Writer::begin(&folder, 7, position, &Ledger::default(), Chunks::Inside).unwrap();
        let mut engine = Engine::named("disk");
        engine.begin_image(Picture::Whole);
        let last = writer.frames(engine.next_frames()).unwrap();
        engine.begin_image(Picture::Whole);
        engine.drop_image();
        let error = writer.frames(engine.next_frames()).unwrap_err().to_string();
        std::fs::remove_dir_all(&path).unwrap();
        assert!(last.is_some_and(|last| last.of() == FrameOf::End));
        assert_eq!(error, "the image of the engine was given up before it was complete");
    }
}
