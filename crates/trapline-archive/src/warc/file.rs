//! A WARC file that is being written: `NAME.warc.gz.open`, until it is complete.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use trapline_core::Timestamp;
use trapline_crawl::ports::ArchiveError;

use super::cdxj::{self, Entry};
use super::files::{Files, OpenFile, sync_folder};
use super::group::Group;
use super::gzip::Gzips;
use super::record::{Record, RecordId, push_line};
use super::{WarcOptions, host_name, now, with_suffix};

/// What a file is called until it is complete.
pub(super) const OPEN: &str = ".warc.gz.open";

/// So many names are tried, in case that others write to the same folder.
const NAMES_TRIED: u64 = 10_000;

/// A file that is being written.
pub(super) struct WarcFile {
    folder: PathBuf,
    /// Without what tells its kind.
    name: String,
    file: Box<dyn OpenFile>,
    /// How much of it is safe. What is beyond does not count.
    safe_bytes: u64,
    /// What does not count could not be cut off. Nothing more may be written behind it.
    broken: bool,
    entries: Vec<Entry>,
}

impl WarcFile {
    /// Begins a file.
    pub(super) fn create(
        files: &dyn Files,
        folder: &Path,
        options: &WarcOptions,
        serial: &mut u64,
        gzips: &Gzips,
    ) -> Result<Self, ArchiveError> {
        let (at, host) = (now(), host_name());
        for _ in 0..NAMES_TRIED {
            let name = options.name.fill(at, *serial, &host);
            *serial += 1;
            let taken = ["warc.gz", "cdxj"].iter().any(|kind| folder.join(format!("{name}.{kind}")).exists());
            if taken {
                continue;
            }
            let path = folder.join(format!("{name}{OPEN}"));
            let file = match files.create(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(trouble("make", &path, &error)),
            };
            let mut begun = Self {
                folder: folder.to_owned(),
                name,
                file,
                safe_bytes: 0,
                broken: false,
                entries: Vec::new(),
            };
            let info = info(&begun.final_name(), at, &host, options, gzips)?;
            if let Err(error) = begun.add(&info) {
                // Nothing of it counts.
                let _ = std::fs::remove_file(&path);
                return Err(error);
            }
            sync_folder(folder).map_err(|error| trouble("keep the name of", &path, &error))?;
            return Ok(begun);
        }
        Err(ArchiveError(format!("no name is free for another file in {}", folder.display())))
    }

    /// What it is called when it is complete.
    pub(super) fn final_name(&self) -> String {
        format!("{}.warc.gz", self.name)
    }

    /// Whether it can only be recovered.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    pub(super) fn bytes(&self) -> u64 {
        self.safe_bytes
    }

    /// Writes groups, and answers when all of them are safe. Otherwise none of them counts.
    pub(super) fn append(&mut self, groups: &mut [Group]) -> Result<(), ArchiveError> {
        let mut offset = self.safe_bytes;
        for group in groups.iter_mut() {
            group.entry.offset += offset;
            offset += group.bytes.len() as u64;
        }
        match groups {
            [alone] => self.add(&alone.bytes)?,
            // One write costs less than many.
            _ => self.add(&groups.iter().map(|group| &*group.bytes).collect::<Vec<_>>().concat())?,
        }
        self.entries.extend(groups.iter().map(|group| group.entry.clone()));
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        let written = self.file.write(bytes).and_then(|()| self.file.sync());
        if let Err(error) = written {
            self.broken = self.file.cut(self.safe_bytes).and_then(|()| self.file.sync()).is_err();
            return Err(trouble("write to", &self.path(), &error));
        }
        self.safe_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Gives it its name, with an index beside it. One without visits is removed.
    pub(super) fn complete(mut self) -> Result<(), ArchiveError> {
        let path = self.path();
        // Nothing of a write that failed may be left.
        self.file
            .cut(self.safe_bytes)
            .and_then(|()| self.file.sync())
            .map_err(|error| trouble("cut", &path, &error))?;
        complete(&self.folder, &self.name, &self.entries).map_err(|error| trouble("complete", &path, &error))
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("{}{OPEN}", self.name))
    }
}

/// Gives a file that is whole and safe its name, with an index beside it. One without visits is removed.
pub(super) fn complete(folder: &Path, name: &str, entries: &[Entry]) -> io::Result<()> {
    let path = folder.join(format!("{name}{OPEN}"));
    if entries.is_empty() {
        std::fs::remove_file(path)?;
        return sync_folder(folder);
    }
    let file = format!("{name}.warc.gz");
    let index = folder.join(format!("{name}.cdxj"));
    let unfinished = with_suffix(&index, ".open");
    let mut written = std::fs::File::create(&unfinished)?;
    written.write_all(cdxj::index(entries, &file).as_bytes())?;
    written.sync_all()?;
    std::fs::rename(&unfinished, &index)?;
    std::fs::rename(path, folder.join(file))?;
    sync_folder(folder)
}

fn trouble(what: &str, path: &Path, error: &io::Error) -> ArchiveError {
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "; make room, and the crawl goes on by itself"
        }
        _ => "",
    };
    ArchiveError(format!("cannot {what} {}: {error}{remedy}", path.display()))
}

/// The record that says what a file is.
fn info(
    file: &str,
    at: Timestamp,
    host: &str,
    options: &WarcOptions,
    gzips: &Gzips,
) -> Result<Vec<u8>, ArchiveError> {
    let info = &options.info;
    let fields = [
        ("software", Some(concat!("trapline/", env!("CARGO_PKG_VERSION")))),
        ("format", Some("WARC File Format 1.1")),
        (
            "conformsTo",
            Some("http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"),
        ),
        ("hostname", Some(host)),
        ("isPartOf", info.crawl.as_deref()),
        ("robots", info.robots.as_deref()),
        ("http-header-user-agent", info.user_agent.as_deref()),
    ];
    let mut block = String::new();
    for (name, value) in fields {
        if let Some(value) = value {
            block.push_str(name);
            block.push_str(": ");
            push_line(&mut block, value);
            block.push_str("\r\n");
        }
    }
    let [id] = RecordId::draw()?;
    let mut record = Record::new("warcinfo", &id, at, "application/warc-fields", [block.as_bytes(), b""]);
    record.field("WARC-Filename", file);
    let mut bytes = Vec::new();
    record.write(gzips, &mut bytes)?;
    Ok(bytes)
}
