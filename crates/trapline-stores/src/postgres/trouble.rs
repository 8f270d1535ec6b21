//! What the server's errors mean: to code, whether and how to try again; to people, what was attempted, where, why it failed and what
//! can be done.

use std::error::Error as _;
use std::io;

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};
use trapline_core::format_duration;
use trapline_frontier::{ErrorKind, StoreError};

use super::address::Address;
use super::gate::Gate;

/// Whether a transaction that failed can be tried again at once. Of a failed `COMMIT` it is not known whether it was done: only
/// what can be done twice without harm, or is recognized the second time, may be tried again then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Again on the same connection: others were in the way, and nothing was done.
    Now,
    /// Again on another connection: this one is of no use any more.
    Reconnect,
    /// Not at once: the same would come of it.
    Never,
}

/// Whether what failed so can be tried again.
pub fn is_retryable(error: &Error) -> Retry {
    match error.as_db_error() {
        Some(told) => retry_by_code(told.code(), told.message()),
        None if error.is_closed() || io_error(error).is_some() => Retry::Reconnect,
        None => Retry::Never,
    }
}

fn retry_by_code(code: &SqlState, message: &str) -> Retry {
    match code {
        &SqlState::T_R_SERIALIZATION_FAILURE
        | &SqlState::T_R_DEADLOCK_DETECTED
        | &SqlState::LOCK_NOT_AVAILABLE => Retry::Now,
        &SqlState::ADMIN_SHUTDOWN
        | &SqlState::CRASH_SHUTDOWN
        | &SqlState::CANNOT_CONNECT_NOW
        | &SqlState::IDLE_SESSION_TIMEOUT
        | &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
        | &SqlState::TOO_MANY_CONNECTIONS
        // The server has become a replica: another is the one to write to.
        | &SqlState::READ_ONLY_SQL_TRANSACTION
        // What was prepared is gone: somebody shares connections among clients.
        | &SqlState::INVALID_SQL_STATEMENT_NAME => Retry::Reconnect,
        // A table was changed under a prepared statement. A new connection prepares it anew.
        &SqlState::FEATURE_NOT_SUPPORTED if message.starts_with("cached plan") => Retry::Reconnect,
        code if code.code().starts_with("08") => Retry::Reconnect,
        _ => Retry::Never,
    }
}

/// What a program should do about it.
fn kind_by_code(code: &SqlState, message: &str) -> ErrorKind {
    match code {
        &SqlState::DISK_FULL => ErrorKind::Full,
        &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED | &SqlState::IO_ERROR => ErrorKind::Corrupt,
        &SqlState::QUERY_CANCELED => ErrorKind::Unavailable,
        _ if retry_by_code(code, message) != Retry::Never => ErrorKind::Unavailable,
        code => match &code.code()[..2] {
            // Lack of something, the operator's doing, and the server's own trouble: they pass.
            "53" | "57" | "58" | "XX" => ErrorKind::Unavailable,
            _ => ErrorKind::Invalid,
        },
    }
}

/// What can be done about it.
fn advice(code: &SqlState, address: &Address) -> String {
    let schema = address.schema();
    match code {
        &SqlState::UNDEFINED_TABLE
        | &SqlState::UNDEFINED_COLUMN
        | &SqlState::UNDEFINED_FUNCTION
        | &SqlState::INVALID_SCHEMA_NAME => {
            format!(
                "the tables in the schema `{schema}` are missing or old: run `trapline store migrate URL`, and see what `trapline \
                 store check URL` says"
            )
        }
        &SqlState::INSUFFICIENT_PRIVILEGE => {
            format!("the role may not do this: see what `trapline store check URL` says, and grant it the schema `{schema}`")
        }
        &SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "check the user's name and password in the URL (or PGPASSWORD), and the server's pg_hba.conf".to_owned()
        }
        &SqlState::INVALID_CATALOG_NAME => "create the database first: `createdb NAME`".to_owned(),
        &SqlState::DISK_FULL => {
            "nothing was done and nothing is lost: free some space on the server, then try again".to_owned()
        }
        &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED | &SqlState::IO_ERROR => {
            "nothing was done: stop, and look after the server's disk before anything else is written".to_owned()
        }
        &SqlState::TOO_MANY_CONNECTIONS => {
            "lower `pool` in the URLs of the workers, or raise the server's max_connections; nothing was done".to_owned()
        }
        &SqlState::READ_ONLY_SQL_TRANSACTION => {
            "the server is a replica or set to read only: name the one that can be written to".to_owned()
        }
        &SqlState::QUERY_CANCELED => {
            "it took longer than `statement_timeout` allows, or somebody cancelled it; nothing was done: try again".to_owned()
        }
        &SqlState::LOCK_NOT_AVAILABLE => {
            "somebody held a lock for longer than `lock_timeout` allows; nothing was done: try again".to_owned()
        }
        code if retry_by_code(code, "") != Retry::Never => "nothing was done: try again".to_owned(),
        code => format!("the server's manual explains it under {}", code.code()),
    }
}

/// What callers are told of an error in the middle of work.
pub(super) fn told(attempted: &str, address: &Address, error: &Error) -> StoreError {
    let start = format!("postgres store: cannot {attempted}: {address}: ");
    if let Some(answered) = error.as_db_error() {
        let kind = kind_by_code(answered.code(), answered.message());
        let advice = advice(answered.code(), address);
        return StoreError::of_operators(kind, format!("{start}{}; {advice}", server_said(answered)));
    }
    if is_retryable(error) == Retry::Reconnect {
        let why = reason(error);
        return StoreError::of_operators(
            ErrorKind::Unavailable,
            format!(
                "{start}the connection was lost ({why}); whether this batch was done is not known: try it again, and see that the \
                 server runs"
            ),
        );
    }
    let why = reason(error);
    StoreError::of_operators(
        ErrorKind::Corrupt,
        format!(
            "{start}the server and this program do not understand each other ({why}); see what `trapline store check URL` says"
        ),
    )
}

/// What callers are told who got no connection.
pub(super) fn unreachable(address: &Address, gate: &Gate, error: &PoolError) -> StoreError {
    let start = format!("postgres store: cannot reach {address}: ");
    let waited = format_duration(address.connect_timeout);
    match error {
        PoolError::Backend(error) => not_connected(&start, address, error),
        PoolError::Timeout(TimeoutType::Wait) => StoreError::of_operators(
            ErrorKind::Unavailable,
            format!(
                "{start}all {} connections were in use for {waited}; nothing was done: try again, or raise `pool` in the URL",
                address.connections_max
            ),
        ),
        PoolError::Timeout(_) => {
            let why = gate.last_failure().unwrap_or_else(|| "no answer".to_owned());
            StoreError::of_operators(
                ErrorKind::Unavailable,
                format!(
                    "{start}{why}; tried for {waited} (connect_timeout), and nothing was done: see that the server runs and \
                     can be reached from here, then try again"
                ),
            )
        }
        PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            StoreError::of_operators(ErrorKind::Unavailable, format!("{start}the store is being closed"))
        }
    }
}

fn not_connected(start: &str, address: &Address, error: &Error) -> StoreError {
    if let Some(answered) = error.as_db_error() {
        let kind = kind_by_code(answered.code(), answered.message());
        let advice = advice(answered.code(), address);
        return StoreError::of_operators(kind, format!("{start}{}; {advice}", server_said(answered)));
    }
    let why = reason(error);
    // The driver has no code for it.
    let advice = if why.contains("password missing") {
        "the server asks for a password: write it in the URL, or keep it in the environment as PGPASSWORD"
    } else {
        "check the URL: the host, `sslmode` and `sslrootcert`, the user and the password"
    };
    StoreError::of_operators(ErrorKind::Invalid, format!("{start}{why}; {advice}"))
}

/// Whether an attempt to connect that failed so may be made again soon.
pub(super) fn may_connect_later(error: &Error) -> bool {
    match error.as_db_error() {
        Some(told) => kind_by_code(told.code(), told.message()) == ErrorKind::Unavailable,
        // Of TLS there are errors that come again (a wrong certificate), and those of the network beneath it.
        None => {
            error.is_closed()
                || io_error(error).is_some_and(|error| error.kind() != io::ErrorKind::InvalidData)
        }
    }
}

/// What went wrong, without what the driver says around it.
pub(super) fn reason(error: &Error) -> String {
    if let Some(told) = error.as_db_error() {
        return server_said(told);
    }
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !reason.contains(&cause) {
            reason = format!("{reason}: {cause}");
        }
        source = error.source();
    }
    reason
}

fn server_said(error: &DbError) -> String {
    let detail = error.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
    format!("{}{detail} [SQLSTATE {}]", error.message(), error.code().code())
}

fn io_error(error: &Error) -> Option<&io::Error> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error);
        }
        source = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_trouble_has_its_answer() {
        let check = |code: &str, kind: ErrorKind, retry: Retry| {
            let code = SqlState::from_code(code);
            assert_eq!((kind_by_code(&code, ""), retry_by_code(&code, "")), (kind, retry), "{code:?}");
        };
        use ErrorKind::{Corrupt, Full, Invalid, Unavailable};
        check("40001", Unavailable, Retry::Now);
        check("40P01", Unavailable, Retry::Now);
        check("55P03", Unavailable, Retry::Now);
        check("57P01", Unavailable, Retry::Reconnect);
        check("57P02", Unavailable, Retry::Reconnect);
        check("57P03", Unavailable, Retry::Reconnect);
        check("57P05", Unavailable, Retry::Reconnect);
        check("25P03", Unavailable, Retry::Reconnect);
        check("25006", Unavailable, Retry::Reconnect);
        check("53300", Unavailable, Retry::Reconnect);
        check("08006", Unavailable, Retry::Reconnect);
        check("26000", Unavailable, Retry::Reconnect);
        check("57014", Unavailable, Retry::Never);
        check("53200", Unavailable, Retry::Never);
        check("XX000", Unavailable, Retry::Never);
        check("53100", Full, Retry::Never);
        check("XX001", Corrupt, Retry::Never);
        check("XX002", Corrupt, Retry::Never);
        check("58030", Corrupt, Retry::Never);
        check("42P01", Invalid, Retry::Never);
        check("42501", Invalid, Retry::Never);
        check("28P01", Invalid, Retry::Never);
        check("3D000", Invalid, Retry::Never);
        check("22021", Invalid, Retry::Never);
        check("0A000", Invalid, Retry::Never);
        let plan = "cached plan must not change result type";
        assert_eq!(retry_by_code(&SqlState::FEATURE_NOT_SUPPORTED, plan), Retry::Reconnect);
    }

    #[test]
    fn people_are_told_what_to_do() {
        let address = Address::parse("postgres://h/d?schema=two").unwrap();
        let check = |code: &str, expected: &str| {
            assert_eq!(advice(&SqlState::from_code(code), &address), expected);
        };
        check(
            "42P01",
            "the tables in the schema `two` are missing or old: run `trapline store migrate URL`, and see what `trapline store \
             check URL` says",
        );
        check("3D000", "create the database first: `createdb NAME`");
        check("40001", "nothing was done: try again");
        check("22012", "the server's manual explains it under 22012");
    }
}
