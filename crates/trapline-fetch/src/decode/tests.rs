//! Content codings undone: whole, in pieces, broken, and made to hurt.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;
use crate::head::Headers;

/// "Hello, hello, hello!" in Brotli.
const BROTLI_HELLO: &[u8] = &[
    0x8b, 0x09, 0x80, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x2c, 0x20, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x2c, 0x20,
    0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x21, 0x03,
];

/// 64 MiB of zeros in Brotli.
const BROTLI_BOMB: &[u8] = &[
    0xcf, 0xff, 0xff, 0x7f, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x9f, 0xff, 0xff, 0xff,
    0xf0, 0x4f, 0x00, 0xc4, 0x61, 0x01, 0x80, 0xee, 0xfd, 0x3f, 0xff, 0xff, 0xff, 0xe1, 0x9f, 0x00, 0x88,
    0xc3, 0x22, 0x00, 0xdd, 0xfb, 0xff, 0xfc, 0xff, 0xff, 0xc7, 0x3f, 0x01, 0x10, 0x87, 0x05, 0x00, 0xba,
    0xf7, 0xff,
];

fn caps() -> DecodeCaps {
    DecodeCaps {
        decoded_bytes_max: 1 << 20,
        ratio_max: 200,
        ratio_free_bytes: 256 << 10,
        window_bytes_max: 8 << 20,
    }
}

fn codings(text: &str) -> Codings {
    Codings::of(&Headers::of_head(&Bytes::from(format!("HTTP/1.1 200\r\nContent-Encoding: {text}\r\n\r\n"))))
}

fn decode_in(text: &str, body: &[u8], piece: usize) -> Decoded {
    let mut decoder = Decoder::new(&codings(text), 2, caps());
    for piece in body.chunks(piece) {
        if !decoder.push(piece) {
            break;
        }
    }
    decoder.finish()
}

#[track_caller]
fn check(text: &str, body: &[u8], expected: &[u8], fault: Option<DecodeFault>) {
    for piece in [1, 2, 3, 7, 1024, 1 << 20] {
        let decoded = decode_in(text, body, piece);
        assert_eq!(decoded.fault, fault, "{text} in pieces of {piece}");
        assert_eq!(decoded.truncated, None, "{text} in pieces of {piece}");
        assert!(decoded.body == expected, "{text} in pieces of {piece}: {} bytes", decoded.body.len());
    }
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zlib(body: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate(body: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zstd(body: &[u8]) -> Vec<u8> {
    compress_to_vec(body, CompressionLevel::Fastest)
}

/// Text that is neither random nor all alike.
fn prose(bytes: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut state = 1_u64;
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.extend_from_slice(format!("<p>line {} of some page</p>\n", state >> 44).as_bytes());
    }
    text.truncate(bytes);
    text
}

#[test]
fn every_coding_is_undone_however_it_comes() {
    let body = prose(200_000);
    check("gzip", &gzip(&body), &body, None);
    check("X-GZip", &gzip(&body), &body, None);
    check("deflate", &zlib(&body), &body, None);
    check("deflate", &raw_deflate(&body), &body, None);
    check("zstd", &zstd(&body), &body, None);
    check("br", BROTLI_HELLO, b"Hello, hello, hello!", None);
    check("identity", &body, &body, None);
    check("", &body, &body, None);
}

#[test]
fn several_members_and_frames_are_one_body() {
    let twice = [gzip(b"one "), gzip(b""), gzip(b"two")].concat();
    check("gzip", &twice, b"one two", None);
    let skippable = [0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9];
    let frames = [zstd(b"one "), skippable.to_vec(), zstd(b"two")].concat();
    check("zstd", &frames, b"one two", None);
}

#[test]
fn codings_in_one_another_are_undone_up_to_the_limit() {
    let body = prose(20_000);
    check("deflate, gzip", &gzip(&zlib(&body)), &body, None);
    check("zstd, gzip", &gzip(&zstd(&body)), &body, None);
    let thrice = gzip(&gzip(&gzip(&body)));
    check("gzip, gzip, gzip", &thrice, &thrice, Some(DecodeFault::Layers));
}

#[test]
fn what_is_not_encoded_is_kept_as_it_is() {
    check("gzip", b"<html>plain</html>", b"<html>plain</html>", Some(DecodeFault::NotEncoded));
    check("gzip", b"x", b"x", Some(DecodeFault::NotEncoded));
    check("zstd", b"<html>plain</html>", b"<html>plain</html>", Some(DecodeFault::NotEncoded));
    check("gzip, gzip", &gzip(b"<html>once</html>"), b"<html>once</html>", Some(DecodeFault::NotEncoded));
    check("aes128gcm", b"\x01\x02", b"\x01\x02", Some(DecodeFault::Unknown));
    check("gzip, secret", b"\x1f\x8b", b"\x1f\x8b", Some(DecodeFault::Unknown));
}

#[test]
fn what_ends_early_or_breaks_is_kept_as_far_as_it_came() {
    let body = prose(100_000);
    for (text, whole) in [("gzip", gzip(&body)), ("deflate", zlib(&body)), ("zstd", zstd(&body))] {
        for kept in [whole.len() - 1, whole.len() / 2, 20] {
            let decoded = decode_in(text, &whole[..kept], 1000);
            assert_eq!(decoded.fault, Some(DecodeFault::Unfinished), "{text} cut to {kept}");
            assert!(body.starts_with(&decoded.body), "{text} cut to {kept}");
            // Zstandard gives whole blocks or nothing.
            let enough = if text == "zstd" || kept < 100 { 0 } else { kept };
            assert!(decoded.body.len() >= enough, "{text} cut to {kept}: {}", decoded.body.len());
        }
        let mut broken = whole.clone();
        let middle = broken.len() / 2;
        broken[middle..middle + 40].fill(0xff);
        let decoded = decode_in(text, &broken, 1000);
        assert!(decoded.fault.is_some(), "{text} broken");
        let mut surplus = whole.clone();
        surplus.extend_from_slice(b"more than there should be");
        check(text, &surplus, &body, Some(DecodeFault::Surplus));
    }
    let decoded = decode_in("zstd", &zstd(&prose(900_000))[..80_000], 1000);
    assert_eq!(decoded.fault, Some(DecodeFault::Unfinished));
    assert!(decoded.body.len() > 128 << 10, "what is in the window comes out: {}", decoded.body.len());
    check(
        "br",
        &BROTLI_HELLO[..8],
        &decode_in("br", &BROTLI_HELLO[..8], 1).body,
        Some(DecodeFault::Unfinished),
    );
    check("br", &[BROTLI_HELLO, b"x"].concat(), b"Hello, hello, hello!", Some(DecodeFault::Surplus));
    check("br", b"<html>", &decode_in("br", b"<html>", 6).body, decode_in("br", b"<html>", 6).fault);
}

#[test]
fn bombs_end_at_the_cap() {
    let zeros = vec![0; 8 << 20];
    let rle: Vec<u8> = {
        // A frame with a window of 1 MiB and four thousand blocks of 128 KiB, four bytes each.
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50];
        for _ in 0..4000 {
            frame.extend_from_slice(&((128_u32 << 10) << 3 | 1 << 1).to_le_bytes()[..3]);
            frame.push(0);
        }
        frame
    };
    for (text, bomb) in [
        ("gzip", gzip(&zeros)),
        ("deflate", zlib(&zeros)),
        ("zstd", rle),
        ("br", BROTLI_BOMB.to_vec()),
        ("gzip, gzip", gzip(&gzip(&zeros))),
    ] {
        let decoded = decode_in(text, &bomb, 1 << 20);
        assert!(decoded.truncated.is_some(), "{text}");
        assert!(decoded.body.len() <= 1 << 20, "{text}: {}", decoded.body.len());
        assert!(decoded.body.capacity() <= 2 << 20, "{text}: {}", decoded.body.capacity());
    }
    let decoded = decode_in("gzip", &gzip(&zeros), 100);
    assert_eq!(decoded.truncated, Some(Truncated::Ratio));
    let prose = prose(3 << 20);
    assert_eq!(decode_in("gzip", &gzip(&prose), 8 << 10).truncated, Some(Truncated::DecodedBytes));
}

#[test]
fn a_huge_window_is_refused_before_there_is_one() {
    // A window of 2 GiB.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 1, 0, 0];
    check("zstd", &frame, b"", Some(DecodeFault::Window));
    // A single segment that says it has 1 TiB.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0];
    check("zstd", &frame, b"", Some(DecodeFault::Window));
}

#[test]
fn noise_after_a_good_beginning_does_no_harm() {
    let mut state = 7_u64;
    let mut noise = |bytes: usize| -> Vec<u8> {
        let step = |state: &mut u64| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 56) as u8
        };
        (0..bytes).map(|_| step(&mut state)).collect()
    };
    let good = prose(5_000);
    let wholes = [
        ("gzip", gzip(&good)),
        ("deflate", zlib(&good)),
        ("zstd", zstd(&good)),
        ("br", BROTLI_HELLO.to_vec()),
    ];
    for round in 0..400 {
        let (text, whole) = &wholes[round % wholes.len()];
        let cut = noise(2).iter().fold(0, |sum, byte| sum * 256 + usize::from(*byte)) % whole.len();
        let body = [&whole[..cut], noise(300).as_slice()].concat();
        let decoded = decode_in(text, &body, 1 + round % 50);
        assert!(decoded.body.len() <= 1 << 20);
    }
}

/// What looks like nothing must not take long: a mebibyte of members, frames and blocks in which there is nothing.
#[test]
fn empty_parts_cost_no_more_than_their_bytes() {
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00];
    let large_window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x68, 0x01, 0x00, 0x00];
    let blocks = [&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50][..], &[0; 3].repeat(1 << 18)].concat();
    let skipped = [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0];
    for (name, coding, body) in [
        ("gzip members", "gzip", gzip(b"").repeat((1 << 20) / 20)),
        ("zstd frames", "zstd", frame.repeat((1 << 20) / frame.len())),
        ("zstd frames with a window", "zstd", large_window.repeat((1 << 20) / large_window.len())),
        ("zstd blocks", "zstd", blocks),
        ("zstd frames to be skipped", "zstd", skipped.repeat((1 << 20) / skipped.len())),
    ] {
        let started = std::time::Instant::now();
        let decoded = decode_in(coding, &body, 8 << 10);
        let took = started.elapsed();
        assert!(decoded.body.is_empty());
        // A tenth of a second in truth; machines may be busy.
        assert!(took < std::time::Duration::from_secs(5), "{name} took {took:?}");
    }
}
