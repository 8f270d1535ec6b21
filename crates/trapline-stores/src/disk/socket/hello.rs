//! How each side begins: eight bytes that tell it from strangers, and the version of the protocol it speaks.

use std::io::{self, Read, Write};

const MAGIC: [u8; 8] = *b"trapline";

/// Raised when frames or messages change so that older versions could misunderstand them. What is only added does not
/// count.
pub(super) const VERSION: u32 = 1;

/// What the other side began with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hello {
    Version(u32),
    /// It is something else than Trapline.
    Stranger,
}

pub(super) fn write(mut to: impl Write) -> io::Result<()> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    to.write_all(&bytes)
}

pub(super) fn read(mut from: impl Read) -> io::Result<Hello> {
    let mut magic = [0; MAGIC.len()];
    from.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Ok(Hello::Stranger);
    }
    let mut version = [0; 4];
    from.read_exact(&mut version)?;
    Ok(Hello::Version(u32::from_le_bytes(version)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_understood_and_nothing_else_is() {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        assert_eq!(read(&*bytes).unwrap(), Hello::Version(VERSION));
        assert_eq!(read(&b"trapline\xff\0\0\0"[..]).unwrap(), Hello::Version(255));
        assert_eq!(read(&b"GET / HTTP/1.1\r\n"[..]).unwrap(), Hello::Stranger);
        assert!(read(&bytes[..11]).is_err());
    }
}
