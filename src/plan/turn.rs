//! Where a row stands in line, and what changes of it are told by.

use super::{LASTMOD, Lastmod, MAX_PRIORITY, PlanError, Planner};
use crate::clock::Timestamp;
use crate::job::Columns;

impl Planner<'_> {
    /// The job's priority where somebody says one, and since when it stands in line, where the row tells. What has no date yet
    /// comes first.
    pub(super) fn turn(
        &self,
        columns: &Columns,
    ) -> Result<(Option<u8>, Option<Timestamp>), PlanError> {
        let own = self.options.priority;
        let Some(column) = &self.options.priority_from else { return Ok((own, None)) };
        let value = columns.get(column).ok_or_else(|| self.missing(column, columns))?.trim();
        if value.is_empty() {
            return Ok((own, Some(Timestamp::EPOCH)));
        }
        let priority = value.parse().ok().filter(|priority: &u8| *priority <= MAX_PRIORITY);
        match (priority, Lastmod::parse(value)) {
            (Some(_), _) => Ok((priority, None)),
            (None, Some(date)) => Ok((own, Some(date.begins_at()))),
            (None, None) => {
                Err(PlanError::Turn { column: column.clone(), value: value.to_owned() })
            }
        }
    }

    /// What `--changed` tells changes by, now or another day; the empty text for what is to be told and
    /// says nothing of itself.
    pub(super) fn lastmod(&self, columns: &Columns) -> Result<Option<String>, PlanError> {
        let changed = self.options.changed;
        let text = columns.get(LASTMOD).map_or("", |text| text.trim());
        match Lastmod::parse(text) {
            Some(lastmod) => Ok(Some(lastmod.same())),
            None if changed && !text.is_empty() => Err(PlanError::Lastmod(text.to_owned())),
            None => Ok(changed.then(String::new)),
        }
    }
}
