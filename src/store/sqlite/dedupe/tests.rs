//! A key is held by the job that was last added with it, wherever its row is.

use std::collections::HashMap;

use proptest::prelude::*;
use rusqlite::Connection;

use super::{GATHERED, Key, Keys, holder, move_gathered, take, tidy};
use crate::job::JobId;
use crate::store::sqlite::schema;

/// So few that each has a history.
const KEYS: u8 = 2;

#[derive(Clone, Debug)]
enum Step {
    /// Keys are added, in one large addition or a small one; those that are held are duplicates.
    Add {
        keys: Vec<u8>,
        many: bool,
    },
    /// The job that had the key last ends ...
    End(u8),
    /// ... is queued again, unless another one has the key ...
    Again(u8),
    /// ... or is removed.
    Remove(u8),
    Move,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || 0..KEYS;
    let step = prop_oneof![
        3 => (proptest::collection::vec(key(), 1..4), any::<bool>())
            .prop_map(|(keys, many)| Step::Add { keys, many }),
        4 => key().prop_map(Step::End),
        2 => key().prop_map(Step::Again),
        1 => key().prop_map(Step::Remove),
        1 => Just(Step::Move),
    ];
    proptest::collection::vec(step, 20..80)
}

fn key(number: u8) -> Key {
    [number; 16]
}

/// A store whose jobs have a key and a state, and what is to be so.
struct World {
    conn: Connection,
    next: i64,
    /// The job that had a key last, and whether it is active.
    last: HashMap<u8, (i64, bool)>,
}

impl World {
    fn run(&mut self, step: &Step) {
        match step {
            Step::Add { keys, many } => self.add(keys, *many),
            Step::End(number) => self.end(*number),
            Step::Again(number) => self.again(*number),
            Step::Remove(number) => self.remove(*number),
            Step::Move => move_gathered(&self.conn).unwrap(),
        }
    }

    fn add(&mut self, numbers: &[u8], are_many: bool) {
        let found = Keys::of(&self.conn, numbers.iter().copied().map(key)).unwrap();
        let mut keys = Keys { are_many, ..found };
        for number in numbers {
            let held = self.last.get(number).filter(|(_, active)| *active).map(|(job, _)| *job);
            assert_eq!(keys.holder(&key(*number)).map(|job| job.0), held);
            if held.is_some() {
                continue;
            }
            let add =
                "INSERT INTO job (id, upstream_id, partition_id, load_id, shape_id, url, columns,
                due_at, added_at, dedupe) VALUES (?1, 1, 1, 1, 1, '', '{}', 0, 0, ?2)";
            self.conn.execute(add, (self.next, key(*number))).unwrap();
            keys.take(key(*number), JobId(self.next));
            self.last.insert(*number, (self.next, true));
            self.next += 1;
        }
        keys.save(&self.conn).unwrap();
    }

    fn end(&mut self, number: u8) {
        if let Some((job, active)) = self.last.get_mut(&number) {
            *active = false;
            let end = "UPDATE job SET state = 'done', ended_at = 1 WHERE id = ?1";
            self.conn.execute(end, [*job]).unwrap();
        }
    }

    fn again(&mut self, number: u8) {
        let ended: i64 = match self.conn.query_row(
            "SELECT min(id) FROM job WHERE dedupe = ?1 AND state = 'done'",
            [key(number)],
            |row| row.get::<_, Option<i64>>(0),
        ) {
            Ok(Some(job)) => job,
            _ => return,
        };
        let before = holder(&self.conn, &key(number)).unwrap();
        if before.is_none_or(|other| !other.is_active) {
            take(&self.conn, &key(number), JobId(ended), before).unwrap();
            let again = "UPDATE job SET state = 'queued', ended_at = NULL WHERE id = ?1";
            self.conn.execute(again, [ended]).unwrap();
            self.last.insert(number, (ended, true));
        }
    }

    fn remove(&mut self, number: u8) {
        if let Some((job, _)) = self.last.remove(&number) {
            self.conn.execute("DELETE FROM job WHERE id = ?1", [job]).unwrap();
        }
    }

    fn check(&self) {
        for number in 0..KEYS {
            let held = holder(&self.conn, &key(number)).unwrap();
            let found = held.map(|holder| (holder.job.0, holder.is_active));
            match self.last.get(&number) {
                Some(expected) => assert_eq!(found, Some(*expected), "key {number}"),
                // An older one may be left, which has ended.
                None => assert!(found.is_none_or(|(_, active)| !active), "key {number}: {found:?}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_key_is_held_by_the_last_that_took_it(steps in steps()) {
        let folder = tempfile::tempdir().unwrap();
        let conn = schema::open(&folder.path().join("queue.db")).unwrap();
        conn.pragma_update(None, "foreign_keys", false).unwrap();
        conn.pragma_update(None, "synchronous", "OFF").unwrap();
        let mut world = World { conn, next: 1, last: HashMap::new() };
        // What is counted by state is there to be counted down.
        let counts = "INSERT INTO tally VALUES (1, 1, 'queued', 1000), (1, 1, 'done', 1000)";
        world.conn.execute(counts, []).unwrap();
        for step in &steps {
            world.run(step);
            world.check();
        }
    }
}

#[test]
fn what_was_gathered_is_moved_once_it_is_much() {
    let folder = tempfile::tempdir().unwrap();
    let conn = schema::open(&folder.path().join("queue.db")).unwrap();
    let rows = |table: &str| {
        let count = format!("SELECT count(*) FROM {table}");
        conn.query_row(&count, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let gather = "INSERT INTO dedupe_gathered WITH RECURSIVE n (i) AS
        (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
        SELECT CAST(printf('%016d', i) AS BLOB), i FROM n";
    conn.execute(gather, [1, GATHERED - 1]).unwrap();
    tidy(&conn).unwrap();
    assert_eq!((rows("dedupe_gathered"), rows("dedupe_holder")), (GATHERED - 1, 0));
    conn.execute(gather, [GATHERED, GATHERED]).unwrap();
    tidy(&conn).unwrap();
    assert_eq!((rows("dedupe_gathered"), rows("dedupe_holder")), (0, GATHERED));
}
