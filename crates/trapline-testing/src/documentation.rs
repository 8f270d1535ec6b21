//! Real websites without a network: the documentation of a few Debian packages, which `./test` fetches.

use std::path::{Path, PathBuf};

use crate::place::fetched;
use crate::site::Site;

/// Names another folder with packages unpacked in it.
const CHOSEN: &str = "TRAPLINE_PAGES";

/// Name, and where it is below `usr/share/doc`: the first folder whose name begins so, and a folder in it.
const SITES: [(&str, &str, &str); 5] = [
    ("apache.example", "apache2-doc", "manual"),
    ("policy.example", "debian-policy", "policy.html"),
    ("postgresql.example", "postgresql-doc-", "html"),
    ("python.example", "python3.", "html"),
    ("sqlite.example", "sqlite3", ""),
];

/// Websites that people made, some thousand pages in all, each with a page at its root.
pub fn documentation() -> Result<Vec<Site>, String> {
    let missing = || {
        format!(
            "there is no documentation here: `./test` fetches it, `./test quick` does without, and {CHOSEN} names one"
        )
    };
    let folder =
        std::env::var_os(CHOSEN).map(PathBuf::from).or_else(|| fetched("pages")).ok_or_else(missing)?;
    let packages = folder.join("unpacked/usr/share/doc");
    SITES
        .iter()
        .map(|(name, package, below)| {
            let root = find(&packages, package, below).ok_or_else(|| {
                format!("there is no {package} with a page at its root below {}", packages.display())
            })?;
            Ok(Site::new(name, &root))
        })
        .collect()
}

fn find(packages: &Path, package: &str, below: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(packages).ok()?.flatten();
    let mut folders: Vec<_> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(package))
        .map(|entry| entry.path().join(below))
        .filter(|folder| folder.join("index.html").is_file())
        .collect();
    folders.sort();
    folders.into_iter().next()
}
