//! A user name and a password, which no log ever shows.
//!
//! Where they may be sent is decided by whoever holds them.

use std::fmt;

use http::HeaderValue;

/// A user name and a password. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: String,
    password: String,
}

impl Credentials {
    /// Takes them as they are, without any decoding.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: password.into() }
    }

    pub(crate) fn user(&self) -> &[u8] {
        self.user.as_bytes()
    }

    pub(crate) fn password(&self) -> &[u8] {
        self.password.as_bytes()
    }

    /// The value of an `Authorization` header (scheme `Basic`), marked as sensitive.
    pub fn basic(&self) -> HeaderValue {
        let mut plain = self.user.clone().into_bytes();
        plain.push(b':');
        plain.extend_from_slice(self.password.as_bytes());
        let text = format!("Basic {}", base64(&plain));
        let mut value = HeaderValue::from_str(&text)
            .expect("base64 has letters, digits and three signs, all fit for headers");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// Base64 with padding, RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let octet = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let bits = octet(0) << 16 | octet(1) << 8 | octet(2);
        for place in 0..4 {
            if place <= chunk.len() {
                text.push(char::from(SIGNS[(bits >> (18 - 6 * place)) as usize & 63]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
            ("\u{ff}?", "w78/"),
        ];
        for (plain, expected) in cases {
            assert_eq!(base64(plain.as_bytes()), expected, "{plain}");
        }
    }

    #[test]
    fn credentials_show_in_no_debug_output() {
        let credentials = Credentials::new("Aladdin", "open sesame");
        assert_eq!(format!("{credentials:?}"), "Credentials(…)");
        assert_eq!(format!("{:?}", credentials.basic()), "Sensitive");
        assert_eq!(credentials.basic(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }
}
