//! The `srcset` attribute: several images for one place.

/// Calls `found` with each image, as the HTML Standard splits them: at commas that end a candidate, not at those inside of one.
pub(crate) fn srcset(value: &str, mut found: impl FnMut(&str)) {
    let is_space = |character: char| matches!(character, '\t' | '\n' | '\u{c}' | '\r' | ' ');
    let mut rest = value;
    loop {
        rest = rest.trim_start_matches(|character| is_space(character) || character == ',');
        if rest.is_empty() {
            return;
        }
        let end = rest.find(is_space).unwrap_or(rest.len());
        let (url, after) = rest.split_at(end);
        let image = url.trim_end_matches(',');
        if !image.is_empty() {
            found(image);
        }
        rest = if image.len() == url.len() { after_descriptors(after) } else { after };
    }
}

/// What follows the comma that ends a candidate's descriptors. Commas in parentheses do not.
fn after_descriptors(text: &str) -> &str {
    let mut in_parentheses = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => in_parentheses = true,
            b')' => in_parentheses = false,
            b',' if !in_parentheses => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_parted_as_the_standard_says() {
        let check = |value: &str, expected: &[&str]| {
            let mut images = Vec::new();
            srcset(value, |image| images.push(image.to_owned()));
            assert_eq!(images, expected, "{value}");
        };
        check("a.png", &["a.png"]);
        check("a.png 1x, b.png 2x", &["a.png", "b.png"]);
        check("a.png,b.png 2x", &["a.png,b.png"]);
        check("a.png, b.png", &["a.png", "b.png"]);
        check(" ,, a.png 100w 50h,\nb.png\t200w ", &["a.png", "b.png"]);
        check("a.png x(1,2), b.png", &["a.png", "b.png"]);
        check("data:image/png;base64,AA== 1x, b", &["data:image/png;base64,AA==", "b"]);
        check("a,,,", &["a"]);
        check("", &[]);
        check(",", &[]);
        check("a (b, c", &["a"]);
    }
}
