//! Where PostgreSQL's programs are on this machine, and under whose name they may run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian keeps the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Names the folder of another version's programs, to run the tests on it.
const CHOSEN: &str = "TRAPLINE_POSTGRES_BIN";

/// The folder that has `initdb` and `postgres` in it: the chosen one, or of the newest version that is installed, or what is first in
/// `PATH`.
pub(crate) fn bin() -> Result<PathBuf, String> {
    if let Some(chosen) = std::env::var_os(CHOSEN) {
        let chosen = PathBuf::from(chosen);
        let there = chosen.join("initdb").is_file();
        return there
            .then_some(chosen)
            .ok_or_else(|| format!("there is no `initdb` in the folder that {CHOSEN} names"));
    }
    let versions = std::fs::read_dir(VERSIONS).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut versions: Vec<_> = versions.map(|path| (version_of(&path), path.join("bin"))).collect();
    versions.sort();
    let by_version = versions.into_iter().rev().map(|(_, path)| path);
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let in_path: Vec<_> = std::env::split_paths(&in_path).collect();
    by_version.chain(in_path).find(|path| path.join("initdb").is_file() && path.join("postgres").is_file()).ok_or_else(
        || {
            format!(
                "PostgreSQL is not installed: there is no `initdb` in PATH or below {VERSIONS}; `./test` installs it, and \
                 `./test quick` does without"
            )
        },
    )
}

fn version_of(path: &Path) -> u32 {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.parse().ok()).unwrap_or(0)
}

/// The account to run a server as, and its number; None where we are nobody special and may do it ourselves. PostgreSQL
/// refuses to run as root.
pub(crate) fn account() -> Result<Option<(&'static str, u32)>, String> {
    if id("")? != 0 {
        return Ok(None);
    }
    let found =
        ["postgres", "nobody"].into_iter().find_map(|name| id(name).ok().map(|number| (name, number)));
    found
        .map(Some)
        .ok_or_else(|| "there is neither an account `postgres` nor `nobody` to run a server as".to_owned())
}

/// The number of an account; of our own if no name is given.
fn id(name: &str) -> Result<u32, String> {
    let mut command = Command::new("id");
    command.arg("-u");
    if !name.is_empty() {
        command.arg(name);
    }
    let output = command.output().map_err(|error| format!("cannot run `id -u {name}`: {error}"))?;
    let number = String::from_utf8_lossy(&output.stdout).trim().parse();
    number.map_err(|_| format!("`id -u {name}` answered: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
