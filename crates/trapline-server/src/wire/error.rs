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
        ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Unsupported if error.is_for_operators() => (
            Code::FailedPrecondition,
            Some(
                "the service's store is not as it should be; its operator has to look, and its log says why",
            ),
        ),
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
        None => Status::new(code, for_clients(&error.to_string())),
    }
}

/// A sentence about a caller's own words, without the address of a service behind this one, and with this API's names.
fn for_clients(sentence: &str) -> String {
    let behind = sentence.strip_prefix(BEHIND).and_then(|rest| {
        let (attempted, rest) = rest.split_once(" at ")?;
        Some(format!("cannot {attempted}: {}", rest.split_once(": ")?.1))
    });
    behind
        .unwrap_or_else(|| sentence.to_owned())
        .replace("(Frontier::builder does)", "(Steer with `create` does)")
}

/// How what a store behind the network says begins.
const BEHIND: &str = "grpc store: cannot ";

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
    let hint = if status.code() == Code::Unauthenticated {
        "; the variable TRAPLINE_TOKEN has the token to show"
    } else if NO_ANSWER.iter().any(|sign| why.contains(sign)) {
        "; is the service there, is it the right one of grpc:// and grpcs:// (TLS), and does it want a certificate?"
    } else {
        ""
    };
    StoreError::new(kind, format!("{BEHIND}{attempted} at {at}: {why}{hint}"))
}

/// What the transport says where nothing of a service was heard.
const NO_ANSWER: [&str; 3] = ["transport error", "h2 protocol error", "operation was canceled"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the caller's words were wrong or the store's tables are missing: servers say both in the same way.
    #[test]
    fn clients_hear_nothing_of_servers() {
        for kind in [
            ErrorKind::Invalid,
            ErrorKind::NotFound,
            ErrorKind::Unsupported,
            ErrorKind::Unavailable,
            ErrorKind::Full,
            ErrorKind::Corrupt,
        ] {
            let error = StoreError::of_operators(kind, "postgres://crawler@10.0.0.7/frontier: no such table");
            let status = status(&error);
            assert!(!status.message().contains("10.0.0.7"), "{kind:?}: {status}");
            assert!(status.message().contains("operator"), "{kind:?}: {status}");
            // Whoever waits for the operator goes on by himself once he has looked.
            let callers = store_error("claim", "here", &status).kind();
            assert!(callers != ErrorKind::Invalid && callers != ErrorKind::NotFound, "{kind:?}");
        }
    }

    #[test]
    fn clients_hear_of_no_service_behind_this_one() {
        let behind = Status::not_found(
            "disk store: cannot claim: there is no crawl `c`; create it first (Frontier::builder does)",
        );
        let error = store_error("claim", "10.0.0.7:7071", &behind);
        assert_eq!(
            status(&error).message(),
            "cannot claim: disk store: cannot claim: there is no crawl `c`; create it first (Steer with `create` does)"
        );
        let plain = StoreError::new(ErrorKind::Invalid, "disk store: cannot steer: look at it: 3");
        assert_eq!(status(&plain).message(), "disk store: cannot steer: look at it: 3");
    }
}
