//! What went wrong, for clients: a code, and a sentence that tells nothing of the machine the service runs on.

use tonic::{Code, Status};
use trapline_frontier::{ErrorKind, StoreError};

use super::Unreadable;

impl From<Unreadable> for Status {
    fn from(unreadable: Unreadable) -> Self {
        Self::invalid_argument(unreadable.to_string())
    }
}

/// What a client is told. Sentences about the caller's own words are passed on; those about disks and servers, which name
/// folders and addresses, go to the log of the service.
pub(crate) fn status(error: &StoreError) -> Status {
    let (code, instead) = match error.kind() {
        ErrorKind::Invalid => (Code::InvalidArgument, None),
        ErrorKind::NotFound => (Code::NotFound, None),
        ErrorKind::Unsupported => (Code::Unimplemented, None),
        ErrorKind::Unavailable => (
            Code::Unavailable,
            Some(
                "the service's store is not to be had at present; try the batch again, its operator's log says why",
            ),
        ),
        ErrorKind::Full => (
            Code::ResourceExhausted,
            Some(
                "the service's store has no room; stop admitting and go on settling, its operator's log says more",
            ),
        ),
        ErrorKind::Corrupt => (
            Code::DataLoss,
            Some("the service's store is damaged; its operator has to look, and its log says where"),
        ),
    };
    match instead {
        Some(instead) => {
            tracing::error!("{error}");
            Status::new(code, instead)
        }
        None => Status::new(code, error.to_string()),
    }
}

/// What a store behind the network says of a call that failed.
pub(crate) fn store_error(attempted: &str, at: &str, status: &Status) -> StoreError {
    let kind = match status.code() {
        Code::InvalidArgument | Code::Unauthenticated | Code::PermissionDenied | Code::OutOfRange => {
            ErrorKind::Invalid
        }
        Code::NotFound => ErrorKind::NotFound,
        Code::Unimplemented => ErrorKind::Unsupported,
        Code::ResourceExhausted => ErrorKind::Full,
        Code::DataLoss => ErrorKind::Corrupt,
        _ => ErrorKind::Unavailable,
    };
    let message = status.message();
    let why = if message.is_empty() { status.code().description() } else { message };
    StoreError::new(kind, format!("grpc store: cannot {attempted} at {at}: {why}"))
}
