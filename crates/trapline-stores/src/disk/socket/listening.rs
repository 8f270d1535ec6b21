//! The socket as a file: made by the owner of the folder, and gone when it lets go of it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

use super::address::{SOCKET, SocketAddress};

/// How many may wait to be let in.
const BACKLOG: i32 = 128;

/// A socket that can be connected to. Dropping it removes its file, so the folder must still be held then.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: UnixListener,
    file: PathBuf,
}

impl Listening {
    /// Makes the socket in a folder that the caller holds. One that is there was left by an owner that was killed.
    pub(crate) fn bind(folder: &Path) -> io::Result<Self> {
        let file = folder.join(SOCKET);
        match fs::symlink_metadata(&file) {
            Ok(found) if found.file_type().is_socket() => fs::remove_file(&file)?,
            Ok(_) => {
                let message = format!("`{SOCKET}` in it is something else than a socket; move that away");
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let address = SocketAddress::of(folder)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &SocketAddrUnix::new(address.path())?)?;
        // From here on the file is ours to remove. Nobody can connect before it is listened to, so nobody could before the
        // file belongs to its user alone.
        let listening = Self { listener: UnixListener::from(socket), file };
        fs::set_permissions(address.path(), Permissions::from_mode(0o600))?;
        listen(&listening.listener, BACKLOG)?;
        listening.listener.set_nonblocking(true)?;
        Ok(listening)
    }

    /// The listener, for the thread that lets others in.
    pub(crate) fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // The next owner removes it, if this does not.
        let _ = fs::remove_file(&self.file);
    }
}
