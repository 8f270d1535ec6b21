//! A checkpoint: a copy of a store as it is at one moment, in a folder of its own inside the store's.
//!
//! ```text
//! PATH/checkpoints/NAME   a store's folder, complete
//! ```
//!
//! Segments that are full never change any more, nor do snapshots and their frames, so they are not copied but given a second name. Of the newest one
//! everything is copied that is whole; and as long as it is empty, the one before it is copied too. That needs nothing from the process that owns the store, if one does: what it has written by then is
//! in the copy, as it would be after a crash.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use trapline_frontier::{ErrorKind, StoreError};

use super::files::{Files, Folder};
use super::folder::{self, CHECKPOINTS};
use super::frames::FrameFile;
use super::part::{NoPart, PART, Part};
use super::record::{self, Found};
use super::scan;
use super::segment::{HEADER, Segment};
use super::snapshot;

/// Copies the store in a folder as it is now, and says where the copy is. The store may be in use.
///
/// The copy is there as a whole or not at all.
///
/// # Errors
/// If the name cannot be one or is taken, if there is no store, or if the copy cannot be written.
pub fn checkpoint(path: impl AsRef<Path>, name: &str) -> Result<PathBuf, StoreError> {
    let path = path.as_ref();
    let doing = format!("disk store: cannot make checkpoint `{name}` of `{}`", path.display());
    if !is_name(name) {
        let why = "a name has letters, digits, `.`, `-` and `_`, begins with a letter or digit, and has at most 100 of them";
        return Err(StoreError::new(ErrorKind::Invalid, format!("{doing}: {why}")));
    }
    let copy = path.join(CHECKPOINTS).join(name);
    copy_store(path, &copy, link, &doing)?;
    Ok(copy)
}

/// Copies a checkpoint, or any store that is not in use, into another folder, which must not be there yet or be empty.
/// The copy shares nothing with it.
///
/// # Errors
/// As [`checkpoint`].
pub fn restore(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), StoreError> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let doing = format!("disk store: cannot restore `{}` from `{}`", to.display(), from.display());
    copy_store(from, to, duplicate, &doing)
}

/// All checkpoints of a store, by name.
///
/// # Errors
/// If its folder cannot be read.
pub fn checkpoints(path: impl AsRef<Path>) -> Result<Vec<String>, StoreError> {
    let (path, folder) = (path.as_ref(), path.as_ref().join(CHECKPOINTS));
    if !path.join(folder::SEGMENTS).is_dir() {
        let message = format!(
            "disk store: cannot list the checkpoints of `{}`: there is no store in that folder",
            path.display()
        );
        return Err(StoreError::new(ErrorKind::NotFound, message));
    }
    let names = || -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.retain(|name| is_name(name));
        names.sort_unstable();
        Ok(names)
    };
    names().map_err(|error| {
        let message = format!("disk store: cannot list `{}`: {error}", folder.display());
        StoreError::new(ErrorKind::Unavailable, message)
    })
}

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    name.len() <= 100
        && name.bytes().all(allowed)
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && !name.ends_with(PART)
}

/// How a file is copied that does not change any more.
type Copier = fn(&Path, &Path) -> io::Result<()>;

fn copy_store(from: &Path, to: &Path, copier: Copier, doing: &str) -> Result<(), StoreError> {
    let error = |kind, why: &dyn std::fmt::Display| StoreError::new(kind, format!("{doing}: {why}"));
    let io = |why: io::Error| error(ErrorKind::Unavailable, &format!("{why}; nothing is there of it"));
    let segments = from.join(folder::SEGMENTS);
    if !segments.is_dir() {
        return Err(error(ErrorKind::NotFound, &format!("there is no store in `{}`", from.display())));
    }
    let part = Part::begin(to).map_err(|none| match none {
        NoPart::Taken => {
            let why = format!("`{}` is there already; choose another name, or remove it first", to.display());
            error(ErrorKind::Invalid, &why)
        }
        NoPart::Failed(why) => io(why),
    })?;
    copy_all_files(&segments, &part.segments(), copier).and_then(|()| part.finish()).map_err(io)
}

/// So often it is tried again if segments or frames were removed while they were copied.
const ATTEMPTS: u32 = 5;

/// Copies what was there at one moment. An owner may remove segments and frames meanwhile that it does not need any more: then it
/// is tried again.
fn copy_all_files(from: &Path, to: &Path, copier: Copier) -> io::Result<()> {
    for _ in 1..ATTEMPTS {
        match copy_files(from, to, copier) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            copied => return copied,
        }
        for entry in fs::read_dir(to)? {
            fs::remove_file(entry?.path())?;
        }
    }
    copy_files(from, to, copier)
}

fn copy_files(from: &Path, to: &Path, copier: Copier) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(from)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    let newest =
        names.iter().filter_map(|name| Segment::number_of(name)).filter(|number| has_header(from, *number));
    let newest = newest.max().unwrap_or(0);
    // A header alone may not be on disk yet. If the power goes, the segment before it goes on, which must then not be the
    // copy's too.
    let full = if has_record(from, newest)? { newest } else { newest.saturating_sub(1) };
    // First the snapshots, which are removed soonest, and before the frames that they refer to. Without any, a log that does not begin at the beginning is worth nothing.
    names.sort_unstable_by_key(|name| snapshot::number_of(name).is_none());
    let had_snapshots = names.iter().any(|name| snapshot::number_of(name).is_some());
    let mut snapshots = 0;
    for name in names {
        let (source, copy) = (from.join(&name), to.join(&name));
        match (Segment::number_of(&name), snapshot::number_of(&name)) {
            (Some(number), _) if number < full => copier(&source, &copy)?,
            (Some(number), _) if number < newest => duplicate(&source, &copy)?,
            (Some(number), _) if number == newest => copy_whole(&source, &copy)?,
            // One that is just being removed is not needed.
            (None, Some(_)) => match copier(&source, &copy) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                linked => {
                    linked?;
                    snapshots += 1;
                }
            },
            (None, None) if FrameFile::named(&name).is_some() => copier(&source, &copy)?,
            // Segments made ahead of time, and what is not the store's.
            _ => {}
        }
    }
    if had_snapshots && snapshots == 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    has_frames(to)
}

/// Whether all that snapshots refer to is there.
fn has_frames(folder: &Path) -> io::Result<()> {
    let files = Folder::new(folder);
    for name in files.list()?.iter().filter(|name| snapshot::number_of(name).is_some()) {
        for file in snapshot::files_needed(&files, name)? {
            if !folder.join(file.name()).exists() {
                let why = format!("{} is missing, which {name} refers to; `verify` says more", file.name());
                return Err(io::Error::new(io::ErrorKind::NotFound, why));
            }
        }
    }
    Ok(())
}

/// Whether a segment has a record, before which its header came to disk.
fn has_record(folder: &Path, number: u64) -> io::Result<bool> {
    let file = folder.join(Segment::name(number));
    let Some(segment) = header(&file) else { return Ok(false) };
    let bytes = fs::read(file)?;
    let rest = bytes.get(HEADER as usize..).unwrap_or_default();
    Ok(matches!(record::read(rest, segment.seal()), Found::Record(_) | Found::Newer))
}

/// Whether a segment is more than made ahead of time.
fn has_header(folder: &Path, number: u64) -> bool {
    header(&folder.join(Segment::name(number))).is_some()
}

/// What a segment's file says of itself.
fn header(file: &Path) -> Option<Segment> {
    let mut header = [0; HEADER as usize];
    File::open(file).ok()?.read_exact(&mut header).ok()?;
    Segment::read(&header).ok()
}

/// Gives a file that does not change any more a second name; where that cannot be, copies it.
fn link(source: &Path, copy: &Path) -> io::Result<()> {
    match fs::hard_link(source, copy) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        Err(_) => duplicate(source, copy),
    }
}

fn duplicate(source: &Path, copy: &Path) -> io::Result<()> {
    let bytes = fs::metadata(source)?.len();
    if fs::copy(source, copy)? < bytes {
        // It was removed meanwhile, and cut short, as what is large is freed piece by piece.
        fs::remove_file(copy)?;
        return Err(io::ErrorKind::NotFound.into());
    }
    File::open(copy)?.sync_all()
}

/// Copies the records of a segment that are whole. Somebody may be writing behind them.
fn copy_whole(source: &Path, copy: &Path) -> io::Result<()> {
    let seal = header(source).map(|segment| segment.seal()).unwrap_or_default();
    let (bytes, end) = scan::read_newest(|| fs::read(source), seal)?;
    // Without this, what stands behind the damage would be left out without a word.
    if scan::has_record(&bytes, end, seal) {
        let why = format!("{} is damaged at byte {end}; `verify` says more", source.display());
        return Err(io::Error::other(why));
    }
    let mut file = File::create(copy)?;
    file.set_len(bytes.len() as u64)?;
    file.write_all(&bytes[..end])?;
    file.sync_all()
}
