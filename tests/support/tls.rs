//! An HTTPS server whose certificate is for a name of the test's choice.
#![allow(dead_code, reason = "each test uses its part")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// It answers 200 to every call, for as long as the test's process lives.
pub struct TlsServer {
    port: u16,
    issuer: CertificateDer<'static>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    calls: AtomicUsize,
}

impl TlsServer {
    /// With a certificate for `name`, from an authority of its own.
    pub fn start(name: &str) -> TlsServer {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let own = params.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let counts = Arc::<Counts>::default();
        let (config, into) = (Arc::new(config), Arc::clone(&counts));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                into.connections.fetch_add(1, Ordering::Relaxed);
                let (config, counts) = (Arc::clone(&config), Arc::clone(&into));
                // A client that goes away is what it is there for.
                std::thread::spawn(move || answer(stream, config, &counts).ok());
            }
        });
        TlsServer { port, issuer: issuer.der().clone(), counts }
    }

    /// An address of it by another name of this machine.
    pub fn url(&self, host: &str, path: &str) -> String {
        format!("https://{host}:{}{path}", self.port)
    }

    /// Its authority's certificate, as files hold it.
    pub fn issuer(&self) -> String {
        let text = STANDARD.encode(&self.issuer);
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    }

    pub fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::Relaxed)
    }

    /// Requests that came through.
    pub fn calls(&self) -> usize {
        self.counts.calls.load(Ordering::Relaxed)
    }
}

fn answer(stream: TcpStream, config: Arc<ServerConfig>, counts: &Counts) -> std::io::Result<()> {
    let tls = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = StreamOwned::new(tls, stream);
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    counts.calls.fetch_add(1, Ordering::Relaxed);
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")?;
    stream.flush()
}
