//! Which URL is which: keyed BLAKE3, cut to 128 bits, over method, canonical URL and body.
//!
//! Keyed, because a page that could predict identities could craft two URLs that look like one and hide the
//! second. Uniform in all its bits, so that any of them may choose a bucket.

use std::fmt;

/// Who a URL is, within one crawl. Exact for all practical purposes: 128 bits of a keyed hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(pub u128);

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({:032x})", self.0)
    }
}

/// The secret of a crawl's identities, drawn when it is created and stored with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IdentityKey([u8; 32]);

impl fmt::Debug for IdentityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdentityKey(…)")
    }
}

impl IdentityKey {
    /// Draws a key from the operating system.
    ///
    /// # Panics
    /// If the operating system has no randomness to give, which it does not do after boot.
    #[expect(clippy::disallowed_methods, reason = "the one draw: a crawl's key must not be guessable")]
    pub fn draw() -> Self {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the operating system has randomness");
        Self(bytes)
    }

    /// A key made from a number, for tests and simulations that must repeat.
    pub fn from_seed(seed: u64) -> Self {
        Self(*blake3::hash(&seed.to_le_bytes()).as_bytes())
    }

    /// The stored form.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The form to store.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The identity of a request with this method, canonical URL and body.
    pub fn identify(&self, method: &str, canonical: &str, body: &[u8]) -> Identity {
        self.hash(&[method.as_bytes(), canonical.as_bytes(), body])
    }

    /// The identity of a request whose caller brings a fingerprint of its own.
    pub fn identify_fingerprint(&self, fingerprint: &[u8]) -> Identity {
        self.hash(&[fingerprint])
    }

    /// Hashes the parts with their lengths, so that no two lists of parts read alike.
    fn hash(&self, parts: &[&[u8]]) -> Identity {
        let mut buffer = [0u8; 512];
        let needed = parts.iter().map(|part| part.len() + 8).sum::<usize>();
        let hash = if needed <= buffer.len() {
            let mut end = 0;
            for part in parts {
                buffer[end..end + 8].copy_from_slice(&(part.len() as u64).to_le_bytes());
                buffer[end + 8..end + 8 + part.len()].copy_from_slice(part);
                end += 8 + part.len();
            }
            blake3::keyed_hash(&self.0, &buffer[..end])
        } else {
            let mut hasher = blake3::Hasher::new_keyed(&self.0);
            for part in parts {
                hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
            }
            hasher.finalize()
        };
        let first: [u8; 16] = hash.as_bytes()[..16].try_into().expect("a hash has 32 bytes");
        Identity(u128::from_le_bytes(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These numbers are stored in the field: if this test fails, the change is wrong, not the test.
    #[test]
    fn identities_never_change() {
        let key = IdentityKey::from_seed(1);
        let check = |method, url: &str, body: &[u8], identity| {
            assert_eq!(key.identify(method, url, body), Identity(identity), "{method} {url}");
        };
        check("GET", "http://a.example/", b"", 0x22d49479_2ebedbf7_7653f5b9_9f315eb5);
        check("POST", "http://a.example/", b"a=1", 0x46bbe853_bf233907_5a7fe5e2_ffc847b8);
        check("GET", &"http://a.example/".repeat(28), b"", 0x23f8666a_56d85901_a55209c3_5e18a96c);
        check("GET", &"http://a.example/".repeat(29), b"", 0xac469128_6c9a84b5_7ffd205b_2e2be5e3);
        assert_eq!(key.identify_fingerprint(b"mine"), Identity(0x6d9ec538_7da647b6_84070888_9a66f1ce));
    }
}
