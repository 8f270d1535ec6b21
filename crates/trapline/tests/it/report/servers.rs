//! The page with charts, looked at in Chromium; traces, in `traces.rs`.

mod traces;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{of, report};
use crate::crawl::{crawl, error};
use crate::fetch::{ok, serve};
use crate::folder::Folder;

/// The picture is kept there.
fn picture() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.png")
}

fn chromium(folder: &Folder, more: &[&str], page: &Path) -> Vec<u8> {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", folder.path.join("chromium").display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("Chromium is installed: ./test does it");
    assert!(output.status.success(), "{}", error(&output));
    output.stdout
}

/// How many pixels of a picture have each of some colours. Chromium writes 8 bits a channel, RGB or RGBA, not interlaced.
fn pixels(png: &[u8], colours: &[[u8; 3]]) -> Vec<usize> {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes")) as usize;
    let (width, height, kind) = (number(16), number(20), png[25]);
    let channels = match kind {
        2 => 3,
        6 => 4,
        _ => panic!("a picture of kind {kind}"),
    };
    let (mut data, mut at) = (Vec::new(), 8);
    while at + 8 <= png.len() {
        if &png[at + 4..at + 8] == b"IDAT" {
            data.extend_from_slice(&png[at + 8..at + 8 + number(at)]);
        }
        at += 12 + number(at);
    }
    let mut bytes = Vec::new();
    flate2::read::ZlibDecoder::new(&*data).read_to_end(&mut bytes).expect("the picture is whole");
    let mut counts = vec![0; colours.len()];
    let mut above = vec![0_u8; width * channels];
    for row in bytes.chunks_exact(1 + width * channels).take(height) {
        let mut line = row[1..].to_vec();
        for place in 0..line.len() {
            let left = if place < channels { 0 } else { line[place - channels] };
            let corner = if place < channels { 0 } else { above[place - channels] };
            let up = above[place];
            let predicted = match row[0] {
                0 => 0,
                1 => left,
                2 => up,
                3 => u8::midpoint(left, up),
                _ => paeth(left, up, corner),
            };
            line[place] = line[place].wrapping_add(predicted);
        }
        for pixel in line.chunks_exact(channels) {
            for (count, colour) in counts.iter_mut().zip(colours) {
                *count += usize::from(pixel[..3] == *colour);
            }
        }
        above = line;
    }
    counts
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let guess = i16::from(left) + i16::from(up) - i16::from(corner);
    let far = |value: u8| (guess - i16::from(value)).abs();
    if far(left) <= far(up) && far(left) <= far(corner) {
        left
    } else if far(up) <= far(corner) {
        up
    } else {
        corner
    }
}

#[test]
fn a_browser_shows_rate_statuses_and_queues_and_runs_nothing() {
    let folder = Folder::new("report-page");
    let dir = of(&folder.path).to_owned();
    let address = serve(|path, _| {
        let number = path.strip_prefix("/p").and_then(|number| number.parse::<u32>().ok()).unwrap_or(0);
        match number {
            _ if path == "/robots.txt" => ok("Content-Type: text/plain\r\n", ""),
            number if number % 7 == 3 => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
            number if number % 7 == 5 => "HTTP/1.1 500 Trouble\r\nContent-Length: 0\r\n\r\n".to_owned(),
            number => {
                let links: String =
                    (1..8).map(|more| format!("<a href=/p{}>x</a>", 7 * number + more)).collect();
                ok("Content-Type: text/html\r\n", &links)
            }
        }
    });
    let output = crawl(address, &folder.path, &["--delay", "10ms", "--max-time", "6s"]);
    assert_eq!(output.status.code(), Some(3), "{}", error(&output));
    let store = format!("disk:{dir}/store");
    let script = "</td><script>document.title='taken over'</script><img src=http://192.0.2.1/x>";
    let candidate = serde_json::json!({"url": "http://hostile.test/", "key": script}).to_string();
    let mut admit = Command::new(env!("CARGO_BIN_EXE_trapline"));
    let mut admit = admit
        .args(["frontier", "--store", &store, "admit"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    std::io::Write::write_all(&mut admit.stdin.take().expect("it was asked for"), candidate.as_bytes())
        .unwrap();
    assert!(admit.wait().unwrap().success());

    let page = folder.path.join("report.html");
    let told = report(&["crawl", &dir, "--html", of(&page)]);
    assert_eq!(told.status.code(), Some(0), "{}", error(&told));
    let html = fs::read_to_string(&page).unwrap();
    assert!(!html.contains("<script") && !html.contains("<img") && !html.contains("href"), "{html}");

    let dom = String::from_utf8(chromium(&folder, &["--dump-dom"], &page)).unwrap();
    assert!(dom.contains("<title>Crawl default</title>"), "{dom}");
    assert!(dom.contains("&lt;/td&gt;&lt;script&gt;document.title="), "the queue is told of: {dom}");
    let wanted = format!("--screenshot={}", picture().display());
    chromium(&folder, &[&wanted, "--window-size=1100,2900", "--force-color-profile=srgb"], &page);
    let png = fs::read(picture()).unwrap();
    // Pages and 3xx; 2xx; 4xx; 5xx and errors.
    let colours = [[0x00, 0x72, 0xb2], [0x00, 0x9e, 0x73], [0xe6, 0x9f, 0x00], [0xd5, 0x5e, 0x00]];
    let seen = pixels(&png, &colours);
    assert!(seen.iter().all(|count| *count > 300), "curves and areas are to be seen: {seen:?}");
    assert!(seen[1] > 5000, "2xx is an area: {seen:?}");
}
