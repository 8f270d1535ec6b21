//! Bytes as JSON: a text where they are one, else an object with their hexadecimal digits, `{"hex":"00ff"}`.

use serde_json::{Value, json};

pub(super) fn write(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "hex": hex(bytes) }),
    }
}

/// The bytes of a value; None if it has none.
pub(super) fn read(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.into_bytes()),
        Value::Object(object) if object.len() == 1 => read_hex(object.get("hex")?.as_str()?),
        _ => None,
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

pub(super) fn read_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_and_read_alike() {
        for bytes in [&b""[..], b"text", "ä\u{0}".as_bytes(), &[0, 255], &[0x80]] {
            assert_eq!(read(write(bytes)).as_deref(), Some(bytes));
        }
        assert_eq!(write(&[0, 255]), json!({"hex": "00ff"}));
        for bad in
            [json!(1), json!(null), json!({}), json!({"hex": "0"}), json!({"hex": "0g"}), json!({"hex": 1})]
        {
            assert_eq!(read(bad), None);
        }
        assert_eq!(read(json!({"hex": "00", "more": 1})), None);
    }
}
