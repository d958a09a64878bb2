//! Rows go into a table of a SQLite file that is the user's own: made where it is missing, grown where it
//! lacks columns, one transaction a chunk.
//!
//! Rows are told apart by one column, `key`. One that is there already is replaced, but not by an older
//! one: `cursor` rises with the order in which jobs ended. So writing the same rows again changes nothing.

mod error;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::Value as Cell;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, params_from_iter};
use serde_json::{Map, Value};

use super::value;
pub use error::TableError;
use error::sorted;

/// How long another program's lock is waited for.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The column that every table has, and that rows are told apart by where no other is.
pub const CURSOR: &str = "cursor";

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Integer,
    /// Text of our own.
    Text,
    /// Text of the user's that must stay as it is: `0012` is no 12.
    Verbatim,
    /// Whatever an answer said: each value with its own type, arrays and objects as JSON.
    Any,
}

impl Kind {
    const fn declared(self) -> &'static str {
        match self {
            Kind::Integer => " INTEGER",
            Kind::Text | Kind::Verbatim => " TEXT",
            Kind::Any => "",
        }
    }
}

/// A table that rows are written to.
#[derive(Debug)]
pub struct TableOut {
    conn: Connection,
    path: PathBuf,
    table: String,
    columns: Vec<String>,
    key: String,
    insert: String,
}

impl TableOut {
    /// Opens or makes the file and the table, and adds the columns that it lacks. Rows with the same
    /// value in `key` are one; the names must have it, and [`CURSOR`].
    ///
    /// # Errors
    ///
    /// Where the file cannot be written, or is shaped so that the rows do not fit.
    pub fn open(
        path: &Path,
        table: &str,
        key: &str,
        columns: &[(String, Kind)],
    ) -> Result<TableOut, TableError> {
        one_of_each(columns)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let sort = |error| sorted(path, table, error);
        let mut conn = Connection::open_with_flags(path, flags).map_err(sort)?;
        conn.busy_timeout(BUSY_TIMEOUT).map_err(sort)?;
        let shape = Shape { path, table, key, columns };
        shape.prepare(&mut conn)?;
        Ok(TableOut {
            insert: shape.insert(),
            conn,
            path: path.to_owned(),
            table: table.to_owned(),
            columns: columns.iter().map(|(name, _)| name.clone()).collect(),
            key: key.to_owned(),
        })
    }

    /// Writes rows, all or none.
    ///
    /// # Errors
    ///
    /// Where the file cannot be written, or a row has no value to be told from others by.
    pub fn write(&mut self, rows: &[Map<String, Value>]) -> Result<(), TableError> {
        let TableOut { conn, path, table, columns, key, insert } = self;
        let sort = |error| sorted(path, table, error);
        let txn = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sort)?;
        {
            let mut insert = txn.prepare_cached(insert).map_err(sort)?;
            for row in rows {
                if value(row, key).is_none_or(|value| value.is_null() || value == "") {
                    let job = row.get("id").map(Value::to_string).unwrap_or_default();
                    return Err(TableError::NoKey { job, key: key.clone() });
                }
                let cells = columns.iter().map(|name| cell(value(row, name)));
                insert.execute(params_from_iter(cells)).map_err(sort)?;
            }
        }
        txn.commit().map_err(sort)
    }
}

fn one_of_each(columns: &[(String, Kind)]) -> Result<(), TableError> {
    for (at, (second, _)) in columns.iter().enumerate() {
        let earlier = columns.iter().take(at).map(|(first, _)| first);
        if let Some(first) = earlier.into_iter().find(|first| first.eq_ignore_ascii_case(second)) {
            let (first, second) = (first.clone(), second.clone());
            return Err(TableError::SameName { first, second });
        }
    }
    Ok(())
}

/// What the table is to look like.
struct Shape<'s> {
    path: &'s Path,
    table: &'s str,
    key: &'s str,
    columns: &'s [(String, Kind)],
}

impl Shape<'_> {
    fn prepare(&self, conn: &mut Connection) -> Result<(), TableError> {
        let sort = |error| self.sorted(error);
        let txn = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sort)?;
        match self.found(&txn).map_err(sort)?.as_deref() {
            None => txn.execute_batch(&self.create()).map_err(sort)?,
            Some("table") => self.grow(&txn)?,
            Some(other) => {
                let (table, what) = (self.table.to_owned(), other.to_owned());
                return Err(TableError::NotATable { path: self.path.to_owned(), table, what });
            }
        }
        // Where it has such an index, or a key, the statement can be prepared already.
        if txn.prepare(&self.insert()).is_err() {
            txn.execute_batch(&self.index()).map_err(|error| match error.sqlite_error_code() {
                Some(ErrorCode::ConstraintViolation) => TableError::NotUnique {
                    path: self.path.to_owned(),
                    table: self.table.to_owned(),
                    key: self.key.to_owned(),
                },
                _ => self.sorted(error),
            })?;
        }
        txn.prepare(&self.insert()).map_err(sort)?;
        txn.commit().map_err(sort)
    }

    fn sorted(&self, error: rusqlite::Error) -> TableError {
        sorted(self.path, self.table, error)
    }

    /// What has the table's name already: a table, a view.
    fn found(&self, conn: &Connection) -> rusqlite::Result<Option<String>> {
        let sql = "SELECT type FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE";
        let mut query = conn.prepare(sql)?;
        let mut rows = query.query_map([self.table], |row| row.get(0))?;
        rows.next().transpose()
    }

    fn create(&self) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|(name, kind)| format!("{}{}", quoted(name), kind.declared()))
            .collect();
        format!("CREATE TABLE {} ({})", quoted(self.table), columns.join(", "))
    }

    /// Adds the columns that are missing; those that are there must not change what is written.
    fn grow(&self, conn: &Connection) -> Result<(), TableError> {
        let known = self.known(conn).map_err(|error| self.sorted(error))?;
        for (name, kind) in self.columns {
            let same = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
            match known.iter().find(same) {
                None => {
                    let (table, column) = (quoted(self.table), quoted(name));
                    let sql = format!("ALTER TABLE {table} ADD COLUMN {column}{}", kind.declared());
                    conn.execute_batch(&sql).map_err(|error| self.sorted(error))?;
                }
                Some((_, declared)) if *kind == Kind::Verbatim && !keeps_text(declared) => {
                    return Err(TableError::WrongType {
                        path: self.path.to_owned(),
                        table: self.table.to_owned(),
                        column: name.clone(),
                        declared: declared.clone(),
                    });
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn known(&self, conn: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
        let mut query = conn.prepare("SELECT name, type FROM pragma_table_xinfo(?1)")?;
        let rows = query.query_map([self.table], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    }

    fn index(&self) -> String {
        let index = quoted(&format!("{}_{}", self.table, self.key));
        format!("CREATE UNIQUE INDEX {index} ON {} ({})", quoted(self.table), quoted(self.key))
    }

    fn insert(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|(name, _)| quoted(name)).collect();
        let marks = vec!["?"; names.len()].join(", ");
        let set: Vec<String> =
            names.iter().map(|name| format!("{name} = excluded.{name}")).collect();
        let (table, cursor) = (quoted(self.table), quoted(CURSOR));
        format!(
            "INSERT INTO {table} AS old ({}) VALUES ({marks}) ON CONFLICT ({}) DO UPDATE SET {} \
             WHERE old.{cursor} IS NULL OR old.{cursor} <= excluded.{cursor}",
            names.join(", "),
            quoted(self.key),
            set.join(", ")
        )
    }
}

/// Whether a column declared so leaves texts that look like numbers as they are.
fn keeps_text(declared: &str) -> bool {
    let declared = declared.to_ascii_uppercase();
    let has = |part: &str| declared.contains(part);
    declared.is_empty() || !has("INT") && ["CHAR", "CLOB", "TEXT", "BLOB"].into_iter().any(has)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn cell(value: Option<&Value>) -> Cell {
    match value {
        None | Some(Value::Null) => Cell::Null,
        Some(Value::Bool(yes)) => Cell::Integer(i64::from(*yes)),
        Some(Value::String(text)) => Cell::Text(text.clone()),
        Some(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Cell::Integer(whole),
            (None, Some(real)) if !number.is_u64() => Cell::Real(real),
            _ => Cell::Text(number.to_string()),
        },
        Some(other) => Cell::Text(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
