//! The program on a terminal of its own: what it draws, what is typed.
#![allow(dead_code, reason = "each test uses its part")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use nix::pty::{Winsize, openpty};

use super::process::{signal, until};

/// A running process and its terminal. Dropping it kills it.
pub struct Terminal {
    child: Child,
    keys: File,
    screen: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    pub fn start(mut command: Command) -> Terminal {
        let size = Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        let (keys, theirs) = (File::from(pty.master), File::from(pty.slave));
        command.env("TERM", "xterm").stdin(theirs.try_clone().unwrap());
        command.stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let child = command.spawn().unwrap();
        // Only the child holds its end, so that reading ends with it.
        drop(command);
        let screen = Arc::new(Mutex::new(String::new()));
        let (mut from, into) = (keys.try_clone().unwrap(), Arc::clone(&screen));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                into.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        Terminal { child, keys, screen, reader: Some(reader) }
    }

    /// All that was drawn so far.
    pub fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// Waits until it has drawn `text`.
    pub fn shows(&self, text: &str) {
        until(&format!("{text:?} on the screen"), || self.screen().contains(text));
    }

    pub fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    /// Sends a signal, such as `INT`.
    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Waits for its end: the exit code, and all that was drawn.
    pub fn finish(mut self) -> (i32, String) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        self.reader.take().unwrap().join().unwrap();
        (code, self.screen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
