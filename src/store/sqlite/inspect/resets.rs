//! What answers show of days that begin nobody knows when.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, named_params};

use crate::clock::{Now, Timestamp};
use crate::job::Columns;
use crate::quota::calendar::Per;
use crate::quota::evidence::{Allowed, Answered};
use crate::quota::{Limit, LimitRule, Upstream};
use crate::reading::Reason;
use crate::store::sqlite::instances::{from_json, key_of};
use crate::store::sqlite::queries;
use crate::store::views::ResetsView;

/// So many attempts are looked at, the latest of all upstreams.
const LATEST: i64 = 5_000;

/// Of each instance of a limit whose days begin nobody knows when: what the latest answers leave.
pub(in crate::store::sqlite) fn resets(
    conn: &Connection,
    now: Now,
    declared: &Upstream,
) -> rusqlite::Result<Vec<ResetsView>> {
    let limits: Vec<_> = declared.limits.iter().filter(|limit| is_unknown(limit)).collect();
    if limits.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = conn.prepare_cached(queries::ANSWERS)?;
    let params = named_params! { ":upstream": declared.name, ":latest": LATEST };
    let rows = query.query_map(params, |row| Answer::read(row, now))?;
    let answers: Vec<Answer> = rows.collect::<rusqlite::Result<_>>()?;
    Ok(limits.into_iter().flat_map(|limit| of_limit(limit, &answers)).collect())
}

fn is_unknown(limit: &Limit) -> bool {
    matches!(&limit.rule, LimitRule::Rolling(rolling) if rolling.stands_for == Some(Per::Day))
}

fn of_limit(limit: &Limit, answers: &[Answer]) -> Vec<ResetsView> {
    let mut instances: BTreeMap<String, Vec<Answered>> = BTreeMap::new();
    for answer in answers.iter().filter(|answer| answer.concerns(limit)) {
        instances.entry(key_of(limit, &answer.partition)).or_default().push(answer.answered);
    }
    let view = |(key, answers): (String, Vec<Answered>)| {
        let allowed = Allowed::by(&answers)?;
        Some(ResetsView { limit: limit.name.clone(), key: from_json(&key), allowed })
    };
    instances.into_iter().filter_map(view).collect()
}

struct Answer {
    partition: Columns,
    /// Whether a limit refused; which one, where that is known.
    is_refusal: bool,
    limit: Option<String>,
    answered: Answered,
}

impl Answer {
    fn read(row: &Row<'_>, now: Now) -> rusqlite::Result<Answer> {
        let wall = |nanos: i64| now.to_wall(Timestamp::from_nanos(nanos));
        let is_refusal = row.get::<_, String>("reason")? == Reason::QuotaExhausted.name();
        // Refused for asking for more than is left, it shows as a grant does that the day is not used up.
        let left: Option<i64> = row.get("left_units")?;
        Ok(Answer {
            is_refusal,
            partition: from_json(&row.get::<_, String>("key")?),
            limit: row.get("limit_name")?,
            answered: Answered {
                sent_at: wall(row.get("sent_at")?),
                ended_at: wall(row.get("ended_at")?),
                refused: is_refusal && left.unwrap_or(0) == 0,
            },
        })
    }

    /// A refusal by another limit says nothing of this one.
    fn concerns(&self, limit: &Limit) -> bool {
        !self.is_refusal || self.limit.as_ref().is_none_or(|name| *name == limit.name)
    }
}
