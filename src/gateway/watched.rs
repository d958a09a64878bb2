//! A connection whose other end may give up while a request on it waits unread.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// How often it is looked whether a caller is still there whose connection is not read from meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// A connection that can be asked whether its other end is still there.
pub(super) struct WatchedStream {
    read: Arc<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

/// The other end.
#[derive(Clone)]
pub(super) struct Caller(Arc<OwnedReadHalf>);

impl WatchedStream {
    pub fn new(stream: TcpStream) -> (WatchedStream, Caller) {
        let (read, write) = stream.into_split();
        let read = Arc::new(read);
        (WatchedStream { read: Arc::clone(&read), write }, Caller(read))
    }
}

impl Caller {
    /// Comes about once the caller has closed the connection, even where what it sent before is not read
    /// yet: the server, which reads no further while a body waits, does not see that.
    pub async fn gone(&self) {
        loop {
            // Resolves at once where there is something to read.
            match self.0.ready(Interest::READABLE).await {
                Ok(ready) if ready.is_read_closed() => return,
                Err(_) => return,
                Ok(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let stream: &TcpStream = (*self.read).as_ref();
            ready!(stream.poll_read_ready(context))?;
            match stream.try_read(buffer.initialize_unfilled()) {
                Ok(read) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.write.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(context)
    }
}
