//! Files of frames: the chunks of large images. A snapshot has some of its own, with what has changed since the snapshot before it, and
//! refers to those of earlier ones for the rest. What lasts long (records of URLs) and what does not (queues) are in different files, so that
//! a file is needed as a whole or not at all, mostly.
//!
//! A file begins with eight bytes: "frames", a zero, and a number for what they are of.
//!
//! Each frame is its length (u32), a checksum (u64: xxh3, seeded with the byte of the file where it begins) and an engine's frame. Between
//! them and at the end is what they can be mended with, with some zeros before and after it: see `parity.rs`.
//!
//! What is absent: which of them is which. The snapshots know.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use trapline_frontier::{ChunkOf, FrameOf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::files::{Files, LogFile};
use super::growing::Growing;
use super::parity::{self, Parity};
use super::snapshot::Unusable;

const MAGIC: &[u8; 7] = b"frames\0";
const HEADER: usize = 8;
const FRAME_HEADER: usize = 12;
/// What snapshots have no use for any more may be such a part of what they need, before it is left behind.
const WASTE_SHARE: u64 = 4;

/// If there are more files of a kind, the smallest become one.
const FILES_MOST: usize = 32;

/// Disks lose as much at once, or more.
const SECTOR: usize = 4096;
/// No frame takes less, so that not too many are lost with a sector.
const FRAME_LEAST: usize = 2048;

const KINDS: [ChunkOf; 4] = [ChunkOf::Records, ChunkOf::Lives, ChunkOf::Mores, ChunkOf::Queues];
const ENDINGS: [&str; 4] = [".records", ".lives", ".mores", ".queues"];

/// Which of all kinds it is.
fn kind(of: ChunkOf) -> usize {
    KINDS.iter().position(|kind| *kind == of).expect("all are there")
}

/// A file of frames: what they are of, and with which snapshot it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameFile {
    kind: usize,
    pub(crate) number: u64,
}

impl FrameFile {
    /// Those of a snapshot of everything before this record.
    pub(crate) fn all(next: u64) -> [Self; 4] {
        [0, 1, 2, 3].map(|kind| Self { kind, number: next })
    }

    pub(crate) fn name(self) -> String {
        format!("{:010}{}", self.number, ENDINGS[self.kind])
    }

    /// The one that has this name; None if it is no such file's.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let named = |(kind, ending): (usize, &&str)| {
            let number = name.strip_suffix(*ending)?.parse().ok()?;
            Some(Self { kind, number }).filter(|file| file.name() == name)
        };
        ENDINGS.iter().enumerate().find_map(named)
    }

    fn header(self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..MAGIC.len()].copy_from_slice(MAGIC);
        header[MAGIC.len()] = self.kind as u8;
        header
    }
}

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FramePlace {
    file: FrameFile,
    /// The byte in it.
    at: u64,
    bytes: u32,
    checksum: u64,
}

impl FramePlace {
    pub(crate) const BYTES: usize = 29;

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let Self { file: FrameFile { kind, number }, at, bytes, checksum } = self;
        let mut encoded = [0; Self::BYTES];
        encoded[..8].copy_from_slice(&number.to_le_bytes());
        encoded[8..16].copy_from_slice(&at.to_le_bytes());
        encoded[16..24].copy_from_slice(&checksum.to_le_bytes());
        encoded[24..28].copy_from_slice(&bytes.to_le_bytes());
        encoded[28] = kind as u8;
        encoded
    }

    pub(crate) fn decode(encoded: &[u8]) -> Option<Self> {
        let encoded: &[u8; Self::BYTES] = encoded.try_into().ok()?;
        let number = |at: usize| u64::from_le_bytes(encoded[at..at + 8].try_into().expect("eight bytes"));
        let bytes = u32::from_le_bytes(encoded[24..28].try_into().expect("four bytes"));
        let kind = usize::from(encoded[28]);
        let file = FrameFile { kind, number: number(0) };
        (kind < KINDS.len()).then_some(Self { file, at: number(8), bytes, checksum: number(16) })
    }

    pub(crate) fn file(self) -> FrameFile {
        self.file
    }

    pub(crate) fn at(self) -> u64 {
        self.at
    }

    /// What it takes there.
    pub(crate) fn len(self) -> u64 {
        FRAME_HEADER as u64 + u64::from(self.bytes)
    }

    /// The bytes of the frame there, mended if need be; None if they are not what they were.
    pub(crate) fn read(self, file: &dyn LogFile) -> io::Result<Option<ReadAt>> {
        let read = file.read_at(self.at, self.len() as usize);
        if let Some(bytes) = read.as_ref().ok().and_then(|bytes| self.whole(bytes)) {
            return Ok(Some(ReadAt { bytes, is_mended: false }));
        }
        // What the disk does not give any more is as good as damaged.
        let mended = parity::mend(file, self.at).ok().flatten();
        let mended = mended.and_then(|bytes| self.whole(&bytes));
        if mended.is_none() {
            read?;
        }
        Ok(mended.map(|bytes| ReadAt { bytes, is_mended: true }))
    }

    /// The frame in these bytes, if it is the one that was there.
    fn whole(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (head, frame) = bytes.split_at_checked(FRAME_HEADER)?;
        let is_whole = *head == piece_header(self.bytes, self.checksum)
            && frame.len() as u64 == u64::from(self.bytes)
            && xxh3_64_with_seed(frame, self.at) == self.checksum;
        is_whole.then(|| frame.to_vec())
    }
}

/// A frame that was read.
pub(crate) struct ReadAt {
    pub(crate) bytes: Vec<u8>,
    /// Whether it is damaged where it stands.
    pub(crate) is_mended: bool,
}

fn piece_header(bytes: u32, checksum: u64) -> [u8; FRAME_HEADER] {
    let mut header = [0; FRAME_HEADER];
    header[..4].copy_from_slice(&bytes.to_le_bytes());
    header[4..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// What stands in a file at a byte, whoever refers to it; None if it is not whole.
pub(super) fn read_piece(file: &dyn LogFile, at: u64) -> io::Result<Option<Vec<u8>>> {
    let header = file.read_at(at, FRAME_HEADER)?;
    let Some((length, checksum)) = header.split_first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    let bytes = file.read_at(at + FRAME_HEADER as u64, length)?;
    let is_whole = bytes.len() == length && *checksum == xxh3_64_with_seed(&bytes, at).to_le_bytes();
    Ok(is_whole.then_some(bytes))
}

/// Where the chunks of a snapshot are, in their order.
#[derive(Debug, Default)]
pub(crate) struct Places {
    crawls: BTreeMap<String, [Vec<FramePlace>; 4]>,
    /// The files in which one had to be mended, and the byte where.
    mended: BTreeMap<FrameFile, u64>,
}

impl Places {
    fn all(&self) -> impl Iterator<Item = &FramePlace> {
        self.crawls.values().flatten().flatten()
    }

    /// What it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.all().map(|place| place.len()).sum()
    }

    /// The files that they are in, and how much of each is needed.
    pub(crate) fn files(&self) -> BTreeMap<FrameFile, u64> {
        let mut files = BTreeMap::new();
        for place in self.all() {
            *files.entry(place.file).or_default() += place.len();
        }
        files
    }

    /// The names of files in which a frame had to be mended, and the byte where.
    pub(crate) fn mended(&self) -> impl Iterator<Item = (String, u64)> {
        self.mended.iter().map(|(file, at)| (file.name(), *at))
    }

    /// The files whose frames are better written once more.
    fn worn(&self, files: &dyn Files) -> BTreeSet<FrameFile> {
        let mut sizes = Vec::new();
        let mut bad: BTreeSet<FrameFile> = self.mended.keys().copied().collect();
        for (file, needed) in self.files() {
            match files.open(&file.name()) {
                // Of one that does not say how much it has, everything is thought to be needed.
                Ok(open) => {
                    sizes.push((file, needed, parity::frame_bytes(&*open).unwrap_or(needed).max(needed)));
                }
                // Whoever wants to read there finds out.
                Err(_) => drop(bad.insert(file)),
            }
        }
        let kinds = (0..KINDS.len()).map(|kind| sizes.iter().filter(move |(file, ..)| file.kind == kind));
        let worn = kinds.flat_map(|files| worn(files.copied().collect()));
        worn.chain(bad).collect()
    }
}

/// Of files of one kind, each with how much of it is needed and how much it has, those whose frames are better written once more.
fn worn(mut files: Vec<(FrameFile, u64, u64)>) -> BTreeSet<FrameFile> {
    let mut worn = BTreeSet::new();
    if files.len() > FILES_MOST {
        files.sort_unstable_by_key(|(_, needed, _)| *needed);
        worn.extend(files.drain(..files.len() - FILES_MOST / 2).map(|(file, ..)| file));
    }
    let most = files.iter().map(|(_, needed, _)| needed).sum::<u64>() / WASTE_SHARE;
    let mut waste: u64 = files.iter().map(|(_, needed, bytes)| bytes - needed).sum();
    // Those of which the smallest part is needed.
    files.sort_unstable_by_key(|(_, needed, bytes)| (u128::from(*needed) << 64) / u128::from(*bytes).max(1));
    for (file, needed, bytes) in files {
        if waste <= most {
            break;
        }
        waste -= bytes - needed;
        worn.insert(file);
    }
    worn
}

/// Notes where the chunks of an image are, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Placing {
    places: Places,
    crawl: String,
    /// Whether a chunk is nowhere but in its snapshot.
    has_other: bool,
}

impl Placing {
    /// A crawl begins.
    pub(crate) fn crawl(&mut self, name: &str) {
        name.clone_into(&mut self.crawl);
        self.places.crawls.entry(name.to_owned()).or_default();
    }

    /// The next chunk is there.
    pub(crate) fn chunk(&mut self, of: ChunkOf, place: Option<FramePlace>) {
        match (place, self.places.crawls.get_mut(&self.crawl)) {
            (Some(place), Some(lists)) => lists[kind(of)].push(place),
            _ => self.has_other = true,
        }
    }

    /// A frame that was read; where it was if not in its snapshot, and whether it is damaged there.
    pub(crate) fn frame(&mut self, of: FrameOf<'_>, place: Option<(FramePlace, bool)>) {
        if let Some((place, true)) = place {
            self.places.mended.entry(place.file).or_insert(place.at);
        }
        let place = place.map(|(place, _)| place);
        match of {
            FrameOf::Crawl(name) => self.crawl(name),
            FrameOf::Chunk(of) => self.chunk(of, place),
            FrameOf::Other | FrameOf::End => {}
        }
    }

    /// Where the next chunk was in another snapshot.
    pub(crate) fn next_in(&self, other: &Places, of: ChunkOf) -> Option<FramePlace> {
        let number = self.places.crawls.get(&self.crawl)?[kind(of)].len();
        other.crawls.get(&self.crawl)?[kind(of)].get(number).copied()
    }

    /// All of them; None if some are nowhere but in their snapshot, so that no other can refer to them.
    pub(crate) fn finish(self) -> Option<Places> {
        (!self.has_other).then_some(self.places)
    }
}

/// Files of frames, each opened when it is wanted.
pub(crate) struct FrameFiles<'f> {
    files: &'f dyn Files,
    open: BTreeMap<FrameFile, Arc<dyn LogFile>>,
}

impl<'f> FrameFiles<'f> {
    pub(crate) fn new(files: &'f dyn Files) -> Self {
        Self { files, open: BTreeMap::new() }
    }

    /// What people call a file.
    pub(crate) fn describe(&self, file: FrameFile) -> String {
        self.files.describe(&file.name())
    }

    fn open(&mut self, file: FrameFile) -> Result<Arc<dyn LogFile>, Unusable> {
        if let Some(open) = self.open.get(&file) {
            return Ok(Arc::clone(open));
        }
        let open = match self.files.open(&file.name()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let name = self.describe(file);
                return Err(Unusable::Broken(format!("{name} is missing, where some of it is")));
            }
            opened => opened?,
        };
        self.open.insert(file, Arc::clone(&open));
        Ok(open)
    }

    /// Looks at what the files of these frames could be mended with: a file without it goes as one that had to be mended.
    pub(crate) fn look_at_parity(&mut self, places: &mut Places) -> Result<(), Unusable> {
        for file in places.files().into_keys() {
            let open = self.open(file)?;
            let header = open.read_at(0, HEADER).is_ok_and(|header| header == file.header());
            // What the disk does not give is as good as damaged.
            let damage = if header { parity::damage(&*open).unwrap_or(Some(0)) } else { Some(0) };
            if let Some(at) = damage {
                places.mended.entry(file).or_insert(at);
            }
        }
        Ok(())
    }

    /// The bytes of a frame, and the file that it is in.
    pub(crate) fn read(&mut self, place: FramePlace) -> Result<(ReadAt, Arc<dyn LogFile>), Unusable> {
        let file = self.open(place.file)?;
        match place.read(&*file)? {
            Some(read) => Ok((read, file)),
            None => {
                let name = self.describe(place.file);
                Err(Unusable::Broken(format!("{name}, where some of it is, is damaged at byte {}", place.at)))
            }
        }
    }
}

/// The frames of a snapshot being written.
pub(crate) struct FramesWriter<'f> {
    files: &'f dyn Files,
    new: [NewFile; 4],
    /// Those of the snapshot before, the files that are worn, and all of them to read in.
    before: Option<&'f Places>,
    worn: BTreeSet<FrameFile>,
    old: FrameFiles<'f>,
    /// Whether something of the snapshot before could not be read.
    pub(crate) has_lost_some: bool,
    placing: Placing,
}

impl<'f> FramesWriter<'f> {
    /// `before`: where the frames are of the snapshot since which this one has the changes.
    pub(crate) fn begin(files: &'f dyn Files, number: u64, before: Option<&'f Places>) -> io::Result<Self> {
        let worn = before.map(|before| before.worn(files));
        let create = |file: FrameFile| {
            let mut growing = Growing::create(files, &file.name())?;
            growing.put(&[&file.header()])?;
            Ok::<_, io::Error>(NewFile { file, growing, parity: Parity::default() })
        };
        let [records, lives, mores, queues] = FrameFile::all(number);
        Ok(Self {
            files,
            new: [create(records)?, create(lives)?, create(mores)?, create(queues)?],
            before,
            worn: worn.unwrap_or_default(),
            old: FrameFiles::new(files),
            has_lost_some: false,
            placing: Placing::default(),
        })
    }

    pub(crate) fn crawl(&mut self, name: &str) {
        self.placing.crawl(name);
    }

    /// Takes the next chunk, or None for one that is as it was before. Answers where it is.
    pub(crate) fn chunk(&mut self, of: ChunkOf, frame: Option<&[u8]>) -> io::Result<FramePlace> {
        let place = match frame {
            Some(frame) => self.new[kind(of)].frame(frame)?,
            None => self.same(of)?,
        };
        self.placing.chunk(of, Some(place));
        Ok(place)
    }

    /// Where a chunk is that is as it was before.
    fn same(&mut self, of: ChunkOf) -> io::Result<FramePlace> {
        let place = self.before.and_then(|before| self.placing.next_in(before, of));
        let place = place.ok_or_else(|| io::Error::other("the snapshot before it has less than it should"));
        let place = place.inspect_err(|_| self.has_lost_some = true)?;
        if !self.worn.contains(&place.file) {
            return Ok(place);
        }
        let read = self.old.read(place).map_err(|why| io::Error::other(why.to_string()));
        let (frame, _) = read.inspect_err(|_| self.has_lost_some = true)?;
        self.new[kind(of)].frame(&frame.bytes)
    }

    /// Brings it to disk, and says how large it is, and where everything is.
    pub(crate) fn finish(self) -> io::Result<(u64, Option<Places>)> {
        let mut bytes = 0;
        for new in self.new {
            if new.growing.len() == HEADER as u64 {
                self.files.remove(&new.file.name())?;
            } else {
                bytes += new.finish()?;
            }
        }
        Ok((bytes, self.placing.finish()))
    }
}

/// A file of frames being written.
struct NewFile {
    file: FrameFile,
    growing: Growing,
    parity: Parity,
}

impl NewFile {
    fn frame(&mut self, frame: &[u8]) -> io::Result<FramePlace> {
        let (at, bytes, checksum) = self.piece(frame)?;
        self.pad(FRAME_LEAST.saturating_sub(FRAME_HEADER + frame.len()))?;
        if self.parity.add(at, &[&piece_header(bytes, checksum), frame]) {
            self.parity()?;
        }
        Ok(FramePlace { file: self.file, at, bytes, checksum })
    }

    /// What the frames can be mended with that were not followed by it yet.
    fn parity(&mut self) -> io::Result<()> {
        self.pad(SECTOR)?;
        for group in self.parity.take() {
            let (at, ..) = self.piece(&group)?;
            self.parity.is_at(at);
        }
        self.pad(SECTOR)
    }

    /// So many zeros, so that what stands before and after them is not lost together.
    fn pad(&mut self, bytes: usize) -> io::Result<()> {
        self.growing.put(&[&[0; SECTOR][..bytes]])
    }

    fn piece(&mut self, piece: &[u8]) -> io::Result<(u64, u32, u64)> {
        let bytes = u32::try_from(piece.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let at = self.growing.len();
        let checksum = xxh3_64_with_seed(piece, at);
        self.growing.put(&[&piece_header(bytes, checksum), piece])?;
        Ok((at, bytes, checksum))
    }

    /// Brings it to disk, and says how large it is.
    fn finish(mut self) -> io::Result<u64> {
        self.parity()?;
        let (at, ..) = self.piece(&self.parity.index())?;
        self.growing.put(&[&self.parity.trailer(at)])?;
        self.growing.finish()?;
        Ok(self.growing.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: u64) -> FrameFile {
        FrameFile { kind: 0, number }
    }

    #[test]
    fn names_and_places_come_back() {
        let names = FrameFile::all(7).map(FrameFile::name);
        assert_eq!(
            names,
            ["0000000007.records", "0000000007.lives", "0000000007.mores", "0000000007.queues"]
        );
        assert_eq!(names.map(|name| FrameFile::named(&name)), FrameFile::all(7).map(Some));
        for name in
            ["7.records", "0000000007.record", "00000000007.records", "records", "0000000007.snapshot"]
        {
            assert_eq!(FrameFile::named(name), None, "{name}");
        }
        let place =
            FramePlace { file: FrameFile { kind: 3, number: 5 }, at: u64::MAX, bytes: 9, checksum: 1 << 60 };
        let mut bytes = place.encode().to_vec();
        assert_eq!(FramePlace::decode(&bytes), Some(place));
        bytes[28] = 4;
        assert_eq!(FramePlace::decode(&bytes), None, "a kind that there is not");
        assert_eq!(FramePlace::decode(&bytes[1..]), None);
    }

    /// Those of which little is needed, until no more than a quarter is needed no more.
    #[test]
    fn worn_files_are_those_with_little_in_them() {
        type Case = (&'static [(u64, u64)], &'static [u64]);
        let cases: [Case; 6] = [
            (&[], &[]),
            (&[(100, 100), (100, 120)], &[]),
            (&[(100, 100), (100, 151)], &[1]),
            (&[(10, 100), (100, 130), (1000, 1100)], &[]),
            (&[(10, 1000), (100, 130), (1000, 1100)], &[0]),
            (&[(100, 400), (50, 96), (40, 400)], &[0, 2]),
        ];
        for (files, expected) in cases {
            let files =
                files.iter().zip(0..).map(|((needed, bytes), number)| (file(number), *needed, *bytes));
            let expected: BTreeSet<_> = expected.iter().map(|number| file(*number)).collect();
            let files: Vec<_> = files.collect();
            assert_eq!(worn(files.clone()), expected, "{files:?}");
        }
    }

    /// Each snapshot leaves one, however little is in it.
    #[test]
    fn of_too_many_files_the_smallest_become_one() {
        let files =
            |count: u64| (0..count).map(|number| (file(number), 1000 - number, 1000 - number)).collect();
        assert_eq!(worn(files(FILES_MOST as u64)), BTreeSet::new());
        let worn = worn(files(FILES_MOST as u64 + 1));
        assert_eq!(worn.len(), FILES_MOST / 2 + 1);
        assert!(worn.iter().all(|file| file.number >= FILES_MOST as u64 / 2), "the largest stay: {worn:?}");
    }
}
