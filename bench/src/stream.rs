//! The URLs that every subject is offered, made from numbers: the same number, the same URL, in every process.
//!
//! Nothing is kept: a repeated URL is made anew, as a crawler makes it anew from every page that links to it.

/// Of five new URLs, one goes to the hosts in turn, so that every host occurs; four are Zipf's.
const IN_TURN: u64 = 5;

/// Offers of which exactly half are of URLs offered before, spread over the whole stream.
pub struct Offers {
    random: Random,
    hosts: u64,
    left: u64,
    new_left: u64,
    /// So many different URLs were offered so far: the numbers below.
    known: u64,
}

impl Offers {
    pub fn new(seed: u64, offers: u64, hosts: u64) -> Self {
        Self { random: Random(seed), hosts, left: offers, new_left: offers / 2, known: 0 }
    }

    /// Offers that come after others of which so many were new.
    pub fn after(known: u64, seed: u64, offers: u64, hosts: u64) -> Self {
        Self { known, ..Self::new(seed, offers, hosts) }
    }

    /// The next so many URLs; fewer at the end.
    pub fn batch(&mut self, urls: usize) -> Vec<String> {
        self.by_ref().take(urls).collect()
    }

    /// The host of a URL. Zipf's law with exponent 1: the logarithm of the rank is uniform.
    fn host_of(&self, number: u64) -> u64 {
        if number.is_multiple_of(IN_TURN) {
            // The factor has no divisor in common with a power of ten, so this meets every host, in no order.
            return number / IN_TURN * 61_403 % self.hosts;
        }
        let rank = (self.hosts as f64).powf(Random(number).unit()) as u64;
        (rank - 1).min(self.hosts - 1)
    }
}

impl Iterator for Offers {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if self.left == 0 {
            return None;
        }
        let new = self.known == 0 || self.random.below(self.left) < self.new_left;
        self.left -= 1;
        let number = if new {
            self.new_left -= 1;
            self.known += 1;
            self.known - 1
        } else {
            self.random.below(self.known)
        };
        Some(url(self.host_of(number), number))
    }
}

/// The URL of a number on a host: about 65 bytes, most of them in canonical form already, some not.
pub fn url(host: u64, number: u64) -> String {
    let mut random = Random(host ^ 0x7e57);
    let prefix = random.choose(&["www.", "www.", "www.", "", "", "blog.", "shop."]);
    let word = random.choose(&WORDS);
    let suffix = random.choose(&["com", "com", "com", "org", "net", "de", "co.uk", "io", "fr", "com.br"]);
    let scheme = random.choose(&["https", "https", "https", "http"]);
    format!("{scheme}://{prefix}{word}{host}.{suffix}{}", path(number))
}

/// Another URL on the host of one.
pub fn sibling(url: &str, number: u64) -> String {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find('/').map_or(url.len(), |at| host + at);
    format!("{}{}", &url[..end], path(number))
}

/// One of ten priorities, where a subject is to have any.
pub fn priority(number: u64) -> i8 {
    Random(number ^ 0x0411).below(10) as i8
}

/// A path that no other number has.
fn path(number: u64) -> String {
    let mut random = Random(number);
    let section = random.choose(&["articles", "news", "products", "forum", "wiki", "en/blog"]);
    let year = 2005 + random.below(21);
    let (first, second) = (random.choose(&WORDS), random.choose(&WORDS));
    let page = random.below(40);
    let query = match random.below(20) {
        0..=2 => format!("?page={page}"),
        3 | 4 => format!("?id={page}&ref=home"),
        5 => format!("?sort=date&page={page}"),
        6 => format!("?q={first}%20{second}"),
        7 => format!("?q=%7e{first}"),
        _ => String::new(),
    };
    format!("/{section}/{year}/{first}-{second}-{number}{query}")
}

const WORDS: [&str; 16] = [
    "harbor", "quiet", "river", "orchard", "signal", "copper", "meadow", "lantern", "atlas", "winter",
    "garden", "studio", "market", "summit", "falcon", "paper",
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// 0.0 up to, but not including, 1.0.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn choose(&mut self, choices: &[&'static str]) -> &'static str {
        choices[self.below(choices.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn half_of_the_offers_are_known_and_every_host_occurs() {
        let urls = Offers::new(1, 100_000, 10_000).collect::<Vec<_>>();
        let different = urls.iter().collect::<BTreeSet<_>>();
        let hosts = urls.iter().map(|url| url.split('/').nth(2)).collect::<BTreeSet<_>>();
        assert_eq!((urls.len(), different.len(), hosts.len()), (100_000, 50_000, 10_000));
        let in_first_half = urls[..50_000].iter().collect::<BTreeSet<_>>().len();
        assert!((24_000..26_000).contains(&in_first_half), "{in_first_half}");
        let bytes = urls.iter().map(String::len).sum::<usize>() / urls.len();
        assert!((60..=70).contains(&bytes), "{bytes} bytes a URL");
    }

    #[test]
    fn a_sibling_shares_the_host() {
        let host = |url: &str| url.split('/').nth(2).map(str::to_owned);
        let first = url(7, 1);
        assert_eq!(host(&sibling(&first, 2)), host(&first));
        assert_eq!(sibling(&first, 1), first);
    }
}
