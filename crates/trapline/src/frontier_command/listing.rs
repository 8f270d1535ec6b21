//! Long answers, page by page: so that a list of millions needs the memory of a page, and its first rows come at once.

use serde_json::{Value, json};
use trapline_core::Timestamp;
use trapline_frontier::{Frontier, Query, Rows, Scan};

use super::moment;
use super::output::{Output, Row};

/// Prints all rows that a query finds, up to a limit. Answers how many there were.
pub(crate) fn print(
    frontier: &Frontier,
    query: Query,
    limit: Option<usize>,
    columns: &[&str],
    out: &mut Output,
    rows_of: impl Fn(Rows) -> Vec<Row>,
) -> Result<usize, String> {
    let mut count = 0;
    each_page(frontier, query, |rows| {
        let mut rows = rows_of(rows);
        rows.truncate(limit.map_or(usize::MAX, |limit| limit - count));
        count += rows.len();
        out.rows(columns, &rows);
        !out.is_closed() && limit != Some(count)
    })?;
    Ok(count)
}

/// Shows all pages, as long as the reader wants more.
pub(crate) fn each_page(
    frontier: &Frontier,
    query: Query,
    mut show: impl FnMut(Rows) -> bool,
) -> Result<(), String> {
    let mut scan = Scan::new(query);
    loop {
        let page =
            pollster::block_on(frontier.scan(moment::now(), &scan)).map_err(|error| error.to_string())?;
        if !show(page.rows) || page.cursor.is_none() {
            return Ok(());
        }
        scan.cursor = page.cursor;
    }
}

/// A time in a row; null if there is none.
pub(crate) fn time(at: Option<Timestamp>) -> Value {
    json!(at.map(moment::write))
}

/// A state by its name, for arguments.
pub(crate) fn named<T: Copy + ToString>(name: &str, states: &[T]) -> Result<T, String> {
    let found = states.iter().copied().find(|state| state.to_string() == name);
    found.ok_or_else(|| {
        let names: Vec<_> = states.iter().map(ToString::to_string).collect();
        format!("write one of {}", names.join(", "))
    })
}
