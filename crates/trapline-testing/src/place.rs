//! Where a server can be: a folder of its own, a port that is free, and what `./test` fetched for it.

use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A port that is free may be taken before the server has it. So often another one is tried.
pub(crate) const PORTS_TRIED: usize = 5;

/// A folder with a short name, because the name of a socket in it has to fit into 107 bytes.
pub(crate) fn new_folder(kind: &str) -> Result<PathBuf, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("trapline-{kind}-{}-{count}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("cannot make {}: {error}", path.display())),
        }
    }
}

pub(crate) fn free_port() -> Result<u16, String> {
    let bound = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    bound.map(|address| address.port()).map_err(|error| format!("cannot find a free port: {error}"))
}

/// What `./test` fetched and unpacked below the target folder, which this program was built into.
pub(crate) fn fetched(name: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    program.ancestors().map(|folder| folder.join("tmp").join(name)).find(|path| path.exists())
}
