//! Additions: jobs enter the queue under a load's name, duplicates are counted.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{OptionalExtension, named_params};
use sha2::{Digest, Sha256};

use super::dedupe::{Key, Keys};
use super::instances::to_json;
use super::places::Line;
use super::usage::stored;
use super::writer::Txn;
use super::{places, queries};
use crate::clock::Timestamp;
use crate::job::{Columns, Dedupe, JobId, NewJob, Request};
use crate::quota::Upstream;
use crate::store::{Added, OwnedJob, RunnerId};
use crate::template::{Place, Template};

const NANOS_PER_DAY: i64 = 86_400 * crate::clock::NANOS_PER_SEC;

/// Stands for "for ever" where a dedupe mark names a day.
const FOR_EVER: i64 = -1;

pub(super) fn add(
    txn: &Txn<'_>,
    upstream: &Upstream,
    load: &str,
    jobs: &[NewJob],
) -> rusqlite::Result<Added> {
    let jobs: Vec<_> = jobs.iter().map(|job| (job, Line::Queue)).collect();
    let (mut addition, spots) = Addition::new(txn, upstream, load, &jobs)?;
    let mut added = Added::default();
    for ((job, _), spot) in jobs.iter().zip(&spots) {
        match addition.add(job, spot)? {
            Fate::Added(id) => added.ids.push(id),
            Fate::Replaces(id) => {
                added.ids.push(id);
                added.replaced += 1;
            }
            Fate::Duplicate => added.duplicates += 1,
        }
    }
    addition.finish()?;
    Ok(added)
}

/// Jobs that `owner` waits for.
pub(super) fn enter(
    txn: &Txn<'_>,
    upstream: &Upstream,
    owner: RunnerId,
    load: &str,
    jobs: &[OwnedJob],
) -> rusqlite::Result<Vec<JobId>> {
    let line = |owned: &OwnedJob| if owned.use_reserve { Line::Reserve } else { Line::Callers };
    let lined: Vec<_> = jobs.iter().map(|owned| (&owned.job, line(owned))).collect();
    let (mut addition, spots) = Addition::new(txn, upstream, load, &lined)?;
    let mut ids = Vec::with_capacity(jobs.len());
    for (owned, spot) in jobs.iter().zip(&spots) {
        let (Fate::Added(id) | Fate::Replaces(id)) = addition.add(&owned.job, spot)? else {
            continue;
        };
        let mut add = txn.conn.prepare_cached(queries::OWNED_ADD)?;
        add.execute(named_params! {
            ":job": id.0, ":owner": owner.0, ":once": owned.once, ":units": stored(owned.units.max(1)),
        })?;
        ids.push(id);
    }
    addition.finish()?;
    Ok(ids)
}

/// What becomes of a new job.
enum Fate {
    Added(JobId),
    /// Added, and one of the same key that waited was withdrawn for it.
    Replaces(JobId),
    Duplicate,
}

/// A job that was withdrawn for a newer one.
struct Withdrawn {
    partition: i64,
    due_at: Timestamp,
    priority: u8,
    /// It was sent before, so that somebody told it to wait.
    was_sent: bool,
}

/// One addition at work: what its jobs share is looked up once.
struct Addition<'t> {
    txn: &'t Txn<'t>,
    upstream: &'t Upstream,
    upstream_id: i64,
    load_id: i64,
    partitions: Vec<GrownPartition>,
    partition_of: HashMap<(Columns, Line), usize>,
    shapes: Vec<Shape>,
    shape_of: HashMap<Request, usize>,
    /// Partitions that lost a job to a newer one.
    shrunk: BTreeSet<i64>,
    next_id: i64,
    /// Jobs that were added and not counted yet.
    uncounted: u64,
    keys: Keys,
}

/// Where a job belongs: its shape and its partition in the addition's lists, and what its like are told by.
struct Spot {
    shape: usize,
    partition: usize,
    key: Option<Key>,
}

/// A partition that got jobs, with the best priority and the earliest due instant of these.
struct GrownPartition {
    id: i64,
    key: String,
    priority: u8,
    due_at: Timestamp,
    has_deadline: bool,
}

/// The stored parts that requests share, and the body's template for telling duplicates.
struct Shape {
    id: i64,
    /// Without its URL.
    shared: Request,
    body: Option<Template>,
}

impl Shape {
    fn fits(&self, request: &Request) -> bool {
        let Request { method, url: _, headers, body } = &self.shared;
        *method == request.method && *headers == request.headers && *body == request.body
    }
}

impl<'t> Addition<'t> {
    /// With the spots of its jobs, in their order.
    fn new(
        txn: &'t Txn<'t>,
        upstream: &'t Upstream,
        load: &str,
        jobs: &[(&NewJob, Line)],
    ) -> rusqlite::Result<(Self, Vec<Spot>)> {
        let upstream_id = places::upstream_id(txn.conn, &upstream.name)?;
        txn.conn.prepare_cached(queries::LOAD_ADD)?.execute(named_params! {
            ":name": load, ":now": txn.now.store.as_nanos(),
        })?;
        let mut load_id = txn.conn.prepare_cached(queries::LOAD_ID)?;
        let mut next_id = txn.conn.prepare_cached(queries::STORE_NEXT_JOB)?;
        let mut addition = Addition {
            txn,
            upstream,
            upstream_id,
            load_id: load_id.query_row([load], |row| row.get(0))?,
            partitions: Vec::new(),
            partition_of: HashMap::new(),
            shapes: Vec::new(),
            shape_of: HashMap::new(),
            shrunk: BTreeSet::new(),
            next_id: next_id.query_row([], |row| row.get(0))?,
            uncounted: 0,
            keys: Keys::default(),
        };
        let spots = jobs.iter().map(|(job, line)| addition.spot(job, *line));
        let spots = spots.collect::<rusqlite::Result<Vec<_>>>()?;
        addition.keys = Keys::of(txn.conn, spots.iter().filter_map(|spot| spot.key))?;
        Ok((addition, spots))
    }

    /// Counts the jobs, and finds the places of their partitions.
    fn finish(mut self) -> rusqlite::Result<()> {
        self.count()?;
        self.keys.save(self.txn.conn)?;
        for partition in self.partitions {
            let mut grown = self.txn.conn.prepare_cached(queries::PARTITION_GROWN)?;
            grown.execute(named_params! {
                ":id": partition.id, ":priority": partition.priority,
                ":due": partition.due_at.as_nanos(), ":now": self.txn.now.store.as_nanos(),
            })?;
            if partition.has_deadline {
                places::ask_if_late(self.txn, partition.id)?;
            }
        }
        for partition in self.shrunk {
            places::refresh(self.txn, partition)?;
        }
        places::bump_news(self.txn.conn)
    }

    fn count(&mut self) -> rusqlite::Result<()> {
        let jobs = std::mem::take(&mut self.uncounted);
        if jobs == 0 {
            return Ok(());
        }
        let mut count = self.txn.conn.prepare_cached(queries::TALLY_ADDED)?;
        count.execute(named_params! {
            ":upstream": self.upstream_id, ":load": self.load_id, ":jobs": stored(jobs),
        })?;
        Ok(())
    }

    fn add(&mut self, job: &NewJob, spot: &Spot) -> rusqlite::Result<Fate> {
        let now = self.txn.now.store;
        let mut withdrawn = None;
        if let Some(key) = &spot.key {
            if job.changed && self.is_unchanged(job, key)? {
                return Ok(Fate::Duplicate);
            }
            let holder = self.keys.holder(key);
            withdrawn = match holder {
                Some(holder) if job.replace => self.withdraw(holder)?,
                _ => None,
            };
            let is_taken = holder.is_some() || self.is_marked(job.dedupe, key)?;
            if is_taken && withdrawn.is_none() {
                return Ok(Fate::Duplicate);
            }
        }
        let (Some(shape), Some(grown)) =
            (self.shapes.get(spot.shape), self.partitions.get_mut(spot.partition))
        else {
            return Ok(Fate::Duplicate);
        };
        let due_at = due_at(job, now, withdrawn.as_ref());
        let left = withdrawn.as_ref().filter(|_| job.keeps_priority);
        let priority = left.map_or(job.priority, |old| old.priority);
        let mut insert = self.txn.conn.prepare_cached(queries::JOB_ADD)?;
        let id = JobId(self.next_id);
        insert.execute(named_params! {
            ":id": id.0,
            ":upstream": self.upstream_id, ":partition": grown.id, ":load": self.load_id,
            ":shape": shape.id, ":url": job.request.url, ":columns": to_json(&job.columns),
            ":priority": priority, ":due": due_at.as_nanos(),
            ":deadline": job.deadline_at.map(Timestamp::as_nanos),
            ":repeatable": job.repeatable, ":now": now.as_nanos(), ":dedupe": spot.key,
        })?;
        self.next_id += 1;
        self.uncounted += 1;
        grown.priority = grown.priority.max(priority);
        grown.due_at = grown.due_at.min(due_at);
        grown.has_deadline |= job.deadline_at.is_some();
        if let Some(key) = &spot.key {
            self.keys.take(*key, id);
            self.mark(job.dedupe, key)?;
            self.note_lastmod(job, key, id)?;
        }
        let Some(withdrawn) = withdrawn else { return Ok(Fate::Added(id)) };
        self.shrunk.insert(withdrawn.partition);
        Ok(Fate::Replaces(id))
    }

    /// Ends that job, where it is queued and not running. It may be of this addition: then it is counted before
    /// it is counted off.
    fn withdraw(&mut self, job: JobId) -> rusqlite::Result<Option<Withdrawn>> {
        self.count()?;
        let mut withdraw = self.txn.conn.prepare_cached(queries::JOB_WITHDRAW)?;
        let params = named_params! { ":id": job.0, ":now": self.txn.now.store.as_nanos() };
        let withdrawn = withdraw.query_row(params, |row| {
            Ok(Withdrawn {
                partition: row.get("partition_id")?,
                due_at: Timestamp::from_nanos(row.get("due_at")?),
                priority: row.get("priority")?,
                was_sent: row.get::<_, i64>("attempts")? > 0,
            })
        });
        withdrawn.optional()
    }

    /// Whether one of that key was added with the same lastmod, and did not come to nothing.
    fn is_unchanged(&self, job: &NewJob, key: &Key) -> rusqlite::Result<bool> {
        let mut seen = self.txn.conn.prepare_cached(queries::LASTMOD_SEEN)?;
        seen.exists(named_params! { ":dedupe": key, ":lastmod": job.lastmod })
    }

    fn note_lastmod(&self, job: &NewJob, key: &Key, id: JobId) -> rusqlite::Result<()> {
        let Some(lastmod) = &job.lastmod else { return Ok(()) };
        let mut note = self.txn.conn.prepare_cached(queries::LASTMOD_NOTE)?;
        note.execute(named_params! { ":dedupe": key, ":lastmod": lastmod, ":job": id.0 })?;
        Ok(())
    }

    /// The rows of its shape and its partition are made where there are none.
    fn spot(&mut self, job: &NewJob, line: Line) -> rusqlite::Result<Spot> {
        let (shape, partition) = (self.shape(&job.request)?, self.partition(&job.partition, line)?);
        let body = self.shapes.get(shape).and_then(|shape| shape.body.as_ref());
        let place = self.partitions.get(partition).map_or("", |partition| &partition.key);
        Ok(Spot { shape, partition, key: self.key(job, place, body) })
    }

    /// Where the partition of these columns stands in the list; its row is made where there is none.
    fn partition(&mut self, columns: &Columns, line: Line) -> rusqlite::Result<usize> {
        let wanted = (columns.clone(), line);
        if let Some(known) = self.partition_of.get(&wanted) {
            return Ok(*known);
        }
        let key = to_json(columns);
        let conn = self.txn.conn;
        let params =
            named_params! { ":upstream": self.upstream_id, ":key": key, ":line": line.number() };
        conn.prepare_cached(queries::PARTITION_ADD)?.execute(params)?;
        let id = conn.prepare_cached(queries::PARTITION_ID)?.query_row(params, |row| row.get(0))?;
        let (priority, due_at, has_deadline) = (0, Timestamp::MAX, false);
        self.partitions.push(GrownPartition { id, key, priority, due_at, has_deadline });
        let at = self.partitions.len() - 1;
        self.partition_of.insert(wanted, at);
        Ok(at)
    }

    /// Where the request's shape stands in the list; its row is made where there is none. Most jobs of
    /// an addition have that of the one before.
    fn shape(&mut self, request: &Request) -> rusqlite::Result<usize> {
        if let Some(last) = self.shapes.last()
            && last.fits(request)
        {
            return Ok(self.shapes.len() - 1);
        }
        let shared = Request { url: String::new(), ..request.clone() };
        if let Some(known) = self.shape_of.get(&shared) {
            return Ok(*known);
        }
        let conn = self.txn.conn;
        let params = named_params! {
            ":method": shared.method, ":headers": to_json(&shared.headers),
            ":body": shared.body.as_deref().unwrap_or_default(), ":has_body": shared.body.is_some(),
        };
        conn.prepare_cached(queries::SHAPE_ADD)?.execute(params)?;
        let id = conn.prepare_cached(queries::SHAPE_ID)?.query_row(params, |row| row.get(0))?;
        let body = shared.body.as_deref().and_then(|body| Template::parse(body).ok());
        self.shapes.push(Shape { id, shared: shared.clone(), body });
        let at = self.shapes.len() - 1;
        self.shape_of.insert(shared, at);
        Ok(at)
    }

    /// What duplicates are told by: 16 bytes of a SHA-256 over the key's parts, each with its length.
    fn key(&self, job: &NewJob, partition: &str, body: Option<&Template>) -> Option<Key> {
        if job.dedupe == Dedupe::None {
            return None;
        }
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        part(&self.upstream.name);
        match &job.dedupe_key {
            Some(key) => part(key),
            None => {
                let body = body.map(|body| body.freeze(&job.columns, Place::Plain));
                part(partition);
                part(&job.request.method);
                part(&job.request.url);
                part(&body.and_then(Result::ok).unwrap_or_default());
            }
        }
        hash.finalize().first_chunk().copied()
    }

    fn mark_day(&self, dedupe: Dedupe) -> Option<i64> {
        match dedupe {
            Dedupe::Ever => Some(FOR_EVER),
            Dedupe::Day => Some(self.txn.now.wall.as_nanos().div_euclid(NANOS_PER_DAY)),
            Dedupe::None | Dedupe::Active => None,
        }
    }

    fn is_marked(&self, dedupe: Dedupe, key: &Key) -> rusqlite::Result<bool> {
        let Some(day) = self.mark_day(dedupe) else { return Ok(false) };
        let mut marked = self.txn.conn.prepare_cached(queries::DEDUPE_MARKED)?;
        marked.exists(named_params! { ":dedupe": key, ":day": day })
    }

    fn mark(&self, dedupe: Dedupe, key: &Key) -> rusqlite::Result<()> {
        let Some(day) = self.mark_day(dedupe) else { return Ok(()) };
        let mut mark = self.txn.conn.prepare_cached(queries::DEDUPE_MARK)?;
        mark.execute(named_params! { ":dedupe": key, ":day": day })?;
        Ok(())
    }
}

/// When a new job is due. It takes over the place in line of one that it replaces, and the wait that
/// this was told; not what that was to wait for of its own.
fn due_at(job: &NewJob, now: Timestamp, replaced: Option<&Withdrawn>) -> Timestamp {
    if let Some(at) = job.not_before {
        return at.max(now);
    }
    let own = job.line_at.map_or(now, |at| at.min(now));
    match replaced {
        Some(old) if old.was_sent && old.due_at > now => old.due_at,
        Some(old) => own.min(old.due_at),
        None => own,
    }
}
