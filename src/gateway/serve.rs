//! Connections: each request on one goes its way; at the end they are let go one by one.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};

use super::body::Reply;
use super::watched::{Caller, WatchedStream};

/// A connection on which no head of a request comes for so long is closed.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// The pause after a connection could not be taken, as where no more files may be open.
const PAUSE: Duration = Duration::from_millis(50);

/// What answers requests.
pub(super) trait Answers: Send + Sync + 'static {
    /// Answers one. Dropped where its caller is gone.
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Caller,
    ) -> impl Future<Output = Response<Reply>> + Send;
}

/// Serves until `leave` comes about, and then until each connection has got the answer it waits for.
pub(super) async fn serve(
    listener: TcpListener,
    answers: Arc<impl Answers>,
    leave: impl Future<Output = ()>,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(HEAD_TIMEOUT);
    let graceful = GracefulShutdown::new();
    let mut leave = std::pin::pin!(leave);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => take(accepted, &builder, &graceful, &answers),
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            () = &mut leave => break,
        }
    }
    drop(listener);
    graceful.shutdown().await;
}

fn take(
    (stream, _): (TcpStream, SocketAddr),
    builder: &Builder<TokioExecutor>,
    graceful: &GracefulShutdown,
    answers: &Arc<impl Answers>,
) {
    // Else a small answer waits for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let (stream, caller) = WatchedStream::new(stream);
    let answers = Arc::clone(answers);
    let service = service_fn(move |request| {
        let (answers, caller) = (Arc::clone(&answers), caller.clone());
        async move { Ok::<_, Infallible>(answers.answer(request, caller).await) }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        // What breaks off is the caller's business; what it had sent is settled all the same.
        let _ = connection.await;
    });
}
