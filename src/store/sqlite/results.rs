//! Ended jobs in the order in which they ended.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::queries;
use crate::clock::Timestamp;
use crate::job::JobId;
use crate::store::views::ResultNames;
use crate::store::{Cursor, Filter};

/// Jobs that fit the filter and run.
pub(super) fn running(conn: &Connection, filter: &Filter) -> rusqlite::Result<u64> {
    let any_state = Filter { states: Vec::new(), ..filter.clone() };
    let (condition, values) = queries::job_filter(&any_state);
    let sql = queries::running_where(&condition);
    let count: i64 = conn.query_row(&sql, params_from_iter(values), |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

pub(super) fn ended(
    conn: &Connection,
    filter: &Filter,
    after: Option<Cursor>,
    latest_by: Option<&str>,
) -> rusqlite::Result<Vec<Cursor>> {
    let (condition, conditions) = queries::job_filter(filter);
    let mut values: Vec<Value> = Vec::new();
    let sql = match latest_by {
        Some(column) => {
            values.push(queries::column_path(column).into());
            queries::ended_latest_where(&condition)
        }
        None => queries::ended_where(&condition, !filter.ids.is_empty()),
    };
    values.extend(conditions);
    let [ended_at, job] = place(after);
    let most = filter.limit.map_or(-1, super::usage::stored);
    values.extend([ended_at, job, most].map(Value::from));
    let mut query = conn.prepare(&sql)?;
    let rows = query.query_map(params_from_iter(values), |row| {
        let ended_at = Timestamp::from_nanos(row.get(1)?);
        Ok(Cursor { ended_at, job: JobId(row.get(0)?) })
    })?;
    rows.collect()
}

/// Ended jobs that fit the filter, were answered, and whose answer was not kept, or not `whole`.
pub(super) fn bodiless(
    conn: &Connection,
    filter: &Filter,
    after: Option<Cursor>,
    whole: bool,
) -> rusqlite::Result<u64> {
    let (condition, mut values) = queries::job_filter(filter);
    values.extend(place(after).map(Value::from));
    values.push(Value::from(!whole));
    let sql = queries::bodiless_where(&condition);
    let count: i64 = conn.query_row(&sql, params_from_iter(values), |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// What comes after the cursor, or everything.
fn place(after: Option<Cursor>) -> [i64; 2] {
    after.map_or([i64::MIN, 0], |cursor| [cursor.ended_at.as_nanos(), cursor.job.0])
}

pub(super) fn names(conn: &Connection, filter: &Filter) -> rusqlite::Result<ResultNames> {
    let (condition, values) = queries::job_filter(filter);
    let of = |object: &str| -> rusqlite::Result<Vec<String>> {
        let mut query = conn.prepare(&queries::result_names_where(object, &condition))?;
        let rows = query.query_map(params_from_iter(&values), |row| row.get(0))?;
        let mut names: Vec<String> = rows.collect::<rusqlite::Result<_>>()?;
        names.sort_unstable();
        Ok(names)
    };
    Ok(ResultNames { fields: of("fields")?, columns: of("columns")? })
}
