//! Programs of others that read WARC files: `warcio` and `fastwarc`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::place::fetched;

/// Names another folder of programs.
const CHOSEN: &str = "TRAPLINE_WARC_TOOLS";

/// Runs `warcio` or `fastwarc`.
pub fn warc_tool(program: &str, arguments: &[&str], file: &Path) -> Result<Output, String> {
    let path = folder()?.join(program);
    let ran = Command::new(&path).args(arguments).arg(file).output();
    ran.map_err(|error| format!("cannot run {}: {error}", path.display()))
}

fn folder() -> Result<PathBuf, String> {
    if let Some(chosen) = std::env::var_os(CHOSEN) {
        return Ok(PathBuf::from(chosen));
    }
    let installed = fetched("warc-tools")
        .map(|folder| folder.join("bin"))
        .filter(|folder| folder.join("warcio").is_file());
    installed.ok_or_else(|| {
        format!(
            "there is neither `warcio` nor `fastwarc` here: `./test` installs them, `./test quick` does without, and {CHOSEN} names \
             a folder with both"
        )
    })
}
