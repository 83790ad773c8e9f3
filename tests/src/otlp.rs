//! Receiver of OTLP over HTTP, which keeps what it takes and answers as it is told to.

use std::{
    collections::VecDeque,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use anyhow::{Context as _, Result};

use crate::wait::PATIENCE;

/// Reply to a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// This status, with further headers, each with its line end: the request is not kept.
    Status(u16, &'static str),
    /// Success with this body: the request is kept.
    Taken(Vec<u8>),
    /// No reply, for as long as anybody waits.
    Never,
}

/// Request that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Path.
    pub path: String,
    /// Content.
    pub body: Vec<u8>,
}

/// Receiver, which lives as long as the test.
pub struct Receiver {
    address: SocketAddr,
    taken: Arc<Mutex<Vec<Taken>>>,
}

impl Receiver {
    /// Starts a receiver that gives these replies first, and always the last one after them.
    ///
    /// # Errors
    /// When there is no port.
    pub fn start(replies: impl IntoIterator<Item = Reply>, last: Reply) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let taken = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&taken);
        let replies = Arc::new(Mutex::new(replies.into_iter().collect::<VecDeque<_>>()));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, replies, last) = (Arc::clone(&kept), Arc::clone(&replies), last.clone());
                thread::spawn(move || {
                    let next = || {
                        let mut replies = replies.lock().unwrap_or_else(PoisonError::into_inner);
                        replies.pop_front().unwrap_or_else(|| last.clone())
                    };
                    // It ends when the other side has gone.
                    while answer(&stream, &kept, next).is_ok() {}
                });
            }
        });
        Ok(Self { address, taken })
    }

    /// Returns its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests at a path that were taken, in their order.
    #[must_use]
    pub fn taken(&self, path: &str) -> Vec<Vec<u8>> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.iter().filter(|taken| taken.path == path).map(|taken| taken.body.clone()).collect()
    }
}

/// Reads one request, and replies.
fn answer(stream: &TcpStream, kept: &Mutex<Vec<Taken>>, next: impl FnOnce() -> Reply) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let path = lines.first().and_then(|line| line.split(' ').nth(1)).context("a request")?.to_owned();
    let length = lines
        .iter()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.context("a length")?];
    reader.read_exact(&mut body)?;
    let (status, headers, content) = match next() {
        Reply::Status(status, headers) => (status, headers, Vec::new()),
        Reply::Taken(content) => {
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(Taken { path, body });
            (200, "", content)
        }
        Reply::Never => {
            // Longer than anybody waits.
            thread::sleep(PATIENCE);
            anyhow::bail!("nobody waits any more");
        }
    };
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{headers}\r\n", content.len())?;
    stream.write_all(&content)?;
    Ok(())
}
