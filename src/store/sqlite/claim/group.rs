//! How many of a partition's jobs go in one call: one, or as many as a batch holds and the limits grant.

use super::turns::{HeadJob, Turn};
use super::wait::Permit;
use super::{Cost, Decision, Limit, LimitRule, Line, Round, decide};
use crate::job::Columns;
use crate::template::{Place, Template};

/// Jobs that are to go in one call, and what their limits say.
pub(super) struct Group {
    /// At least one.
    pub jobs: Vec<HeadJob>,
    pub permits: Vec<Permit>,
    pub decision: Decision,
}

impl Round<'_> {
    /// The jobs that go with `first`; the others stay where they are.
    pub(super) fn group(&mut self, turn: &mut Turn, first: HeadJob) -> rusqlite::Result<Group> {
        let mut jobs = self.gather(turn, first);
        let mut asked = self.ask_all(turn, &jobs)?;
        if jobs.len() > 1 && self.is_too_many(&asked.1) {
            // The largest number that is not: more jobs never cost less.
            let (mut fit, mut over) = (1, jobs.len());
            while over - fit > 1 {
                let middle = fit.midpoint(over);
                let tried = self.ask_all(turn, jobs.get(..middle).unwrap_or(&jobs))?;
                if self.is_too_many(&tried.1) { over = middle } else { fit = middle }
            }
            for job in jobs.drain(fit..).rev() {
                turn.jobs.push_front(job);
            }
            asked = self.ask_all(turn, &jobs)?;
        }
        let (permits, decision) = asked;
        Ok(Group { jobs, permits, decision })
    }

    /// Whether fewer jobs could go when so many cannot: where a calendar, or a span of time, has not as
    /// much left, or no instance ever has. For a rate they wait, rather than go in parts.
    fn is_too_many(&self, decision: &Decision) -> bool {
        match decision {
            Decision::Never { .. } => true,
            Decision::Wait { limit, blocked, .. } => {
                let name = limit.as_deref();
                let limit = name.and_then(|name| self.wish.upstream.limit(name));
                let trims = |limit: &Limit| {
                    matches!(limit.rule, LimitRule::Budget(_) | LimitRule::Rolling(_))
                };
                !blocked && limit.is_some_and(trims)
            }
            Decision::Admit { .. } | Decision::Busy { .. } => false,
        }
    }

    /// Takes the jobs off the turn that a batch with `first` holds: those of the same request.
    fn gather(&self, turn: &mut Turn, first: HeadJob) -> Vec<HeadJob> {
        if turn.line != Line::Queue {
            // Whoever waits for a job wants its own answer.
            return vec![first];
        }
        let fits = self.together(&first, turn.jobs.iter());
        let mut jobs = vec![first];
        jobs.extend(turn.jobs.drain(..fits.saturating_sub(1)));
        jobs
    }

    /// How many go in one call, of `first` and those behind it; none where `first` alone is too large.
    pub(super) fn together<'j>(
        &self,
        first: &HeadJob,
        others: impl Iterator<Item = &'j HeadJob>,
    ) -> usize {
        let Some(batch) = &self.wish.upstream.batch else { return 1 };
        let template = first.request.body.as_deref().and_then(|body| Template::parse(body).ok());
        let Some(template) =
            template.filter(|template| template.is_batch() && first.redirect.is_none())
        else {
            return 1;
        };
        let alike = |job: &&HeadJob| job.request == first.request && job.redirect.is_none();
        let alike = others.take_while(alike).map(|job| &job.columns);
        let columns: Vec<&Columns> = std::iter::once(&first.columns).chain(alike).collect();
        batch.fits(&template, self.body_place(first), &columns)
    }

    /// Where the body's values stand.
    fn body_place(&self, job: &HeadJob) -> Place {
        let headers = job.request.headers.iter().chain(&self.wish.upstream.request.headers);
        let mut types = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let declared = types.next().map(|(_, value)| value.as_str());
        Place::of_body(declared, job.request.body.as_deref().unwrap_or_default())
    }

    /// What the limits say to a call of these jobs.
    fn ask_all(
        &mut self,
        turn: &Turn,
        jobs: &[HeadJob],
    ) -> rusqlite::Result<(Vec<Permit>, Decision)> {
        let permits = self.permits(turn, jobs)?;
        let ask = |(limit, index, cost): &Permit| {
            self.instances.ask_in(turn.line, *limit, *index, &turn.columns, *cost)
        };
        let mut asks: Vec<_> = permits.iter().filter_map(ask).collect();
        asks.extend(turn.gate.and_then(|gate| self.instances.ask_gate(gate)));
        let decision = decide(&asks, self.txn.now, self.earliest);
        Ok((permits, decision))
    }

    /// The limits that the jobs must pass.
    fn permits(&mut self, turn: &Turn, jobs: &[HeadJob]) -> rusqlite::Result<Vec<Permit>> {
        let mut permits = Vec::with_capacity(self.shared.len() + self.keyed.len());
        for (limit, index) in &self.shared {
            permits.push((*limit, *index, self.cost(*limit, jobs)));
        }
        for limit in &self.keyed {
            let index = self.instances.of_limit(*limit, &turn.columns)?;
            permits.push((*limit, index, self.cost(*limit, jobs)));
        }
        Ok(permits)
    }

    fn cost(&self, limit: usize, jobs: &[HeadJob]) -> u64 {
        let Some(limit) = self.limit(limit) else { return 1 };
        match (&limit.cost, jobs) {
            // An owner says itself how many calls, or items, one of its jobs stands for.
            (Cost::Calls | Cost::Items, [HeadJob { units: units @ 2.., .. }]) => *units,
            (cost, jobs) => cost.of(&jobs.iter().map(|job| &job.columns).collect::<Vec<_>>()),
        }
    }
}
