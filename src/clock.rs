//! The only door to system time.
//!
//! Paceline keeps two times. **Store time** rules slots, leases, backoff and blocks: it comes from
//! the machine's boot-time clock, so nobody who sets the wall clock can move it. **Wall time** is
//! what people and calendars read. A [`Now`] carries both, so that a decision takes one argument
//! and never asks what time it is.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

/// Nanoseconds in one second.
pub const NANOS_PER_SEC: i64 = 1_000_000_000;

/// How far wall clock and store time may differ before the wall clock counts as stepped.
pub const STEP_TOLERANCE: Duration = Duration::from_secs(2);

/// An instant: whole nanoseconds since 1970-01-01T00:00:00Z.
///
/// Arithmetic saturates, so that a hint of a thousand years is "very far" and never "long ago".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The latest instant that can be written (in the year 2262).
    pub const MAX: Timestamp = Timestamp(i64::MAX);
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Timestamp = Timestamp(0);

    /// The instant `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: i64) -> Self {
        Timestamp(nanos)
    }

    /// The instant `secs` whole seconds after the epoch; saturates.
    pub const fn from_secs(secs: i64) -> Self {
        Timestamp(secs.saturating_mul(NANOS_PER_SEC))
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The time from `earlier` to this instant; zero where `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// This instant moved by a signed number of nanoseconds; saturates.
    pub const fn shifted(self, nanos: i64) -> Self {
        Timestamp(self.0.saturating_add(nanos))
    }

    /// The same instant as chrono writes it.
    pub fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_nanos(self.0)
    }

    /// RFC 3339 in UTC with as many decimals as the instant needs: `2026-03-01T12:00:00.503Z`.
    pub fn to_rfc3339(self) -> String {
        self.to_utc().to_rfc3339_opts(SecondsFormat::AutoSi, true)
    }

    /// RFC 3339 in UTC, to the second: for sentences.
    pub fn to_rfc3339_seconds(self) -> String {
        self.to_utc().to_rfc3339_opts(SecondsFormat::Secs, true)
    }
}

impl From<DateTime<Utc>> for Timestamp {
    /// Instants beyond the years 1677 to 2262 saturate.
    fn from(at: DateTime<Utc>) -> Self {
        let saturated = if at.timestamp() < 0 { i64::MIN } else { i64::MAX };
        Timestamp(at.timestamp_nanos_opt().unwrap_or(saturated))
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Timestamp;
    fn add(self, span: Duration) -> Timestamp {
        self.shifted(nanos(span))
    }
}

impl std::ops::Sub<Duration> for Timestamp {
    type Output = Timestamp;
    fn sub(self, span: Duration) -> Timestamp {
        self.shifted(nanos(span).saturating_neg())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_rfc3339())
    }
}

/// A duration in whole nanoseconds, saturated to what a [`Timestamp`] can add.
pub fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// One reading of both times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Store time: for everything but calendars and people.
    pub store: Timestamp,
    /// Wall time: for calendars, deadlines as typed, and display.
    pub wall: Timestamp,
}

impl Now {
    /// Both times equal: what a machine whose clock was never set shows.
    pub const fn same(at: Timestamp) -> Self {
        Now { store: at, wall: at }
    }

    /// Wall time less store time, in nanoseconds.
    pub const fn skew(self) -> i64 {
        self.wall.0.saturating_sub(self.store.0)
    }

    /// The store instant at which the wall clock, left alone, will show `wall`.
    pub const fn to_store(self, wall: Timestamp) -> Timestamp {
        wall.shifted(self.skew().saturating_neg())
    }

    /// What the wall clock, left alone, will show at the store instant `store`.
    pub const fn to_wall(self, store: Timestamp) -> Timestamp {
        store.shifted(self.skew())
    }

    /// Whether somebody set the wall clock: the two times differ by more than [`STEP_TOLERANCE`].
    pub const fn is_stepped(self) -> bool {
        Duration::from_nanos(self.skew().unsigned_abs()).as_nanos() > STEP_TOLERANCE.as_nanos()
    }
}

/// The machine's boot-time clock: an identity that changes with each boot, and the time since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Names this boot of this machine.
    pub id: String,
    /// Time since the boot, suspend included.
    pub elapsed: Duration,
}

/// A boxed sleep.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where time comes from: [`SystemClock`] for programs, [`ManualClock`] for tests.
pub trait Clock: Send + Sync + fmt::Debug {
    /// What the wall clock shows.
    fn wall(&self) -> Timestamp;
    /// The boot-time clock, where the machine has one.
    fn boot(&self) -> Option<Boot>;
    /// Resolves once `span` has passed on this clock.
    fn sleep(&self, span: Duration) -> Sleep;
}

/// How store time is made from the boot-time clock; saved in the store with the boot's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The boot that `offset` belongs to.
    pub boot_id: String,
    /// Store time less boot time, in nanoseconds.
    pub offset: i64,
}

impl Anchor {
    /// The saved anchor where it is of this boot; else one that starts at the wall clock, but never
    /// before `seen_at`, the highest store instant that the store has seen.
    pub fn choose(
        saved: Option<&Anchor>,
        boot: &Boot,
        wall: Timestamp,
        seen_at: Timestamp,
    ) -> Anchor {
        match saved {
            Some(anchor) if anchor.boot_id == boot.id => anchor.clone(),
            _ => Anchor {
                boot_id: boot.id.clone(),
                offset: wall.max(seen_at).as_nanos().saturating_sub(nanos(boot.elapsed)),
            },
        }
    }
}

/// A clock with the store's anchor: the source of every [`Now`].
#[derive(Clone, Debug)]
pub struct Timeline {
    clock: Arc<dyn Clock>,
    anchor: Option<Anchor>,
    /// Highest store instant handed out, for machines whose only clock may run back.
    highest: Arc<AtomicI64>,
    /// Wall time less store time, as last handed out.
    skew: Arc<AtomicI64>,
}

/// The two clocks are read one after the other, and the wall clock is slewed: a difference of this size
/// is no step, and an instant converted there and back must come out as it was.
const SKEW_NOISE: i64 = 5_000_000;

impl Timeline {
    /// A timeline over `clock`. `anchor` is `None` where the machine has no boot-time clock; store
    /// time is then the wall clock, never running back and never before `seen_at`.
    pub fn new(clock: Arc<dyn Clock>, anchor: Option<Anchor>, seen_at: Timestamp) -> Self {
        let highest = Arc::new(AtomicI64::new(seen_at.as_nanos()));
        Timeline { clock, anchor, highest, skew: Arc::default() }
    }

    /// Both times, now.
    pub fn now(&self) -> Now {
        let wall = self.clock.wall();
        let store = match (&self.anchor, self.clock.boot()) {
            (Some(anchor), Some(boot)) => {
                Timestamp(nanos(boot.elapsed).saturating_add(anchor.offset))
            }
            _ => wall,
        };
        let before = self.highest.fetch_max(store.as_nanos(), Ordering::Relaxed);
        let store = store.max(Timestamp(before));
        Now { store, wall: self.steady(store, wall) }
    }

    /// The wall clock, as far from store time as it was before where it moved by no more than noise.
    fn steady(&self, store: Timestamp, wall: Timestamp) -> Timestamp {
        let skew = wall.0.saturating_sub(store.0);
        let known = self.skew.load(Ordering::Relaxed);
        if skew.abs_diff(known) <= SKEW_NOISE.unsigned_abs() {
            return store.shifted(known);
        }
        self.skew.store(skew, Ordering::Relaxed);
        wall
    }

    /// Resolves at the store instant `at`, or at once where it has passed.
    pub async fn sleep_until(&self, at: Timestamp) {
        loop {
            let left = at.since(self.now().store);
            if left.is_zero() {
                return;
            }
            self.clock.sleep(left).await;
        }
    }

    /// Resolves once `span` has passed.
    pub async fn sleep(&self, span: Duration) {
        self.clock.sleep(span).await;
    }
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    boot_id: Option<String>,
}

impl SystemClock {
    /// Reads the boot's identity once; without one, store time is the wall clock.
    pub fn new() -> Self {
        SystemClock { boot_id: boot_id() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(target_os = "linux")]
fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}

#[cfg(not(target_os = "linux"))]
fn boot_id() -> Option<String> {
    None
}

#[cfg(target_os = "linux")]
fn boot_elapsed() -> Option<Duration> {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_BOOTTIME).ok().map(Duration::from)
}

#[cfg(not(target_os = "linux"))]
fn boot_elapsed() -> Option<Duration> {
    None
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the system")]
    fn wall(&self) -> Timestamp {
        Utc::now().into()
    }

    fn boot(&self) -> Option<Boot> {
        Some(Boot { id: self.boot_id.clone()?, elapsed: boot_elapsed()? })
    }

    fn sleep(&self, span: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(span))
    }
}

/// A clock that moves only when it is told to. Clones share their time.
#[derive(Clone, Debug)]
pub struct ManualClock {
    hands: Arc<Hands>,
}

#[derive(Debug)]
struct Hands {
    wall: AtomicI64,
    elapsed: AtomicI64,
    boots: AtomicI64,
    moved: tokio::sync::Notify,
}

impl ManualClock {
    /// A clock that shows `wall`, on a machine that booted just now.
    pub fn new(wall: Timestamp) -> Self {
        let hands = Hands {
            wall: AtomicI64::new(wall.as_nanos()),
            elapsed: AtomicI64::new(0),
            boots: AtomicI64::new(1),
            moved: tokio::sync::Notify::new(),
        };
        ManualClock { hands: Arc::new(hands) }
    }

    /// Lets `span` pass: both clocks move.
    pub fn advance(&self, span: Duration) {
        self.hands.wall.fetch_add(nanos(span), Ordering::SeqCst);
        self.hands.elapsed.fetch_add(nanos(span), Ordering::SeqCst);
        self.hands.moved.notify_waiters();
    }

    /// Somebody sets the wall clock by `nanos`, forwards or back; no time passes.
    pub fn step_wall(&self, nanos: i64) {
        self.hands.wall.fetch_add(nanos, Ordering::SeqCst);
        self.hands.moved.notify_waiters();
    }

    /// The machine boots again; the wall clock goes on, as far as it has not been set meanwhile.
    /// Who sleeps by the boot before sleeps for ever.
    pub fn reboot(&self) {
        self.hands.boots.fetch_add(1, Ordering::SeqCst);
        self.hands.elapsed.store(0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> Timestamp {
        Timestamp(self.hands.wall.load(Ordering::SeqCst))
    }

    fn boot(&self) -> Option<Boot> {
        let elapsed = self.hands.elapsed.load(Ordering::SeqCst);
        Some(Boot {
            id: format!("manual-{}", self.hands.boots.load(Ordering::SeqCst)),
            elapsed: Duration::from_nanos(u64::try_from(elapsed).unwrap_or(0)),
        })
    }

    fn sleep(&self, span: Duration) -> Sleep {
        let hands = Arc::clone(&self.hands);
        let until = hands.elapsed.load(Ordering::SeqCst).saturating_add(nanos(span));
        Box::pin(async move {
            loop {
                // Ask to be told before looking, so that no move is missed.
                let moved = hands.moved.notified();
                if hands.elapsed.load(Ordering::SeqCst) >= until {
                    return;
                }
                moved.await;
            }
        })
    }
}
