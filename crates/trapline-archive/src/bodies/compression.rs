//! How bodies are compressed.

use std::io::Write;

use bytes::Bytes;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use trapline_crawl::ports::ArchiveError;

/// As servers do it on the fly: half as small again takes ten times as long.
const BROTLI_QUALITY: u32 = 5;
const BROTLI_WINDOW: u32 = 22;
const BROTLI_BUFFER: usize = 64 << 10;

/// How bodies are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyCompression {
    /// Zstandard, `.zst`.
    #[default]
    Zstd,
    /// Brotli, `.br`.
    Brotli,
    /// As it is.
    None,
}

impl BodyCompression {
    /// Of this name.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "zstd" => Some(Self::Zstd),
            "brotli" => Some(Self::Brotli),
            "none" => Some(Self::None),
            _ => None,
        }
    }

    /// What keys end with.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Zstd => ".zst",
            Self::Brotli => ".br",
            Self::None => "",
        }
    }

    pub(super) fn compress(self, body: Bytes) -> Result<Bytes, ArchiveError> {
        match self {
            Self::None => Ok(body),
            Self::Zstd => Ok(compress_to_vec(&*body, CompressionLevel::Fastest).into()),
            Self::Brotli => {
                let mut writer =
                    brotli::CompressorWriter::new(Vec::new(), BROTLI_BUFFER, BROTLI_QUALITY, BROTLI_WINDOW);
                let written = writer.write_all(&body);
                written.map_err(|error| ArchiveError(format!("cannot compress a body: {error}")))?;
                Ok(writer.into_inner().into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_is_compressed_can_be_read_again() {
        let text: Bytes = "the same words again and again, ".repeat(20_000).into();
        let noise: Bytes =
            (0..200_000_u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
        for body in [text, noise, Bytes::from_static(b"x")] {
            assert_eq!(BodyCompression::None.compress(body.clone()).unwrap(), body);
            let zstd = BodyCompression::Zstd.compress(body.clone()).unwrap();
            let mut read = Vec::new();
            ruzstd::decoding::StreamingDecoder::new(&*zstd).unwrap().read_to_end(&mut read).unwrap();
            assert!(read == body, "zstd");
            let brotli = BodyCompression::Brotli.compress(body.clone()).unwrap();
            let mut read = Vec::new();
            brotli_decompressor::BrotliDecompress(&mut &*brotli, &mut read).unwrap();
            assert!(read == body, "brotli");
            assert!(body.len() < 1000 || zstd.len() < body.len() + 1000 && brotli.len() < body.len() + 1000);
        }
    }
}
