//! A machine whose clocks and disk do as a test says: the program is started with `tests/data/shim.c`
//! between itself and the system. Linux only.
#![allow(dead_code, reason = "each test uses its part")]

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use paceline::clock::{Boot, Clock, Sleep, SystemClock, Timestamp, nanos};

/// What the disk under the store does.
#[derive(Clone, Copy)]
pub enum Disk {
    Healthy,
    /// No write succeeds, for want of room.
    Full,
    /// No write or sync succeeds.
    Unwritable,
    /// No read, write or sync succeeds.
    Broken,
}

/// The machine, and the true time, which the upstream goes by.
pub struct Shim {
    folder: tempfile::TempDir,
    control: File,
    truth: TrueClock,
    /// How far the machine's wall clock is from the true time.
    wrong_by: AtomicI64,
    /// What is added to the machine's boot-time clock.
    boot: AtomicI64,
}

/// Places in the control file.
const WALL: u64 = 0;
const BOOT: u64 = 8;
const DISK: u64 = 16;
const HASTE: u64 = 24;
const TRACE: u64 = 32;

impl Shim {
    /// A healthy machine that shows the true time.
    pub fn new() -> Shim {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("control"), [0; 40]).unwrap();
        let control = File::options().write(true).open(folder.path().join("control")).unwrap();
        let (wrong_by, boot) = (AtomicI64::new(0), AtomicI64::new(0));
        Shim { folder, control, truth: TrueClock::default(), wrong_by, boot }
    }

    /// As [`Shim::new`]; the true time is now `text`, and so the machine shows.
    pub fn at(text: &str) -> Shim {
        let shim = Shim::new();
        shim.pass_to(text);
        shim.truth.passed.store(0, Ordering::SeqCst);
        shim.set(BOOT, 0);
        shim.boot.store(0, Ordering::SeqCst);
        shim
    }

    /// What a program must be started with.
    pub fn environment(&self) -> Vec<(String, String)> {
        let folder = self.folder.path().to_str().unwrap().to_owned();
        let library = library().to_str().unwrap().to_owned();
        vec![("LD_PRELOAD".to_owned(), library), ("SHIM".to_owned(), folder)]
    }

    /// The true time, for an upstream.
    pub fn truth(&self) -> Arc<dyn Clock> {
        Arc::new(self.truth.clone())
    }

    /// What the machine's wall clock shows.
    pub fn wall(&self) -> Timestamp {
        self.truth.wall().shifted(self.wrong_by.load(Ordering::SeqCst))
    }

    /// Somebody sets the machine's wall clock, to so far from the true time.
    pub fn set_wrong_by(&self, nanos: i64) {
        self.wrong_by.store(nanos, Ordering::SeqCst);
        self.set_wall();
    }

    /// Time passes, everywhere and at once: the machine was suspended meanwhile.
    pub fn pass(&self, span: i64) {
        self.truth.wall.fetch_add(span, Ordering::SeqCst);
        self.truth.passed.fetch_add(span, Ordering::SeqCst);
        self.set(BOOT, self.boot.fetch_add(span, Ordering::SeqCst) + span);
        self.set_wall();
    }

    /// Time passes until `text`.
    pub fn pass_to(&self, text: &str) {
        let at: Timestamp = text.parse::<chrono::DateTime<chrono::Utc>>().unwrap().into();
        self.pass(at.as_nanos() - self.truth.wall().as_nanos());
    }

    /// The machine is started anew; its wall clock is then so far from the true time.
    pub fn reboot(&self, wrong_by: i64) {
        let boots = std::fs::read_to_string(self.folder.path().join("boot_id")).unwrap_or_default();
        self.write("boot_id", &format!("{boots}again"));
        let uptime = SystemClock::new().boot().unwrap().elapsed;
        let young = nanos(Duration::from_secs(3)) - nanos(uptime);
        self.boot.store(young, Ordering::SeqCst);
        self.set(BOOT, young);
        self.set_wrong_by(wrong_by);
    }

    pub fn set_disk(&self, disk: Disk) {
        self.set(DISK, disk as i64);
    }

    /// SQLite's own waiting goes by so many times as fast.
    pub fn hasten(&self, times: i64) {
        self.set(HASTE, times);
    }

    /// Begins the record of what is written, synced and sent.
    pub fn trace(&self) {
        self.set(TRACE, 1);
    }

    /// The record so far: `write -wal`, `sync db`, `call GET /7 HTTP/1.1` ...
    pub fn traced(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("trace")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn set_wall(&self) {
        let truth = self.truth.wall.load(Ordering::SeqCst);
        self.set(WALL, truth + self.wrong_by.load(Ordering::SeqCst));
    }

    fn set(&self, place: u64, value: i64) {
        self.control.write_all_at(&value.to_ne_bytes(), place).unwrap();
    }

    /// A file appears whole: a starting process may be reading it.
    fn write(&self, name: &str, text: &str) {
        let (whole, new) = (self.folder.path().join(name), self.folder.path().join("new"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, whole).unwrap();
    }
}

/// The time as it is, whatever the machine shows.
#[derive(Clone, Debug, Default)]
struct TrueClock {
    /// Added to this machine's wall clock.
    wall: Arc<AtomicI64>,
    /// Added to its boot-time clock.
    passed: Arc<AtomicI64>,
}

impl Clock for TrueClock {
    fn wall(&self) -> Timestamp {
        SystemClock::new().wall().shifted(self.wall.load(Ordering::SeqCst))
    }

    fn boot(&self) -> Option<Boot> {
        let Boot { id, elapsed } = SystemClock::new().boot()?;
        let passed = nanos(elapsed) + self.passed.load(Ordering::SeqCst);
        Some(Boot { id, elapsed: Duration::from_nanos(passed.try_into().unwrap()) })
    }

    fn sleep(&self, span: Duration) -> Sleep {
        SystemClock::new().sleep(span)
    }
}

/// The shim, compiled once by each test program.
fn library() -> &'static PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/shim.c");
        // Two test programs may compile it at once: each brings it whole to its place.
        let made = folder.join(format!("shim-{}.so", std::process::id()));
        let whole = folder.join("shim.so");
        let arguments = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"];
        let cc = Command::new("cc").args(arguments).arg(&made).arg(source).output();
        let cc = cc.expect("the tests need a C compiler, cc");
        assert!(cc.status.success(), "{}", String::from_utf8_lossy(&cc.stderr));
        std::fs::rename(made, &whole).unwrap();
        whole
    })
}
