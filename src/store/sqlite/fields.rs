//! A wide row that is read for each call: column by column, in the order of its statement. Looking each up by
//! its name costs as much as finding the row.

use std::cell::Cell;

use rusqlite::Row;
use rusqlite::types::FromSql;

/// One row, and how far it is read.
pub(super) struct Fields<'r, 's> {
    row: &'r Row<'s>,
    read: Cell<usize>,
}

impl<'r, 's> Fields<'r, 's> {
    pub fn of(row: &'r Row<'s>) -> Self {
        Fields { row, read: Cell::new(0) }
    }

    /// The next column.
    pub fn next<T: FromSql>(&self) -> rusqlite::Result<T> {
        let index = self.read.get();
        self.read.set(index + 1);
        self.row.get(index)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn columns_come_one_after_the_other_and_no_more_than_there_are() {
        let conn = Connection::open_in_memory().unwrap();
        conn.query_row("SELECT 1, 'two', NULL", [], |row| {
            let fields = Fields::of(row);
            assert_eq!(fields.next::<i64>()?, 1);
            assert_eq!(fields.next::<String>()?, "two");
            assert_eq!(fields.next::<Option<i64>>()?, None);
            assert!(fields.next::<i64>().is_err());
            Ok(())
        })
        .unwrap();
    }
}
