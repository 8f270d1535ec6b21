//! How much of a page is kept. Every cap is against pages that are made to cost.

/// Caps of one page. What is beyond a cap is left out and counted in the page's faults.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// How many links are kept. Defaults to 50,000.
    pub links_max: usize,
    /// How many bytes all links may have together, once they are resolved: one long `base` makes every short reference long.
    /// Defaults to 32 MiB.
    pub links_bytes_max: usize,
    /// How long a reference may be, in bytes, a `base` included; longer ones are left out. Defaults to 64 KiB, the longest URL that a frontier takes.
    pub reference_bytes_max: usize,
    /// How much of one tag is looked at, in bytes. Attributes beyond are left out; the tag counts. Defaults to 1 MiB.
    pub tag_bytes_max: usize,
    /// How many attributes of one tag are looked at. Defaults to 512.
    pub attributes_max: usize,
    /// How much visible text counts for the SimHash, in bytes. Defaults to 4 MiB.
    pub text_bytes_max: u64,
    /// How much of one style element, and of a whole style sheet, is looked at, in bytes. Defaults to 4 MiB.
    pub style_bytes_max: usize,
    /// How long one fact (title, description, an OpenGraph value, a language) may be, in bytes; what is longer is cut.
    /// Defaults to 8 KiB.
    pub fact_bytes_max: usize,
    /// How many facts of a kind are kept: OpenGraph values, alternates, JSON-LD blocks, agents with directives.
    /// Defaults to 256.
    pub facts_max: usize,
    /// How long one JSON-LD block may be, in bytes; longer ones are left out, because half of one is of no use.
    /// Defaults to 256 KiB.
    pub json_ld_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            links_max: 50_000,
            links_bytes_max: 32 << 20,
            reference_bytes_max: trapline_core::URL_BYTES_MAX,
            tag_bytes_max: 1 << 20,
            attributes_max: 512,
            text_bytes_max: 4 << 20,
            style_bytes_max: 4 << 20,
            fact_bytes_max: 8 << 10,
            facts_max: 256,
            json_ld_bytes_max: 256 << 10,
        }
    }
}
