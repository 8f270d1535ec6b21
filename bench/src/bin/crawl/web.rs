//! The web that is crawled: hosts by loopback addresses, as many pages on each, 20 KB and 50 links a page.
//!
//! Everything is a function of the numbers of host and page, so that the set of pages is finite and known: every page of a host can
//! be reached from its root, and no link leads out of the web. A page is made by filling numbers into a form.

use std::net::Ipv4Addr;

pub const PAGE_BYTES: usize = 20_000;
pub const LINKS: usize = 50;
/// Links to other hosts among them.
const ABROAD: usize = 2;

/// How a link ends.
const END: &str = "\">a link</a>";

const WORDS: [&str; 24] = [
    "the",
    "frontier",
    "of",
    "a",
    "crawl",
    "remembers",
    "every",
    "page",
    "and",
    "when",
    "it",
    "was",
    "seen",
    "last",
    "so",
    "that",
    "nothing",
    "is",
    "fetched",
    "twice",
    "or",
    "lost",
    "on",
    "way",
];

#[derive(Clone, Copy)]
pub struct Web {
    pub hosts: u32,
    /// Pages of each host.
    pub pages: u32,
}

impl Web {
    pub fn total(self) -> u64 {
        u64::from(self.hosts) * u64::from(self.pages)
    }

    pub fn address(host: u32) -> Ipv4Addr {
        // From 127.1.0.1 on, 250 in each row.
        Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 1, 0, 1)) + host / 250 * 256 + host % 250)
    }

    pub fn host(self, address: Ipv4Addr) -> Option<u32> {
        let past = u32::from(address).checked_sub(u32::from(Ipv4Addr::new(127, 1, 0, 1)))?;
        let host = past / 256 * 250 + past % 256;
        (past % 256 < 250 && host < self.hosts).then_some(host)
    }

    /// The page of a path: `/` is the first.
    pub fn page(self, path: &str) -> Option<u32> {
        let page = if path == "/" { 0 } else { path.strip_prefix("/p/")?.parse().ok()? };
        (page < self.pages).then_some(page)
    }

    /// Where the links of a page lead: its children in a tree, which reaches every page, and two other hosts.
    fn links(self, host: u32, page: u32) -> impl Iterator<Item = (u32, u32)> {
        let (hosts, pages) = (u64::from(self.hosts), u64::from(self.pages));
        (0..LINKS as u64).map(move |place| {
            let (host, page) = (u64::from(host), u64::from(page));
            let near = LINKS as u64 - ABROAD as u64;
            let (host, page) = if place < near {
                (host, (page * near + place + 1) % pages)
            } else {
                ((host + page * 7 + place) % hosts, (page * 13 + place) % pages)
            };
            (host as u32, page as u32)
        })
    }
}

/// A page with room for its links: it has the same length whatever they lead to.
pub struct Form {
    bytes: Vec<u8>,
    /// Where the URLs stand, and how much room there is for each and the end of its link.
    places: Vec<usize>,
    room: usize,
    head_bytes: usize,
}

impl Form {
    pub fn new(port: u16) -> Self {
        let room = url(Ipv4Addr::new(127, 100, 100, 100), port, 1).len() + END.len();
        let mut words = WORDS.iter().cycle();
        let mut text = String::from(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>A page of a generated web</title>\n\
             <meta name=\"description\" content=\"One of many.\"><style>p { margin: 1em }</style></head><body>\n<h1>A page</h1>\n",
        );
        let mut places = Vec::new();
        let entry_bytes = (PAGE_BYTES - text.len() - 40) / LINKS;
        for _ in 0..LINKS {
            let begun = text.len();
            text.push_str("<div class=\"entry\"><p><a class=\"link\" href=\"");
            places.push(text.len());
            text.push_str(&"x".repeat(room));
            text.push(' ');
            while text.len() - begun < entry_bytes - 30 {
                text.push_str(words.next().unwrap_or(&""));
                text.push_str(if text.len() % 11 == 0 { " <em>and</em> " } else { " " });
            }
            text.push_str("</p></div>\n");
        }
        while text.len() < PAGE_BYTES - 15 {
            text.push(' ');
        }
        text.push_str("</body></html>\n");
        let head = format!(
            "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
            text.len()
        );
        let mut bytes = head.into_bytes();
        let head_bytes = bytes.len();
        bytes.extend_from_slice(text.as_bytes());
        Self { bytes, places, room, head_bytes }
    }

    /// A page as it is sent, head and all.
    pub fn fill(&self, web: Web, port: u16, host: u32, page: u32, answer: &mut Vec<u8>) {
        let begun = answer.len() + self.head_bytes;
        answer.extend_from_slice(&self.bytes);
        for (place, (host, page)) in self.places.iter().zip(web.links(host, page)) {
            let at = begun + place;
            let link = url(Web::address(host), port, page) + END;
            answer[at..at + link.len()].copy_from_slice(link.as_bytes());
            answer[at + link.len()..at + self.room].fill(b' ');
        }
    }
}

/// Pages have six digits. A root is page 0 too, and only ever called `/`.
fn url(address: Ipv4Addr, port: u16, page: u32) -> String {
    if page == 0 {
        format!("http://{address}:{port}/")
    } else {
        format!("http://{address}:{port}/p/{page:06}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_reached_from_the_root_of_its_host() {
        for pages in [1, 2, 49, 100, 200] {
            let web = Web { hosts: 3, pages };
            let mut seen = vec![false; pages as usize];
            let mut todo = vec![0];
            while let Some(page) = todo.pop() {
                if std::mem::replace(&mut seen[page as usize], true) {
                    continue;
                }
                todo.extend(web.links(1, page).filter(|&(host, _)| host == 1).map(|(_, page)| page));
            }
            assert!(seen.iter().all(|&seen| seen), "{pages}");
        }
    }

    #[test]
    fn addresses_and_hosts_are_the_same_thing() {
        let web = Web { hosts: 1000, pages: 10 };
        for host in 0..1000 {
            assert_eq!(web.host(Web::address(host)), Some(host));
        }
        assert_eq!(web.host(Ipv4Addr::LOCALHOST), None);
        assert_eq!((web.page("/"), web.page("/p/000009"), web.page("/p/000010")), (Some(0), Some(9), None));
    }

    #[test]
    fn a_page_has_its_size_and_its_links() {
        let web = Web { hosts: 1000, pages: 100 };
        let mut answer = Vec::new();
        Form::new(40_000).fill(web, 40_000, 7, 3, &mut answer);
        let text = String::from_utf8(answer).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Content-Length: 20000"), "{head}");
        assert_eq!(
            (body.len(), body.matches("<a ").count(), body.matches("127.1.0.8:40000/").count()),
            (PAGE_BYTES, 50, 48)
        );
        assert!(!body.contains("xxx"));
    }
}
