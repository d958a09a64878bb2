//! The program as a process of its own: started, heard, signalled, awaited.
#![allow(dead_code, reason = "each test uses its part")]

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Ran;

/// How long anything may take on a machine that has other work to do.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running process. Dropping it kills it.
pub struct Process {
    child: Child,
    stdout: Stream,
    stderr: Stream,
}

struct Stream {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Stream {
    fn of(source: impl Read + Send + 'static) -> Stream {
        let text = Arc::new(Mutex::new(String::new()));
        let into = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut source = BufReader::new(source);
            let mut line = Vec::new();
            while source.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                into.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        Stream { text, reader: Some(reader) }
    }

    fn so_far(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.so_far()
    }
}

impl Process {
    pub fn start(mut command: Command) -> Process {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = Stream::of(child.stdout.take().unwrap());
        let stderr = Stream::of(child.stderr.take().unwrap());
        Process { child, stdout, stderr }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it said on stdout so far.
    pub fn stdout(&self) -> String {
        self.stdout.so_far()
    }

    /// What it said on stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.so_far()
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Ran {
        let begun = Instant::now();
        let mut peak = 0;
        let status = loop {
            peak = self.peak().unwrap_or(peak);
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            let said = || format!("{}\n{}", self.stdout.so_far(), self.stderr.so_far());
            assert!(begun.elapsed() < PATIENCE, "it does not end; so far:\n{}", said());
            std::thread::sleep(Duration::from_millis(5));
        };
        Ran {
            code: status.code().unwrap_or(-1),
            stdout: self.stdout.whole(),
            stderr: self.stderr.whole(),
            peak,
        }
    }

    /// The most memory that it took so far, in KiB; `None` once it has ended.
    pub fn peak(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    }

    /// Waits until it has said `text` on stderr.
    pub fn hears(&self, text: &str) {
        until(&format!("{text:?} on stderr"), || self.stderr().contains(text));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal, such as `TERM`.
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status();
    assert!(sent.unwrap().success(), "SIG{name} to {pid}");
}

/// Waits until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
