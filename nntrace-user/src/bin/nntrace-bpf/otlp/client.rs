//! One request after the other, each as often as it takes, within its time.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hasher as _},
    time::{Duration, Instant},
};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, StatusCode,
    body::Bytes,
    client::conn::http1::{self, SendRequest},
    header::{CONTENT_TYPE, HOST, HeaderMap, RETRY_AFTER, USER_AGENT},
};
use hyper_util::rt::TokioIo;
use nntrace_user::export::otlp::{self, Refusal, Request};
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use super::Endpoint;

/// Pauses between attempts: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Bytes of an answer at most.
const MOST_ANSWER_BYTES: usize = 64 << 10;

/// Connection to a receiver, while there is one.
pub(super) struct Client {
    endpoint: Endpoint,
    /// Time of a request, with all attempts.
    time: Duration,
    connection: Option<SendRequest<Full<Bytes>>>,
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The receiver has it, but perhaps for some items.
    Taken(Option<Refusal>),
    /// The receiver does not want it.
    Refused(String),
    /// It was not taken within its time.
    GivenUp(String),
}

/// Outcome of an attempt that may be repeated.
struct Failure {
    reason: String,
    /// Pause that the receiver asks for.
    pause: Option<Duration>,
}

impl Client {
    pub(super) fn new(endpoint: Endpoint, time: Duration) -> Self {
        Self { endpoint, time, connection: None }
    }

    /// Sends a request within its time, or until a deadline that may come meanwhile.
    pub(super) async fn send(&mut self, request: &Request, deadline: impl Fn() -> Option<Instant>) -> Sent {
        let own = Instant::now() + self.time;
        let (mut pause, longest) = PAUSES;
        loop {
            let until = deadline().map_or(own, |deadline| deadline.min(own));
            let left = until.saturating_duration_since(Instant::now());
            let failure = match timeout(left, self.attempt(request)).await {
                Ok(Ok(sent)) => return sent,
                Ok(Err(failure)) => failure,
                Err(_) => Failure {
                    reason: format!("{} does not answer", self.endpoint),
                    pause: Some(Duration::MAX),
                },
            };
            // Its state is not known.
            self.connection = None;
            let wanted = failure.pause.unwrap_or_else(|| spread(pause));
            if wanted >= until.saturating_duration_since(Instant::now()) {
                return Sent::GivenUp(failure.reason);
            }
            log::debug!("{}: once more in {wanted:?}", failure.reason);
            sleep(wanted).await;
            pause = (pause * 2).min(longest);
        }
    }

    async fn attempt(&mut self, request: &Request) -> Result<Sent, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure { reason: error.to_string(), pause: None };
        let connection = self.connected().await?;
        let body = Full::new(Bytes::copy_from_slice(&request.body));
        let message = hyper::Request::builder()
            .method(Method::POST)
            .uri(self.endpoint.path(request.path))
            .header(HOST, &self.endpoint.authority)
            .header(USER_AGENT, concat!("nntrace-bpf/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(body)
            .map_err(|error| failed(&error))?;
        let mut connection = connection;
        let answer = connection.send_request(message).await.map_err(|error| failed(&error))?;
        let (head, body) = answer.into_parts();
        let body =
            Limited::new(body, MOST_ANSWER_BYTES).collect().await.map(http_body_util::Collected::to_bytes);
        let place = format!("{} answers {}", self.endpoint, head.status);
        match head.status {
            status if status.is_success() => {
                self.connection = Some(connection);
                Ok(Sent::Taken(body.ok().and_then(|body| otlp::refusal(&body))))
            }
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                Err(Failure { reason: place, pause: retry_after(&head.headers) })
            }
            _ => Ok(Sent::Refused(place)),
        }
    }

    /// Takes the connection that there is, or makes one.
    async fn connected(&mut self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        if let Some(mut connection) = self.connection.take()
            && connection.ready().await.is_ok()
        {
            return Ok(connection);
        }
        let failed = |error: &dyn std::fmt::Display| Failure {
            reason: format!("{} cannot be reached: {error}", self.endpoint),
            pause: None,
        };
        let stream = TcpStream::connect((&*self.endpoint.host, self.endpoint.port));
        let stream = stream.await.map_err(|error| failed(&error))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
        // Its failure is that of the request.
        tokio::spawn(async move { connection.await.ok() });
        Ok(sender)
    }
}

/// Returns the pause that a receiver asks for, in seconds; a date counts as none.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// Returns a time from half as long to as long, so that the boards of a fleet do not all come back at once.
fn spread(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish();
    pause.mul_f64(0.5 + 0.5 * (random as f64 / u64::MAX as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_spread_and_asked_for() {
        let pause = Duration::from_secs(1);
        assert!((0..100).map(|_| spread(pause)).all(|spread| spread >= pause / 2 && spread <= pause));
        let asked = |value: &'static str| {
            let headers = [(RETRY_AFTER, hyper::header::HeaderValue::from_static(value))];
            retry_after(&headers.into_iter().collect())
        };
        assert_eq!(asked("7"), Some(Duration::from_secs(7)));
        assert_eq!((asked("-1"), asked("Wed, 21 Oct 2015 07:28:00 GMT")), (None, None));
    }
}
