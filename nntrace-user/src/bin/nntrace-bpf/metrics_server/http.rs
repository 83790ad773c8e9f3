//! The protocol: one page, for a few connections at a time, each short.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ACCEPT, ALLOW, CONTENT_TYPE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use nntrace_user::export::prometheus::{self, Format};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::Source;

/// Connections at a time: a server opens one, or a few when answers come late.
pub(super) const MOST_CONNECTIONS: usize = 8;
/// Bytes of the head of a request at most; hyper takes none smaller than 8 KiB.
const MOST_HEAD_BYTES: usize = 16 << 10;
/// Lines of the head of a request at most.
const MOST_HEADERS: usize = 64;
/// Time in which the head of a request comes.
const HEAD_TIME: Duration = Duration::from_secs(3);
/// Time of a connection from its begin to its end.
const CONNECTION_TIME: Duration = Duration::from_secs(10);
/// Time after which a connection is accepted again when none could be, as descriptors had run out.
const PAUSE: Duration = Duration::from_millis(100);
/// The page.
const PATH: &str = "/metrics";
/// Answer to a connection that is one too many.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Answers every connection, and counts those that are too many.
pub(super) async fn accept(listener: TcpListener, source: Arc<Source>, refused: Arc<AtomicU64>) {
    let free = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                log::warn!("a connection to the metrics failed: {error}");
                sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&free).try_acquire_owned() else {
            refused.fetch_add(1, Ordering::Relaxed);
            // As far as it can be sent at once: who is one too many is not waited for.
            let _ = stream.try_write(REFUSAL);
            continue;
        };
        let source = Arc::clone(&source);
        tokio::spawn(async move {
            match timeout(CONNECTION_TIME, connection(stream, source)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => log::debug!("a connection to the metrics ended: {error}"),
                Err(_) => log::debug!("a connection to the metrics took longer than {CONNECTION_TIME:?}"),
            }
            drop(permit);
        });
    }
}

/// Answers the one request of a connection.
async fn connection(stream: TcpStream, source: Arc<Source>) -> hyper::Result<()> {
    let answer = service_fn(move |request: Request<Incoming>| {
        let source = Arc::clone(&source);
        async move { Ok::<_, Infallible>(answer(&request, &source).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MOST_HEAD_BYTES)
        .max_headers(MOST_HEADERS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer)
        .await
}

/// Answers a request. What a method like HEAD leaves out is hyper's to know.
async fn answer(request: &Request<Incoming>, source: &Source) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH {
        return text(StatusCode::NOT_FOUND, "there is one page here: /metrics\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "/metrics is to be read, by GET\n");
        response.headers_mut().insert(ALLOW, header("GET, HEAD"));
        return response;
    }
    let Some(metrics) = source.metrics().await else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "the run is ending\n");
    };
    let wanted: Vec<&str> =
        request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let format = Format::accepted(&wanted.join(","));
    let mut response = Response::new(Full::from(prometheus::encode(&metrics, format)));
    response.headers_mut().insert(CONTENT_TYPE, header(format.content_type()));
    response
}

fn text(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, header("text/plain; charset=utf-8"));
    response
}

const fn header(value: &'static str) -> hyper::header::HeaderValue {
    hyper::header::HeaderValue::from_static(value)
}
