//! The folder of the crawl: whether it can be written, how much room there is, and how long the disk takes to be sure.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Finding;
use super::memory::rounded;
use crate::config::FileConfig;
use crate::store_url;

/// Below this a disk store admits no more URLs, unless it is told otherwise.
const ROOM_BYTES_MIN: u64 = 256 << 20;
/// Below this a crawl will not go far.
const ROOM_BYTES_WANTED: u64 = 2 << 30;
/// Above this the disk is what a crawl waits for.
const SYNC_WANTED: Duration = Duration::from_millis(50);
/// How often it is tried; the middle one counts.
const SYNCS: usize = 5;

pub(super) fn look(config: &FileConfig) -> Vec<Finding> {
    let mut folders = vec![config.output.dir.clone()];
    let store = config.crawl.store.as_ref().and_then(|store| store_url::folder(&store.0).ok());
    folders.extend(store.map(PathBuf::from).filter(|store| *store != config.output.dir));
    folders.iter().map(|folder| of_folder(folder)).collect()
}

fn of_folder(folder: &Path) -> Finding {
    let Some(there) = nearest_there(folder) else {
        return Finding::fail(
            "disk",
            format!("there is no folder above {}", folder.display()),
            "choose another one with --out",
        );
    };
    let (room, sync) = match measure(&there) {
        Ok(measured) => measured,
        Err(error) => {
            let detail = format!("cannot write in {}: {error}", there.display());
            return Finding::fail(
                "disk",
                detail,
                "choose another folder with --out, or make this one writable",
            );
        }
    };
    judge(&there, room, sync)
}

fn judge(there: &Path, room: u64, sync: Duration) -> Finding {
    let detail = format!(
        "{} are free in {}, which takes {:.1} ms to be sure of a write",
        rounded(room),
        there.display(),
        sync.as_secs_f64() * 1e3
    );
    if room < ROOM_BYTES_MIN {
        return Finding::fail("disk", detail, "free some space, or choose another folder with --out");
    }
    if room < ROOM_BYTES_WANTED {
        return Finding::warn("disk", detail, "free some space before a long crawl");
    }
    if sync > SYNC_WANTED {
        let advice =
            "use a faster disk, or let answers be less safe with --store 'disk:PATH?durability=interval'";
        return Finding::warn("disk", detail, advice);
    }
    Finding::ok("disk", detail)
}

/// The folder, or the nearest one above it that is there.
fn nearest_there(folder: &Path) -> Option<PathBuf> {
    let folder = std::path::absolute(folder).ok()?;
    folder.ancestors().find(|ancestor| ancestor.exists()).map(Path::to_owned)
}

/// Free bytes, and how long a small write takes until it is on disk.
fn measure(folder: &Path) -> io::Result<(u64, Duration)> {
    if !folder.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is no folder"));
    }
    let probe = Probe::new(folder)?;
    let mut took = Vec::new();
    for _ in 0..SYNCS {
        let began = Instant::now();
        (&probe.file).write_all(&[0; 4096])?;
        probe.file.sync_data()?;
        took.push(began.elapsed());
    }
    took.sort();
    let room = rustix::fs::statvfs(folder)?;
    Ok((room.f_bavail.saturating_mul(room.f_frsize), took[SYNCS / 2]))
}

/// A file that is gone afterwards.
struct Probe {
    path: PathBuf,
    file: File,
}

impl Probe {
    fn new(folder: &Path) -> io::Result<Self> {
        let path = folder.join(format!(".trapline-doctor-{}", std::process::id()));
        let file = File::create_new(&path)?;
        Ok(Self { path, file })
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn a_disk_is_judged_by_its_room_and_its_speed() {
        let check = |room, ms, state, words: &str| {
            let found = judge(Path::new("/x"), room, Duration::from_millis(ms));
            assert_eq!(found.state, state, "{found:?}");
            assert!(format!("{} {}", found.detail, found.advice).contains(words), "{found:?}");
        };
        check(10 << 30, 2, State::Ok, "10240MiB are free in /x, which takes 2.0 ms to be sure of a write");
        check(100 << 20, 2, State::Fail, "free some space, or choose another folder");
        check(1 << 30, 2, State::Warn, "free some space before a long crawl");
        check(10 << 30, 200, State::Warn, "durability=interval");
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_judged_by_the_one_above_it() {
        let here = std::env::temp_dir();
        assert_eq!(nearest_there(&here.join("not-there/x")), nearest_there(&here));
        let left = || {
            let name = format!(".trapline-doctor-{}", std::process::id());
            here.join(name).exists()
        };
        assert!(measure(&here).is_ok_and(|(room, _)| room > 0) && !left());
        let found = of_folder(Path::new("/proc/version/x"));
        assert_eq!(found.state, State::Fail);
        assert!(found.detail.contains("cannot write in /proc/version: it is no folder"), "{found:?}");
    }
}
