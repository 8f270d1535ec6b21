//! Makes connections, one after another through the [`Gate`], and sets up what every session needs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::Address;
use super::gate::Gate;
use super::trouble;

/// One attempt may take so long, names, TLS and password included: a server that accepts and says nothing is as good as down.
const ATTEMPT_MAX: Duration = Duration::from_secs(5);

/// What carries messages of a connection; nothing moves unless it is polled.
pub(super) type Carrier = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// How to get a connection to one address.
#[derive(Clone)]
pub(super) struct Connector {
    config: Config,
    tls: MakeRustlsConnect,
    session: Arc<str>,
    gate: Arc<Gate>,
}

impl Connector {
    pub(super) fn new(address: &Address) -> Result<Self, String> {
        Ok(Self {
            config: address.config.clone(),
            tls: address.tls.connector()?,
            session: session(address).into(),
            gate: Arc::default(),
        })
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Connects, trying again for as long as the trouble may pass. Whoever cannot wait drops the future.
    pub(super) async fn connect(&self) -> Result<(Client, Carrier), Error> {
        loop {
            let turn = self.gate.turn().await;
            match tokio::time::timeout(ATTEMPT_MAX, self.config.connect(self.tls.clone())).await {
                Ok(Ok(connected)) => {
                    self.gate.succeeded();
                    return Ok(connected);
                }
                Ok(Err(error)) => {
                    self.gate.failed(trouble::reason(&error));
                    if !trouble::may_connect_later(&error) {
                        return Err(error);
                    }
                }
                Err(_) => self.gate.failed("the server accepts connections and does not answer".to_owned()),
            }
            drop(turn);
        }
    }
}

impl Connect for Connector {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        Box::pin(async {
            loop {
                let (client, carrier) = Self::connect(self).await?;
                let carried = tokio::spawn(async {
                    // Whoever waits for an answer is told; nobody else has to know.
                    let _ = carrier.await;
                });
                match client.batch_execute(&self.session).await {
                    Ok(()) => return Ok((client, carried)),
                    // Lost before it was of any use: as if it had never been.
                    Err(error) if trouble::may_connect_later(&error) => {
                        self.gate.failed(trouble::reason(&error));
                    }
                    Err(error) => return Err(error),
                }
            }
        })
    }
}

/// How a session of ours behaves, whatever the role's or the database's own settings are. `synchronous_commit` is left to them.
///
/// These are sent and not put into the start of the connection, because poolers in between refuse what they do not know there.
fn session(address: &Address) -> String {
    let Address { schema, statement_timeout, lock_timeout, .. } = address;
    let (statement, lock) = (statement_timeout.as_millis(), lock_timeout.as_millis());
    // Locks that a hung process holds in the middle of a transaction hold up others; a minute is long for our verbs.
    // Compiling a statement takes longer than any of ours runs. All of ours go by an index, in its order; for a table that was empty
    // when its statistics were taken, a bitmap of all of a crawl looks as good to the planner.
    format!(
        "SET search_path TO \"{schema}\"; \
         SET statement_timeout TO {statement}; \
         SET lock_timeout TO {lock}; \
         SET idle_in_transaction_session_timeout TO 60000; \
         SET default_transaction_isolation TO 'read committed'; \
         SET TimeZone TO 'UTC'; \
         SET client_min_messages TO warning; \
         SET jit TO off; \
         SET enable_seqscan TO off; SET enable_bitmapscan TO off; \
         SET enable_hashjoin TO off; SET enable_mergejoin TO off; \
         SET plan_cache_mode TO force_generic_plan"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_told_what_was_chosen() {
        let address =
            Address::parse("postgres://h/d?schema=two&statement_timeout=2m&lock_timeout=0").unwrap();
        let session = session(&address);
        for told in ["search_path TO \"two\";", "statement_timeout TO 120000;", "lock_timeout TO 0;"] {
            assert!(session.contains(told), "{session}");
        }
        assert!(!session.contains("synchronous_commit"));
    }
}
