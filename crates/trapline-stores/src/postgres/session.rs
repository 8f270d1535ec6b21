//! A connection in the middle of a transaction, and what may go wrong with it.

use deadpool_postgres::Object;
use futures_util::future::join_all;
use tokio_postgres::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};
use trapline_core::Identity;
use trapline_frontier::StoreError;

use crate::disk::message::Unreadable;

/// What ends a step of work before its time.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database says no, or says nothing any more.
    Database(tokio_postgres::Error),
    /// The step has to be done alone.
    Alone,
    /// Somebody else was faster: the step begins again.
    Again,
    /// The caller gets this.
    Store(StoreError),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A parameter of a statement.
pub(super) type Param<'a> = &'a (dyn ToSql + Sync);

/// A connection.
pub(super) struct Session {
    /// None only while it is dropped.
    client: Option<Object>,
    /// Whether a transaction is under way. A connection that is dropped in the middle of one is not used again.
    open: bool,
    /// The transaction's number, once it has one: to ask what became of it if the answer to its end is lost.
    pub(super) transaction: Option<String>,
    /// Whether the end of the transaction was asked for.
    pub(super) ending: bool,
}

/// What is left of a session whose connection was lost: what to ask another one about.
pub(super) struct Ending {
    pub(super) transaction: Option<String>,
    pub(super) asked_for: bool,
}

impl Session {
    pub(super) fn new(client: Object) -> Self {
        Self { client: Some(client), open: false, transaction: None, ending: false }
    }

    fn client(&self) -> &Object {
        self.client.as_ref().expect("a session has its connection until it is dropped")
    }

    pub(super) async fn rows(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Failure> {
        let statement = self.client().prepare_cached(sql).await?;
        Ok(self.client().query(&statement, params).await?)
    }

    pub(super) async fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, Failure> {
        let statement = self.client().prepare_cached(sql).await?;
        Ok(self.client().execute(&statement, params).await?)
    }

    /// Several statements one after the other, sent without waiting for the answers in between.
    pub(super) async fn execute_all(&self, statements: &[(&str, Vec<Param<'_>>)]) -> Result<(), Failure> {
        let mut prepared = Vec::with_capacity(statements.len());
        for (sql, params) in statements {
            prepared.push((self.client().prepare_cached(sql).await?, params));
        }
        let sent = prepared.iter().map(|(statement, params)| self.client().execute(statement, params));
        for answer in join_all(sent).await {
            answer?;
        }
        Ok(())
    }

    pub(super) async fn begin(&mut self) -> Result<(), Failure> {
        (self.transaction, self.ending) = (None, false);
        self.open = true;
        Ok(self.client().batch_execute("BEGIN").await?)
    }

    pub(super) async fn commit(&mut self) -> Result<(), Failure> {
        self.ending = true;
        self.client().batch_execute("COMMIT").await?;
        self.open = false;
        Ok(())
    }

    /// Gives the connection up, and its place in the pool: who holds one and wants another waits for those who do the same.
    pub(super) fn end(mut self) -> Ending {
        Ending { transaction: self.transaction.take(), asked_for: self.ending }
    }

    /// Ends the transaction without effect. A connection on which that cannot be done is not used again.
    pub(super) async fn roll_back(mut self) {
        self.open = self.client().batch_execute("ROLLBACK").await.is_err();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(client) = self.client.take().filter(|_| self.open) {
            drop(Object::take(client));
        }
    }
}

/// An identity as a column has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key(pub(super) Identity);

impl ToSql for Key {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0.0.to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Key {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(Identity(u128::from_be_bytes(raw.try_into()?))))
    }

    accepts!(UUID);
}

/// A value in the database that cannot be understood.
pub(super) fn unreadable(what: &str, error: &Unreadable) -> Failure {
    let message = format!(
        "PostgreSQL store: {what} cannot be read: {error}; use the version of Trapline that wrote it, or a newer one"
    );
    Failure::Store(StoreError::new(trapline_frontier::ErrorKind::Corrupt, message))
}
