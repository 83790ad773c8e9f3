//! HTTP as bytes: requests of any form, and whatever comes back.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use anyhow::{Context as _, Result};

use crate::wait::PATIENCE;

/// Answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status.
    pub status: u16,
    /// Headers by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Body, as far as it came.
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the body as text.
    ///
    /// # Errors
    /// When it is none.
    pub fn text(&self) -> Result<&str> {
        Ok(str::from_utf8(&self.body)?)
    }
}

/// Connects.
///
/// # Errors
/// When nobody listens there.
pub fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).with_context(|| format!("{address} takes no connection"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Reads all that comes until the connection ends, in whatever way.
///
/// # Errors
/// When it is not the head of an answer that comes first.
pub fn read(stream: &mut TcpStream) -> Result<Answer> {
    let mut bytes = Vec::new();
    // A connection may be reset after the answer.
    let ended = stream.read_to_end(&mut bytes);
    let about = || format!("{ended:?} after {:?}", String::from_utf8_lossy(&bytes));
    let head_end = bytes.windows(4).position(|part| part == b"\r\n\r\n").with_context(about)?;
    let head = str::from_utf8(&bytes[..head_end]).with_context(about)?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).with_context(about)?;
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    Ok(Answer { status, headers, body: bytes[head_end + 4..].to_vec() })
}

/// Sends bytes, and reads what comes back.
///
/// # Errors
/// As of [`connect`] and [`read`].
pub fn send(address: SocketAddr, request: &[u8]) -> Result<Answer> {
    let mut stream = connect(address)?;
    // The other side may have seen enough before the end.
    let _ = stream.write_all(request);
    read(&mut stream)
}

/// Gets a page, with further headers, each with its line end.
///
/// # Errors
/// As of [`send`].
pub fn get(address: SocketAddr, path: &str, headers: &str) -> Result<Answer> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
    send(address, request.as_bytes())
}
