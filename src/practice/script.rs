//! Answers that are written beforehand.

use std::time::Duration;

/// An answer for chosen calls.
#[derive(Clone, Debug)]
pub struct Script {
    pub(super) on: String,
    pub(super) from: u64,
    pub(super) times: u64,
    pub(super) answer: Answer,
    pub(super) closes: Option<String>,
}

impl Script {
    /// Answers every call whose path fits: exact, or with a `*` at either end.
    pub fn new(on: impl Into<String>, answer: Answer) -> Script {
        Script { on: on.into(), from: 1, times: u64::MAX, answer, closes: None }
    }

    /// Only from the nth fitting call on, counted from 1.
    pub fn from(mut self, nth: u64) -> Script {
        self.from = nth;
        self
    }

    /// At most so often.
    pub fn times(mut self, times: u64) -> Script {
        self.times = times;
        self
    }

    /// Calls on these paths are `early` until the answer's wait is over. Half a second is allowed
    /// for calls that were on their way, and for the refusal to become known.
    pub fn closing(mut self, paths: impl Into<String>) -> Script {
        self.closes = Some(paths.into());
        self
    }

    /// Whether the nth fitting call, from 1, is one of its own.
    pub(super) fn covers(&self, nth: u64) -> bool {
        nth >= self.from && nth - self.from < self.times
    }
}

/// What is sent back, and how.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) delay: Duration,
    pub(super) manner: Manner,
    pub(super) wait: Option<Duration>,
}

/// How a body is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// At once, with its length.
    #[default]
    Whole,
    /// No answer at all, not even a status.
    Hang,
    /// The length of the whole body is announced, half of it is sent, then the connection is cut.
    Cut,
    /// A byte at a time, with a pause after each.
    Drip(Duration),
    /// So many bytes, of no announced length.
    Huge(u64),
    /// Packed by gzip, so many bytes once it is unpacked; the answer's own body is not sent.
    Bomb(u64),
}

impl Answer {
    /// An empty answer.
    pub fn new(status: u16) -> Answer {
        Answer {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            delay: Duration::ZERO,
            manner: Manner::Whole,
            wait: None,
        }
    }

    /// 429 with `Retry-After` in whole seconds.
    pub fn refusal(wait: Duration) -> Answer {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let answer = Answer::new(429).header("retry-after", seconds.to_string());
        answer.wait(wait).body("slow down, please")
    }

    /// One more header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Answer {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Answer {
        self.body = body.into();
        self
    }

    /// Sends it so much later.
    pub fn delay(mut self, delay: Duration) -> Answer {
        self.delay = delay;
        self
    }

    /// How the body is sent.
    pub fn manner(mut self, manner: Manner) -> Answer {
        self.manner = manner;
        self
    }

    /// How long it tells callers to wait, in whatever header it does: for [`Script::closing`].
    pub fn wait(mut self, wait: Duration) -> Answer {
        self.wait = Some(wait);
        self
    }

    /// Whether it means "not now": such an answer costs no quota.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self.status, 429 | 503)
    }
}

/// Whether a path fits a pattern: exact, or with a `*` at either end.
pub(super) fn fits(pattern: &str, path: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(_), Some(_)) => path.contains(pattern.trim_matches('*')),
        (Some(end), None) => path.ends_with(end),
        (None, Some(start)) => path.starts_with(start),
        (None, None) => path == pattern,
    }
}
