//! Where a folder's socket is. The address of a socket has room for some hundred bytes only, and folders are deeper than that.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The socket's name in the folder.
pub(crate) const SOCKET: &str = "socket";

/// The longest path that fits everywhere: Linux has room for 107 bytes, others for a few less.
const PATH_BYTES_MAX: usize = 100;

/// A path that leads to a folder's socket and fits into an address, as long as this is kept.
pub(super) struct SocketAddress {
    path: PathBuf,
    /// Open while a path leads through it.
    _folder: Option<File>,
}

impl SocketAddress {
    /// The address of the socket in a folder, whether it is there or not.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        let path = folder.join(SOCKET);
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(Self { path, _folder: None });
        }
        if !cfg!(target_os = "linux") {
            let message =
                format!("its path is longer than {PATH_BYTES_MAX} bytes; choose a folder that is less deep");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let folder = File::open(folder)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()));
        Ok(Self { path, _folder: Some(folder) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
