//! A gateway as a process, and callers of it: by a client library, or word for word over a socket.
#![allow(dead_code, reason = "each test uses its part")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::process::{PATIENCE, Process, until};
use super::world::World;

/// A gateway on a test's store.
pub struct Gateway {
    pub process: Process,
    /// `http://127.0.0.1:PORT`
    pub url: String,
    pub runtime: Runtime,
    pub client: reqwest::Client,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answered {
    /// A header as text; empty where it is not there.
    pub fn field(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Why the gateway itself answered; empty where the upstream did.
    pub fn reason(&self) -> &str {
        self.field("paceline-reason")
    }
}

impl Gateway {
    /// On any free port, with more arguments.
    pub fn start(world: &World, arguments: &[&str]) -> Gateway {
        Gateway::start_with(world, arguments, &[])
    }

    /// As [`Gateway::start`], with more in its environment.
    pub fn start_with(world: &World, arguments: &[&str], environment: &[(&str, &str)]) -> Gateway {
        let arguments = [&["gateway", "--listen", "127.0.0.1:0"], arguments].concat();
        Gateway::of(world.start_with(&arguments, environment))
    }

    /// One that was started, once it listens.
    pub fn of(process: Process) -> Gateway {
        until("a gateway that listens", || process.stderr().contains("/UPSTREAM/path"));
        let told = process.stderr();
        let url = told.split("call ").nth(1).unwrap().split("/UPSTREAM").next().unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let client = client().no_proxy().build();
        Gateway { url: url.to_owned(), process, runtime: runtime.unwrap(), client: client.unwrap() }
    }

    /// `127.0.0.1:PORT`
    pub fn host(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// A request to it.
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method.parse().unwrap(), format!("{}{path}", self.url))
    }

    /// Sends a request and reads its answer.
    pub fn send(&self, request: reqwest::RequestBuilder) -> Answered {
        self.runtime.block_on(read(request)).unwrap()
    }

    pub fn get(&self, path: &str) -> Answered {
        self.send(self.request("GET", path))
    }

    /// As [`Gateway::get`], with one more header.
    pub fn get_with(&self, path: &str, name: &str, value: &str) -> Answered {
        self.send(self.request("GET", path).header(name, value))
    }

    /// Sends requests at the same time.
    pub fn all(&self, requests: Vec<reqwest::RequestBuilder>) -> Vec<Answered> {
        let sent: Vec<_> =
            requests.into_iter().map(|request| self.runtime.spawn(read(request))).collect();
        sent.into_iter().map(|one| self.runtime.block_on(one).unwrap().unwrap()).collect()
    }

    /// Opens a connection and writes to it, word for word.
    pub fn dial(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.host()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    }

    /// Tells it to leave, and waits until it has.
    pub fn leave(self) -> super::Ran {
        self.process.signal("TERM");
        self.process.finish()
    }
}

/// A client that follows no redirects and leaves bodies packed.
pub fn client() -> reqwest::ClientBuilder {
    // Another test of this process may have done so.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    client.gzip(false).brotli(false).deflate(false).zstd(false).timeout(PATIENCE)
}

/// A request and its whole answer.
pub async fn read(request: reqwest::RequestBuilder) -> reqwest::Result<Answered> {
    let answer = request.send().await?;
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    Ok(Answered { status, headers, body: answer.bytes().await?.to_vec() })
}

/// Reads from a connection until `text` has come.
pub fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let (mut seen, mut piece) = (String::new(), [0; 4096]);
    while !seen.contains(text) {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "closed before {text:?}; so far {seen:?}");
        seen.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    seen
}

/// Reads a connection to its end.
pub fn read_all(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    stream.read_to_end(&mut seen).unwrap();
    String::from_utf8_lossy(&seen).into_owned()
}

/// How long a caller says that it waits.
pub fn patience(span: Duration) -> String {
    format!("{}ms", span.as_millis())
}
