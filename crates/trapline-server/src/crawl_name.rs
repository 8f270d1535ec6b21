//! What callers may name a crawl. Names come back in lists and metrics of others, so that there is an end to their length.

/// In bytes.
const LENGTH_MAX: usize = 255;

/// Why a crawl cannot be made by this name.
pub(crate) fn check(name: &str) -> Result<(), String> {
    match name.len() {
        0 => Err("a crawl needs a name: say which in `crawl`".to_owned()),
        length if length > LENGTH_MAX => Err(format!(
            "the name of a crawl has at most {LENGTH_MAX} bytes, and this one has {length}; nothing was done"
        )),
        _ => Ok(()),
    }
}
