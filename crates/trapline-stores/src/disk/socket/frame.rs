//! Frames: what goes over the socket after the hello. Four bytes of length (little end first, of all that follows), one
//! byte that says what kind of frame it is, and a message.
//!
//! A frame is taken as a whole or not at all: one that ends early is as if it had never been sent.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::room::Share;

/// The largest frame, in either direction. A batch of a hundred thousand ordinary URLs has some 10 MiB.
pub(super) const FRAME_BYTES_MAX: usize = 256 << 20;

/// How much is read at once; memory grows by as much as has come, whatever a length promises.
const STEP: usize = 256 << 10;

const HEAD: usize = 5;

/// A frame that was received.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
}

/// Why no frame was received, though one had begun.
#[derive(Debug)]
pub(super) enum BadFrame {
    /// The other side went away in the middle of it.
    Half,
    /// It did not come to its end in time.
    Slow,
    Empty,
    TooLarge(u32),
    /// There is too much of others at this moment.
    NoRoom,
    Failed(io::Error),
}

impl fmt::Display for BadFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Half => f.write_str("it ended in the middle of a frame"),
            Self::Slow => f.write_str("a frame did not come to its end in time"),
            Self::Empty => f.write_str("a frame has nothing in it"),
            Self::TooLarge(bytes) => {
                write!(
                    f,
                    "a frame has {bytes} bytes, and at most {FRAME_BYTES_MAX} are taken; send it in parts"
                )
            }
            Self::NoRoom => f.write_str("too much is being sent by all together; try again later"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

/// The bytes of a frame, whole.
pub(super) fn frame(kind: u8, put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, kind];
    put(&mut bytes);
    // Frames that are too large are not sent; who sends looks at the bytes' length.
    let length = u32::try_from(bytes.len() - 4).unwrap_or(u32::MAX);
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Whether the bytes of a frame may be sent.
pub(super) fn fits(bytes: &[u8]) -> bool {
    bytes.len() <= FRAME_BYTES_MAX + 4
}

/// Reads a frame; None if the other side has ended before one began. Waits for its first byte for ever, and for the rest as
/// long as `patience` says.
pub(super) fn read(
    mut stream: &UnixStream,
    patience: Option<Duration>,
    mut share: Option<&mut Share<'_>>,
) -> Result<Option<Frame>, BadFrame> {
    let mut head = [0; HEAD];
    if patience.is_some() {
        stream.set_read_timeout(None).map_err(BadFrame::Failed)?;
    }
    let mut got = loop {
        match stream.read(&mut head) {
            Ok(0) => return Ok(None),
            Ok(count) => break count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(BadFrame::Failed(error)),
        }
    };
    let mut rest = Rest { stream, until: patience.map(|patience| Instant::now() + patience) };
    if patience.is_some() {
        stream.set_read_timeout(patience).map_err(BadFrame::Failed)?;
    }
    rest.fill(&mut head[got..])?;
    let [a, b, c, d, kind] = head;
    let length = u32::from_le_bytes([a, b, c, d]);
    let Some(bytes) = (length as usize).checked_sub(1) else { return Err(BadFrame::Empty) };
    if bytes >= FRAME_BYTES_MAX {
        return Err(BadFrame::TooLarge(length));
    }
    let mut body = Vec::new();
    got = 0;
    while got < bytes {
        let step = STEP.min(bytes - got);
        if share.as_mut().is_some_and(|share| !share.grow_to(got + step)) {
            return Err(BadFrame::NoRoom);
        }
        body.resize(got + step, 0);
        rest.fill(&mut body[got..])?;
        got += step;
    }
    Ok(Some(Frame { kind, body }))
}

/// What follows the beginning of a frame.
struct Rest<'a> {
    stream: &'a UnixStream,
    until: Option<Instant>,
}

impl Rest<'_> {
    fn fill(&mut self, mut bytes: &mut [u8]) -> Result<(), BadFrame> {
        while !bytes.is_empty() {
            match self.stream.read(bytes) {
                Ok(0) => return Err(BadFrame::Half),
                Ok(count) => bytes = &mut bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => return Err(BadFrame::Slow),
                Err(error) => return Err(BadFrame::Failed(error)),
            }
            if !bytes.is_empty() && self.until.is_some_and(|until| Instant::now() >= until) {
                return Err(BadFrame::Slow);
            }
        }
        Ok(())
    }
}

/// Sends the bytes of a frame. With a patience, the stream must have it as its timeout for writing too.
pub(super) fn write(mut stream: &UnixStream, mut bytes: &[u8], patience: Option<Duration>) -> io::Result<()> {
    let until = patience.map(|patience| Instant::now() + patience);
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if !bytes.is_empty() && until.is_some_and(|until| Instant::now() >= until) {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::super::room::Room;
    use super::*;

    const PATIENCE: Option<Duration> = Some(Duration::from_millis(50));

    /// What is received when these bytes are sent, and then the end or silence.
    fn check(bytes: &[u8], ends: bool) -> Result<Option<Frame>, BadFrame> {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(bytes).unwrap();
        let kept = (!ends).then_some(ours);
        let room = Room::new(4 << 20);
        let got = read(&theirs, PATIENCE, Some(&mut room.share()));
        drop(kept);
        got
    }

    #[test]
    fn frames_come_whole_or_not_at_all() {
        let bytes = frame(7, |bytes| bytes.extend_from_slice(b"body"));
        let got = check(&bytes, true).unwrap().unwrap();
        assert_eq!((got.kind, got.body), (7, b"body".to_vec()));
        let got = check(&frame(0, |_| {}), false).unwrap().unwrap();
        assert_eq!((got.kind, got.body), (0, Vec::new()));
        assert!(check(&[], true).unwrap().is_none());
        for cut in 1..bytes.len() {
            assert!(matches!(check(&bytes[..cut], true), Err(BadFrame::Half)), "{cut}");
        }
        assert!(matches!(check(&bytes[..6], false), Err(BadFrame::Slow)));
        assert!(matches!(check(&bytes[..2], false), Err(BadFrame::Slow)));
    }

    #[test]
    fn lengths_are_bounded_and_not_believed() {
        assert!(matches!(check(&[0; 5], false), Err(BadFrame::Empty)));
        assert!(matches!(check(&[0xff; 5], false), Err(BadFrame::TooLarge(u32::MAX))));
        // A promise of 256 MiB does not take 256 MiB.
        let mut bytes = (FRAME_BYTES_MAX as u32).to_le_bytes().to_vec();
        bytes.push(1);
        assert!(matches!(check(&bytes, true), Err(BadFrame::Half)));
        let too_large = (FRAME_BYTES_MAX as u32 + 1).to_le_bytes();
        assert!(matches!(check(&[&too_large[..], &[1]].concat(), true), Err(BadFrame::TooLarge(_))));
    }

    #[test]
    fn what_all_send_together_is_bounded() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let sender = std::thread::spawn(move || {
            let bytes = frame(1, |bytes| bytes.resize(8 << 20, 0));
            // It fails once the other side has had enough.
            let _ = ours.write_all(&bytes);
        });
        let room = Room::new(4 << 20);
        assert!(matches!(read(&theirs, None, Some(&mut room.share())), Err(BadFrame::NoRoom)));
        drop(theirs);
        sender.join().unwrap();
    }
}
