//! The texts of all URLs, and what their requests are beside: packed one behind the other in large chunks that
//! never move.
//!
//! A text that is freed leaves a hole, and the next one of its size, or a shorter one, takes it. Holes side by side are not
//! joined. The few texts that are long are kept one by one.

use std::sync::Arc;

use trapline_core::Request;

use crate::payload;

/// Where a text lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextId(pub(super) u32);

impl TextId {
    /// Set in the numbers of long texts.
    const LONG: u32 = 1 << 31;
}

/// Texts lie at multiples of this many bytes, so that 31 bits reach through 16 GiB.
const UNIT: usize = 8;

const CHUNK_UNITS: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 17;

/// The lengths of the URL and of the rest, before both.
const HEAD: usize = 4;

/// A text that takes more units than this is long.
const UNITS_MAX: usize = 256;

/// All texts of a crawl.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// All full but the last.
    chunks: Vec<Vec<u8>>,
    /// The holes, by how many units they have.
    holes: Vec<Vec<u32>>,
    /// A bit for each size of which there is a hole.
    sizes: [u64; UNITS_MAX / 64 + 1],
    hole_units: usize,
    long: Vec<Option<Long>>,
    /// Which of them are free.
    long_holes: Vec<u32>,
    long_bytes: usize,
}

#[derive(Debug)]
struct Long {
    url: Box<str>,
    rest: Box<[u8]>,
}

impl Texts {
    /// Keeps the text of a request.
    pub(super) fn put(&mut self, request: &Request) -> TextId {
        let (url, rest) = (request.url.as_str(), payload::encode(request));
        let units = units_of(url.len(), rest.len());
        if units > UNITS_MAX {
            return self.put_long(Long { url: url.into(), rest: rest.into() });
        }
        let at = self.fill(units).unwrap_or_else(|| self.append(units));
        let text = self.units_mut(at, units);
        text[..2].copy_from_slice(&(url.len() as u16).to_le_bytes());
        text[2..HEAD].copy_from_slice(&(rest.len() as u16).to_le_bytes());
        text[HEAD..HEAD + url.len()].copy_from_slice(url.as_bytes());
        text[HEAD + url.len()..HEAD + url.len() + rest.len()].copy_from_slice(&rest);
        TextId(at)
    }

    fn put_long(&mut self, text: Long) -> TextId {
        self.long_bytes += text.url.len() + text.rest.len();
        let at = match self.long_holes.pop() {
            Some(hole) => {
                self.long[hole as usize] = Some(text);
                hole
            }
            None => {
                self.long.push(Some(text));
                self.long.len() as u32 - 1
            }
        };
        TextId(at | TextId::LONG)
    }

    /// A hole of so many units, or the beginning of the next larger one.
    fn fill(&mut self, units: usize) -> Option<u32> {
        let size = self.hole_size_from(units)?;
        let at = self.holes[size].pop()?;
        if self.holes[size].is_empty() {
            self.sizes[size / 64] &= !(1 << (size % 64));
        }
        self.hole_units -= size;
        if size > units {
            self.dig(at + units as u32, size - units);
        }
        Some(at)
    }

    /// The smallest size, from this one on, of which there is a hole.
    fn hole_size_from(&self, units: usize) -> Option<usize> {
        let mut word = units / 64;
        let mut bits = self.sizes[word] & (u64::MAX << (units % 64));
        while bits == 0 {
            word += 1;
            bits = *self.sizes.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// New units at the end; those left of a chunk in which so many do not fit are given away.
    fn append(&mut self, units: usize) -> u32 {
        let room = self.chunks.last().map_or(0, |last| CHUNK_UNITS - last.len() / UNIT);
        if room < units {
            if let Some(last) = self.chunks.last_mut().filter(|_| room > 0) {
                last.resize(CHUNK_UNITS * UNIT, 0);
                let at = (self.chunks.len() * CHUNK_UNITS - room) as u32;
                self.dig(at, room);
            }
            // The first chunk grows by itself: many crawls are small.
            let bytes = if self.chunks.is_empty() { 0 } else { CHUNK_UNITS * UNIT };
            self.chunks.push(Vec::with_capacity(bytes));
        }
        let number = self.chunks.len() - 1;
        let last = &mut self.chunks[number];
        let at = number * CHUNK_UNITS + last.len() / UNIT;
        last.resize(last.len() + units * UNIT, 0);
        let at = u32::try_from(at).unwrap_or(TextId::LONG);
        assert!(at < TextId::LONG, "who puts a text asks for room first");
        at
    }

    /// Leaves a hole.
    fn dig(&mut self, at: u32, units: usize) {
        if self.holes.is_empty() {
            self.holes.resize_with(UNITS_MAX + 1, Vec::new);
        }
        self.holes[units].push(at);
        self.sizes[units / 64] |= 1 << (units % 64);
        self.hole_units += units;
    }

    /// Gives a text's place back.
    pub(super) fn free(&mut self, id: TextId) {
        if id.0 & TextId::LONG == 0 {
            let (url, rest) = self.get(id);
            let units = units_of(url.len(), rest.len());
            self.dig(id.0, units);
        } else if let Some(text) = self.long.get_mut((id.0 & !TextId::LONG) as usize).and_then(Option::take) {
            self.long_bytes -= text.url.len() + text.rest.len();
            self.long_holes.push(id.0 & !TextId::LONG);
        }
    }

    /// Looks at a text ahead of time, so that it is in the cache when it is wanted.
    pub(super) fn touch(&self, id: TextId) -> u8 {
        let chunk = self.chunks.get(id.0 as usize >> CHUNK_BITS);
        let first = chunk.and_then(|chunk| chunk.get((id.0 as usize & (CHUNK_UNITS - 1)) * UNIT));
        first.copied().unwrap_or(0)
    }

    pub(super) fn url(&self, id: TextId) -> &str {
        self.get(id).0
    }

    /// The request whose text this is.
    pub(super) fn request(&self, id: TextId) -> Arc<Request> {
        let (url, rest) = self.get(id);
        if rest.is_empty() {
            return Arc::new(Request::get(url));
        }
        Arc::new(payload::decode(url.to_owned(), rest).expect("what was encoded can be decoded"))
    }

    fn get(&self, id: TextId) -> (&str, &[u8]) {
        if id.0 & TextId::LONG != 0 {
            let long = self.long.get((id.0 & !TextId::LONG) as usize).and_then(Option::as_ref);
            return long.map_or(("", &[]), |text| (&text.url, &text.rest));
        }
        let chunk = &self.chunks[id.0 as usize >> CHUNK_BITS];
        let text = &chunk[(id.0 as usize & (CHUNK_UNITS - 1)) * UNIT..];
        let url_len = usize::from(u16::from_le_bytes([text[0], text[1]]));
        let rest_len = usize::from(u16::from_le_bytes([text[2], text[3]]));
        let (url, rest) = text[HEAD..HEAD + url_len + rest_len].split_at(url_len);
        (std::str::from_utf8(url).expect("a URL is text"), rest)
    }

    fn units_mut(&mut self, at: u32, units: usize) -> &mut [u8] {
        let chunk = &mut self.chunks[at as usize >> CHUNK_BITS];
        let begin = (at as usize & (CHUNK_UNITS - 1)) * UNIT;
        &mut chunk[begin..begin + units * UNIT]
    }

    /// How many texts certainly still fit into what its numbers can reach, 16 GiB.
    pub(super) fn room(&self) -> usize {
        let units = (TextId::LONG as usize).saturating_sub(self.chunks.len() * CHUNK_UNITS);
        // A hole may be of no use; half of them certainly are.
        (units + self.hole_units / 2) / UNITS_MAX
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(Vec::capacity).sum();
        let holes: usize = self.holes.iter().map(Vec::capacity).sum();
        chunks + holes * size_of::<u32>() + self.long.capacity() * size_of::<Option<Long>>() + self.long_bytes
    }
}

fn units_of(url_len: usize, rest_len: usize) -> usize {
    (HEAD + url_len + rest_len).div_ceil(UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: usize, url_len: usize, body_len: usize) -> Request {
        let url = format!("http://{number}.example/{}", "x".repeat(url_len));
        Request { body: vec![number as u8; body_len], ..Request::get(url) }
    }

    /// Of all sizes, short and long, freed and put again in another order.
    #[test]
    fn texts_come_back_as_they_were_put() {
        let mut texts = Texts::default();
        let mut kept: Vec<(TextId, Request)> = Vec::new();
        for number in 0..20_000 {
            let body = if number % 5 == 0 { number % 700 } else { 0 };
            let url_len = if number % 1000 == 999 { 3000 } else { number * 7 % 300 };
            let request = request(number, url_len, body);
            kept.push((texts.put(&request), request));
            if number % 3 == 0 {
                let (id, _) = kept.swap_remove(number * 31 % kept.len());
                texts.free(id);
            }
        }
        for (id, request) in &kept {
            assert_eq!(texts.url(*id), request.url);
            assert_eq!(*texts.request(*id), *request);
        }
    }

    /// Texts of one size after those of another, as when a crawl goes from site to site.
    #[test]
    fn holes_are_filled_by_shorter_texts() {
        let mut texts = Texts::default();
        for url_len in (10..200).rev() {
            let ids: Vec<_> = (0..1000).map(|number| texts.put(&request(number, url_len, 0))).collect();
            ids.into_iter().for_each(|id| texts.free(id));
        }
        assert!(texts.bytes() < 2 * 1000 * 250, "{} bytes for nothing", texts.bytes());
        assert!(texts.room() > 8_000_000);
    }

    #[test]
    fn holes_are_filled_again() {
        let mut texts = Texts::default();
        for (url_len, body) in [(40, 0), (5000, 0), (10, 60_000)] {
            let mut last = texts.put(&request(0, url_len, body));
            texts.free(last);
            let bytes = texts.bytes();
            for _ in 0..1000 {
                last = texts.put(&request(0, url_len, body));
                texts.free(last);
            }
            assert!(texts.bytes() <= bytes + 100_000, "{url_len} {body}");
        }
    }
}
