//! Archives by their URLs: `warc:DIR`, `file:DIR`, `s3://BUCKET/PREFIX`, each with what was chosen for it behind a `?`. Here alone it is
//! known which archives exist.

use std::path::PathBuf;

use trapline_archive::{BodyCompression, NameTemplate, WarcOptions};
use trapline_crawl::ArchivePlace;
use trapline_frontier::nearest;

use crate::size;

/// The archives that can be named.
const KINDS: &str = "`warc:DIR`, `file:DIR` or `s3://BUCKET/PREFIX`";

/// What can be chosen for all of them, for WARC files, and for bodies.
const OF_ALL: [&str; 1] = ["chain"];
const OF_WARC: [&str; 6] = ["chain", "max_size", "prefix", "name", "level", "dedup"];
const OF_BODIES: [&str; 2] = ["chain", "compression"];

/// What a URL names.
#[derive(Clone, Debug)]
pub(crate) struct ArchiveUrl {
    text: String,
    pub(crate) place: ArchivePlace,
    pub(crate) kind: ArchiveKind,
}

/// Where pages are kept, and how.
#[derive(Clone, Debug)]
pub(crate) enum ArchiveKind {
    Warc(PathBuf, Box<WarcOptions>),
    Folder(PathBuf, BodyCompression),
    S3 { bucket: String, prefix: String, compression: BodyCompression },
}

impl ArchiveUrl {
    /// As it was typed.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether responses are to be kept as they came.
    pub(crate) fn wants_raw(&self) -> bool {
        matches!(self.kind, ArchiveKind::Warc(..))
    }
}

/// Reads a URL.
pub(crate) fn parse(text: &str) -> Result<ArchiveUrl, String> {
    let wrong = |why: String| format!("`{text}` names no archive: {why}");
    let (scheme, rest) = text.split_once(':').ok_or_else(|| wrong(format!("write {KINDS}")))?;
    let (path, parameters) = rest.rsplit_once('?').unwrap_or((rest, ""));
    let folder = || match path {
        "" => Err(wrong(format!("write the folder behind it, such as `{scheme}:pages`"))),
        path => Ok(PathBuf::from(path)),
    };
    let known = match scheme {
        "warc" => &OF_WARC[..],
        "file" | "s3" => &OF_BODIES,
        _ => &OF_ALL,
    };
    let chosen = Chosen::read(parameters, known).map_err(wrong)?;
    let kind = match scheme {
        "warc" => ArchiveKind::Warc(folder()?, Box::new(chosen.warc_options().map_err(wrong)?)),
        "file" => ArchiveKind::Folder(folder()?, chosen.compression().map_err(wrong)?),
        "s3" => {
            let (bucket, prefix) = bucket(path).map_err(wrong)?;
            ArchiveKind::S3 { bucket, prefix, compression: chosen.compression().map_err(wrong)? }
        }
        other => {
            let hint = match nearest(other, &["warc", "file", "s3"]) {
                Some(near) => format!("did you mean `{near}:`?"),
                None => format!("write {KINDS}"),
            };
            return Err(wrong(hint));
        }
    };
    Ok(ArchiveUrl { text: text.to_owned(), place: chosen.place().map_err(wrong)?, kind })
}

/// The bucket and the prefix behind `s3:`. Both become part of URLs, so that they are plain.
fn bucket(rest: &str) -> Result<(String, String), String> {
    let rest = rest.strip_prefix("//").ok_or("write it as `s3://BUCKET/PREFIX`")?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if bucket.is_empty() || !bucket.chars().all(is_plain) {
        return Err(format!("`{bucket}` is no bucket: its name has letters, digits, `-`, `_` and `.`"));
    }
    let prefix = prefix.trim_end_matches('/');
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && part.chars().all(is_plain);
    if !prefix.is_empty() && !prefix.split('/').all(is_part) {
        return Err(format!(
            "`{prefix}` is no prefix: it has letters, digits, `-`, `_`, `.`, and `/` between them"
        ));
    }
    Ok((bucket.to_owned(), prefix.to_owned()))
}

/// What stands behind the `?`.
struct Chosen<'u>(Vec<(&'u str, &'u str)>);

impl<'u> Chosen<'u> {
    fn read(parameters: &'u str, known: &[&'static str]) -> Result<Self, String> {
        let mut chosen = Vec::new();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if !known.contains(&name) {
                let hint = match nearest(name, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("behind the `?` there can be {}", known.join(", ")),
                };
                return Err(format!("`{name}` means nothing to it; {hint}"));
            }
            if chosen.iter().any(|(there, _)| *there == name) {
                return Err(format!("`{name}` is there twice"));
            }
            chosen.push((name, value));
        }
        Ok(Self(chosen))
    }

    fn get(&self, name: &str) -> Option<&'u str> {
        self.0.iter().find(|(there, _)| *there == name).map(|(_, value)| *value)
    }

    fn place(&self) -> Result<ArchivePlace, String> {
        match self.get("chain") {
            None => Ok(ArchivePlace::default()),
            Some("fetch") => Ok(ArchivePlace::Fetch),
            Some("disposition") => Ok(ArchivePlace::Disposition),
            Some(other) => {
                Err(format!("`{other}` is no chain for it; write `chain=fetch` or `chain=disposition`"))
            }
        }
    }

    fn compression(&self) -> Result<BodyCompression, String> {
        self.get("compression").map_or(Ok(BodyCompression::default()), |name| {
            let unknown = || format!("`{name}` is no compression; there are `zstd`, `brotli` and `none`");
            BodyCompression::of(name).ok_or_else(unknown)
        })
    }

    fn warc_options(&self) -> Result<WarcOptions, String> {
        let mut options = WarcOptions::default();
        if let Some(text) = self.get("max_size") {
            options.max_size = size::parse(text).map_err(|wrong| format!("max_size: {wrong}"))?;
        }
        if let Some(prefix) = self.get("prefix") {
            options.name = std::mem::take(&mut options.name).with_prefix(prefix)?;
        }
        if let Some(template) = self.get("name") {
            options.name = NameTemplate::with_template(std::mem::take(&mut options.name), template)?;
        }
        if let Some(level) = self.get("level") {
            let number = level.parse().ok().filter(|level| (1..=9).contains(level));
            options.level = number
                .ok_or_else(|| format!("`{level}` is no level; write one from 1 (fast) to 9 (small)"))?;
        }
        if let Some(dedup) = self.get("dedup") {
            let wrong = |_| format!("dedup: `{dedup}` is no number of bodies to remember; 0 is for none");
            options.dedup = dedup.parse().map_err(wrong)?;
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_archives_and_what_is_chosen_for_them() {
        let url = parse("warc:a/b?max_size=10MiB&prefix=news&chain=fetch&level=1&dedup=0").unwrap();
        assert_eq!((url.place, url.wants_raw()), (ArchivePlace::Fetch, true));
        let ArchiveKind::Warc(folder, options) = url.kind else { panic!("a folder") };
        assert_eq!(folder, std::path::Path::new("a/b"));
        assert_eq!((options.max_size, options.level, options.dedup), (10 << 20, 1, 0));
        let url = parse("file:/pages?compression=brotli").unwrap();
        assert_eq!((url.place, url.wants_raw()), (ArchivePlace::Disposition, false));
        assert!(
            matches!(url.kind, ArchiveKind::Folder(folder, BodyCompression::Brotli) if *folder == *"/pages")
        );
        let check = |text: &str, wanted: (&str, &str)| match parse(text).unwrap().kind {
            ArchiveKind::S3 { bucket, prefix, .. } => assert_eq!((bucket.as_str(), prefix.as_str()), wanted),
            _ => panic!("a bucket"),
        };
        check("s3://pages", ("pages", ""));
        check("s3://pages/2026/news/?compression=none", ("pages", "2026/news"));
    }

    #[test]
    fn what_names_nothing_is_told_with_what_would() {
        let check = |text: &str, told: &str| {
            let error = parse(text).unwrap_err();
            assert!(
                error.starts_with(&format!("`{text}` names no archive: ")) && error.contains(told),
                "{error}"
            );
        };
        check("pages", "write `warc:DIR`, `file:DIR` or `s3://BUCKET/PREFIX`");
        check("wrac:pages", "did you mean `warc:`?");
        check("ftp:pages", "write `warc:DIR`");
        check("warc:", "write the folder behind it, such as `warc:pages`");
        check("warc:a?maxsize=1GiB", "did you mean `max_size`?");
        check("warc:a?compression=zstd", "`compression` means nothing to it");
        check("warc:a?max_size=1", "max_size: `1` is not an amount of bytes");
        check("warc:a?level=10", "from 1 (fast) to 9 (small)");
        check("warc:a?dedup=some", "no number of bodies");
        check("warc:a?prefix=../x", "is no prefix");
        check("warc:a?name={host}", "no {serial}");
        check("warc:a?chain=candidate", "`chain=fetch` or `chain=disposition`");
        check("file:a?prefix=x", "`prefix` means nothing to it");
        check("file:a?compression=gzip", "`zstd`, `brotli` and `none`");
        check("file:a?chain=fetch&chain=fetch", "`chain` is there twice");
        check("s3:bucket", "write it as `s3://BUCKET/PREFIX`");
        check("s3://", "is no bucket");
        check("s3://a b/c", "is no bucket");
        check("s3://a/../c", "is no prefix");
        check("s3://a//c", "is no prefix");
    }
}
