//! Errors of a store as messages. Kinds are kept by their numbers.

use prost::Message;
use trapline_frontier::{ErrorKind, StoreError};

/// Every kind there is; its number is its place, counting from 1.
const KINDS: [ErrorKind; 6] = [
    ErrorKind::Invalid,
    ErrorKind::NotFound,
    ErrorKind::Unsupported,
    ErrorKind::Unavailable,
    ErrorKind::Full,
    ErrorKind::Corrupt,
];

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ErrorMessage {
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(string, tag = "2")]
    message: String,
}

impl From<&StoreError> for ErrorMessage {
    fn from(error: &StoreError) -> Self {
        let kind = KINDS.iter().position(|kind| *kind == error.kind());
        Self { kind: kind.map_or(0, |place| place as u32 + 1), message: error.to_string() }
    }
}

impl ErrorMessage {
    /// A kind that is not known yet means what is safest: stop and call a person.
    pub(crate) fn read(self) -> StoreError {
        let Self { kind, message } = self;
        let place = (kind as usize).checked_sub(1);
        let kind = place.and_then(|place| KINDS.get(place)).copied().unwrap_or(ErrorKind::Corrupt);
        StoreError::new(kind, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_back_as_they_were() {
        for kind in KINDS {
            let bytes = ErrorMessage::from(&StoreError::new(kind, "why")).encode_to_vec();
            let read = ErrorMessage::decode(&*bytes).unwrap().read();
            assert_eq!((read.kind(), read.to_string()), (kind, "why".to_owned()));
        }
        for kind in [0, 7, u32::MAX] {
            assert_eq!(ErrorMessage { kind, message: String::new() }.read().kind(), ErrorKind::Corrupt);
        }
    }
}
