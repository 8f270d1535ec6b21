//! SHA-1 in base 32, which is how WARC files and their indexes name content. It tells accidents apart, not attackers.

use std::fmt;

use sha1::{Digest as _, Sha1};

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The SHA-1 of some bytes. Displayed as `sha1:` and 32 letters and digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Digest([u8; 20]);

impl Digest {
    pub(crate) fn of(pieces: &[&[u8]]) -> Self {
        let mut hash = Sha1::new();
        for piece in pieces {
            hash.update(piece);
        }
        Self(hash.finalize().into())
    }

    /// Reads what is displayed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("sha1:")?.as_bytes();
        let mut bytes = [0; 20];
        let (chunks, []) = text.as_chunks::<8>() else { return None };
        if chunks.len() != 4 {
            return None;
        }
        for (letters, five) in chunks.iter().zip(bytes.chunks_mut(5)) {
            let mut number = 0_u64;
            for letter in letters {
                let value = ALPHABET.iter().position(|known| known == letter)?;
                number = number << 5 | value as u64;
            }
            five.copy_from_slice(&number.to_be_bytes()[3..]);
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha1:")?;
        for five in self.0.chunks(5) {
            let number = five.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            for place in (0..8).rev() {
                let letter = ALPHABET[(number >> (5 * place)) as usize & 31];
                fmt::Write::write_char(f, char::from(letter))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_as_everybody_does() {
        let check = |pieces: &[&[u8]], text: &str| {
            assert_eq!(Digest::of(pieces).to_string(), text);
            assert_eq!(Digest::parse(text), Some(Digest::of(pieces)));
        };
        check(&[], "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        check(&[b"hello ", b"world"], "sha1:FKXGYNOJJ7H3IFO35FPUBC445EPOQRXN");
        for bad in [
            "",
            "sha1:",
            "sha1:3I42",
            "md5:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
            "sha1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj",
        ] {
            assert_eq!(Digest::parse(bad), None, "{bad}");
        }
    }
}
