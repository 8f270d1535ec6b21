//! What a file of frames has besides, so that a damaged frame can be made again: of each sixteen frames all bytes, one frame over the
//! other (exclusive or). Later snapshots refer to a frame that is written once, so it must not be lost with one place of a disk.
//!
//! Neighbours are of different sixteens: what hits a file hits one place of it. Four frames in a row can be lost: 8 KiB of small ones,
//! 50 or 100 of most.
//!
//! ```text
//! in the file, like a frame   u32 how many; of each where (u64) and how long (u32) it is; the bytes
//! last but one, like a frame  where each of those is (u64)
//! the last sixteen bytes      where that is (u64), and how much of the file is frames (u64)
//! ```
//!
//! What is absent: frames and their checksums. Whoever asks knows what should come of it.

use std::io;

use super::files::LogFile;
use super::frames::read_piece;

/// So many frames are laid one over the other.
const MEMBERS: usize = 16;
/// And so many neighbours are not.
const GROUPS: usize = 4;

/// Frames on their way to a file.
#[derive(Debug, Default)]
pub(super) struct Parity {
    groups: [Group; GROUPS],
    count: usize,
    /// Where those are that are written.
    places: Vec<u64>,
    /// How much all frames take.
    frame_bytes: u64,
}

/// The last bytes of a file.
const TRAILER: usize = 16;

#[derive(Debug, Default)]
struct Group {
    members: Vec<(u64, u32)>,
    bytes: Vec<u8>,
}

impl Group {
    fn lay(&mut self, bytes: &[u8]) {
        if self.bytes.len() < bytes.len() {
            self.bytes.resize(bytes.len(), 0);
        }
        self.bytes.iter_mut().zip(bytes).for_each(|(over, byte)| *over ^= byte);
    }

    fn encode(&self) -> Vec<u8> {
        let mut encoded = Vec::with_capacity(4 + 12 * self.members.len() + self.bytes.len());
        encoded.extend_from_slice(&(self.members.len() as u32).to_le_bytes());
        for (at, bytes) in &self.members {
            encoded.extend_from_slice(&at.to_le_bytes());
            encoded.extend_from_slice(&bytes.to_le_bytes());
        }
        encoded.extend_from_slice(&self.bytes);
        encoded
    }

    fn decode(encoded: &[u8]) -> Option<Self> {
        let (count, mut rest) = encoded.split_first_chunk()?;
        let mut members = Vec::new();
        for _ in 0..u32::from_le_bytes(*count).min(MEMBERS as u32) {
            let (at, after) = rest.split_first_chunk()?;
            let (bytes, after) = after.split_first_chunk()?;
            members.push((u64::from_le_bytes(*at), u32::from_le_bytes(*bytes)));
            rest = after;
        }
        Some(Self { members, bytes: rest.to_vec() })
    }
}

impl Parity {
    /// The next frame, as it stands in the file. Answers whether there is enough to be written.
    pub(super) fn add(&mut self, at: u64, parts: &[&[u8]]) -> bool {
        let bytes = parts.concat();
        let group = &mut self.groups[self.count % GROUPS];
        group.members.push((at, bytes.len() as u32));
        group.lay(&bytes);
        self.count += 1;
        self.frame_bytes += bytes.len() as u64;
        self.count == MEMBERS * GROUPS
    }

    /// What is to be written of those that have come.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Vec<u8>> + use<> {
        self.count = 0;
        let groups = std::mem::take(&mut self.groups);
        groups.into_iter().filter(|group| !group.members.is_empty()).map(|group| group.encode())
    }

    /// One was written there.
    pub(super) fn is_at(&mut self, at: u64) {
        self.places.push(at);
    }

    /// Where they are, to be written last but one.
    pub(super) fn index(&self) -> Vec<u8> {
        self.places.iter().flat_map(|at| at.to_le_bytes()).collect()
    }

    /// What is written last, when that is there.
    pub(super) fn trailer(&self, index: u64) -> [u8; TRAILER] {
        let mut trailer = [0; TRAILER];
        trailer[..8].copy_from_slice(&index.to_le_bytes());
        trailer[8..].copy_from_slice(&self.frame_bytes.to_le_bytes());
        trailer
    }
}

/// Where the index of a file is, and how much of it is frames, as it says itself; None if it says nothing.
fn trailer(file: &dyn LogFile) -> io::Result<Option<(u64, u64)>> {
    let Some(at) = file.bytes()?.checked_sub(TRAILER as u64) else { return Ok(None) };
    let trailer = file.read_at(at, TRAILER)?;
    let ([index, frame_bytes], []) = trailer.as_chunks() else { return Ok(None) };
    Ok(Some((u64::from_le_bytes(*index), u64::from_le_bytes(*frame_bytes))))
}

/// How much of a file is frames, if it says so and that can be.
pub(super) fn frame_bytes(file: &dyn LogFile) -> Option<u64> {
    let (_, frame_bytes) = trailer(file).ok()??;
    file.bytes().is_ok_and(|bytes| frame_bytes <= bytes).then_some(frame_bytes)
}

/// Where what a file could be mended with is damaged; None if it is whole.
pub(super) fn damage(file: &dyn LogFile) -> io::Result<Option<u64>> {
    let Some((at, _)) = trailer(file)? else { return Ok(Some(0)) };
    let Some(index) = read_piece(file, at)? else { return Ok(Some(at)) };
    for place in index.as_chunks().0.iter().map(|place| u64::from_le_bytes(*place)) {
        if read_piece(file, place)?.is_none() {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// Makes a frame again that is damaged, as it stood there. None if more is lost. What it answers may be wrong all the same.
pub(super) fn mend(file: &dyn LogFile, at: u64) -> io::Result<Option<Vec<u8>>> {
    let Some((index, _)) = trailer(file)? else { return Ok(None) };
    let Some(index) = read_piece(file, index)? else { return Ok(None) };
    // They follow the frames that they are of.
    let after =
        index.as_chunks().0.iter().map(|place| u64::from_le_bytes(*place)).skip_while(|place| *place < at);
    for place in after.take(GROUPS) {
        let Ok(Some(group)) = read_piece(file, place) else { continue };
        let Some(mut group) = Group::decode(&group) else { continue };
        let Some(own) = group.members.iter().position(|(member, _)| *member == at) else { continue };
        let (_, bytes) = group.members.swap_remove(own);
        for (member, bytes) in std::mem::take(&mut group.members) {
            group.lay(&file.read_at(member, bytes as usize)?);
        }
        group.bytes.truncate(bytes as usize);
        return Ok(Some(group.bytes));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_none() {
        for encoded in [&[][..], &[1, 0, 0], &[1, 0, 0, 0, 9], &[255; 40]] {
            assert!(Group::decode(encoded).is_none_or(|group| group.members.len() <= MEMBERS));
        }
    }

    #[test]
    fn neighbours_lie_apart_and_each_can_be_taken_away_again() {
        let mut parity = Parity::default();
        let frames: Vec<Vec<u8>> = (0..64_u8).map(|frame| vec![frame; 10 + usize::from(frame) % 7]).collect();
        for (at, frame) in (0..).zip(&frames) {
            assert_eq!(parity.add(at, &[&frame[..3], &frame[3..]]), at == 63);
        }
        let groups: Vec<Group> =
            parity.take().map(|encoded| Group::decode(&encoded).expect("it is one")).collect();
        assert_eq!(groups.len(), GROUPS);
        for (number, mut group) in groups.into_iter().enumerate() {
            assert!(group.members.iter().all(|(at, _)| *at as usize % GROUPS == number));
            let (lost, bytes) = group.members.remove(5);
            for (at, _) in std::mem::take(&mut group.members) {
                group.lay(&frames[at as usize]);
            }
            assert_eq!(group.bytes[..bytes as usize], frames[lost as usize]);
        }
        assert_eq!(parity.take().count(), 0);
    }
}
