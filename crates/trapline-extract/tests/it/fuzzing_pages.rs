//! The fuzz targets of pages for a few thousand mutations each, the same ones every time. A real fuzzer looks further.

use trapline_extract::fuzz::pages;

/// Where mutations start from.
const SEEDS: [&[u8]; 12] = [
    b"<!doctype html><html lang=de><head><meta charset=utf-8><title>a &amp; b</title><base href=../x/><link rel=canonical href=/c></head>",
    b"<body background=a><a href='b?c&amp;d' rel=nofollow>e</a><img src=f srcset='g 1x, h 2x'><area href=i><form action=j></form>",
    b"<script type='application/ld+json'>{}</script><script><!-- <script> </script> --></script><style>@import 'a';b{c:url(d)}</style>",
    b"<svg><title>a</title><style>b</style><![CDATA[<c>]]><a xlink:href=d></a></svg><math><mi>e</mi><annotation-xml encoding=text/html>",
    b"<meta name=robots content='noindex, nofollow'><meta http-equiv=refresh content='0;url=a'><meta property=og:title content=b><p style='c:url(d)'>",
    b"<!-- a --!> <!--> b <? c > </ d > <textarea><a href=e></textarea> &copy &#x41; &notit; <plaintext> f",
    b"@charset \"latin1\"; @import url(a) screen; b { c: url('d\\'e') } /* f */ g { h: url(i\\29 j) }",
    b"<a>; rel=\"next prev\"; hreflang=de, </b>; rel=canonical; anchor=\"#c\", <d>; title=\"e, f\"",
    b"text/html; charset=\"utf-8\"; x=y",
    b"\xff\xfe<\0a\0 \0h\0r\0e\0f\0=\0x\0>\0",
    b"\x89PNG\r\n\x1a\n GIF89a %PDF- RIFF....WEBPVP <rss> <feed>",
    b"\x1b$B$3$s\x1b(B \x82\xa0\x82\xa2 \xcf\xf0\xe8\xe2\xe5\xf2 \xd0\x9f\xd1\x80",
];

/// A small generator that needs nothing: SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % end.max(1) as u64) as usize
    }

    fn mutated(&mut self) -> Vec<u8> {
        let mut bytes = SEEDS[self.below(SEEDS.len())].to_vec();
        for _ in 0..self.below(8) {
            let at = self.below(bytes.len() + 1);
            let end = (at + self.below(12)).min(bytes.len());
            match self.below(5) {
                0 => drop(bytes.drain(at..end)),
                1 => bytes.insert(at, self.below(256) as u8),
                2 => {
                    let piece = bytes[at..end].to_vec();
                    let place = self.below(bytes.len() + 1);
                    bytes.splice(place..place, piece);
                }
                3 => {
                    let other = SEEDS[self.below(SEEDS.len())];
                    let from = self.below(other.len());
                    let to = (from + self.below(40)).min(other.len());
                    bytes.splice(at..at, other[from..to].iter().copied());
                }
                _ => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
            }
        }
        bytes
    }
}

#[track_caller]
fn run(target: fn(&[u8]), seed: u64, rounds: usize) {
    SEEDS.iter().for_each(|bytes| target(bytes));
    let mut random = Random(seed);
    for round in 0..rounds {
        let bytes = random.mutated();
        if std::panic::catch_unwind(|| target(&bytes)).is_err() {
            panic!("round {round} of seed {seed} found {:?}", bytes.escape_ascii().to_string());
        }
    }
}

#[test]
fn html_holds_what_it_promises() {
    run(pages::html, 1, 4000);
}

#[test]
fn css_holds_what_it_promises() {
    run(pages::css, 2, 4000);
}

#[test]
fn link_headers_hold_what_they_promise() {
    run(pages::link_header, 3, 4000);
}

#[test]
fn charsets_hold_what_they_promise() {
    run(pages::charset, 4, 4000);
}

#[test]
fn mime_types_hold_what_they_promise() {
    run(pages::mime, 5, 4000);
}
