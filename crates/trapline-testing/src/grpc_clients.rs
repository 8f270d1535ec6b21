//! Clients that we did not write: Python with grpcio, which `./test` brings from PyPI.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::fetched;

/// Names another Python that has grpcio and grpcio-tools.
const CHOSEN: &str = "TRAPLINE_GRPC_PYTHON";

/// Python, about to run a script that speaks gRPC.
pub fn grpc_python(script: &Path) -> Result<Command, String> {
    let mut command = Command::new(python()?);
    // Nothing is left beside the scripts.
    command.arg("-B").arg(script);
    Ok(command)
}

fn python() -> Result<PathBuf, String> {
    if let Some(chosen) = std::env::var_os(CHOSEN) {
        return Ok(PathBuf::from(chosen));
    }
    let installed =
        fetched("grpc-clients").map(|folder| folder.join("bin/python")).filter(|path| path.exists());
    installed.ok_or_else(|| {
        format!(
            "there is no Python with grpcio here: `./test` installs one, `./test quick` does without, and {CHOSEN} names one"
        )
    })
}
