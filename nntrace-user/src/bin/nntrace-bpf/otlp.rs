//! Sending of results to a receiver of OpenTelemetry, by OTLP over HTTP.
//!
//! One thread sends what waits in a queue with bounds. A receiver that is slow, or gone, costs what does not fit in the queue,
//! which is counted: nothing waits for it without a limit.

mod client;
mod endpoint;

use std::{
    env,
    path::Path,
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use client::{Client, Sent};
pub use endpoint::Endpoint;
use nntrace_user::{
    export::otlp::{Request, Resource},
    model::plurals::{counted, one_or_many},
};
use tokio::runtime::Builder;

use crate::stderr;

/// Requests that wait at most: of spans each has up to about a MiB.
const MOST_WAITING: usize = 8;
/// Time in which a request is sent, with all attempts; OpenTelemetry's own.
const TIME: Duration = Duration::from_secs(10);
/// Variable of the environment with another time, ms.
const TIME_VARIABLE: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
/// Variable of the environment with further attributes of all results.
const RESOURCE_VARIABLE: &str = "OTEL_RESOURCE_ATTRIBUTES";
/// Variable of the environment with the name of the program, in the place of its own.
const SERVICE_VARIABLE: &str = "OTEL_SERVICE_NAME";
/// Time in which nothing is sent to a receiver that took nothing in the time of a request.
const REST: Duration = Duration::from_secs(30);

/// Thread that sends, and its queue.
pub struct Sender {
    queue: SyncSender<Request>,
    thread: JoinHandle<Counts>,
    /// Instant until which is sent, once nothing more comes.
    deadline: Arc<OnceLock<Instant>>,
    time: Duration,
    endpoint: Endpoint,
    /// Items without room in the queue.
    turned_away: Counts,
}

/// Numbers of spans and of points of metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    spans: Items,
    points: Items,
    /// First reason why something was refused or dropped.
    reason: Option<String>,
}

/// Numbers of items by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Items {
    sent: u64,
    refused: u64,
    dropped: u64,
}

impl Sender {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there is no further thread, or the time in the environment is none.
    pub fn start(endpoint: &Endpoint) -> Result<Self> {
        let time = time()?;
        let (queue, waiting) = sync_channel(MOST_WAITING);
        let deadline = Arc::new(OnceLock::new());
        let client = Client::new(endpoint.clone(), time);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let until = Arc::clone(&deadline);
        let thread = thread::Builder::new().name("nntrace-otlp".into()).spawn(move || {
            let counts = runtime.block_on(async { send_all(&waiting, client, &until).await });
            // A look-up of a name may still be waited for: nobody needs it.
            runtime.shutdown_background();
            counts
        });
        let thread =
            thread.context("cannot send to a receiver of OpenTelemetry: no thread can be started")?;
        let turned_away = Counts::default();
        Ok(Self { queue, thread, deadline, time, endpoint: endpoint.clone(), turned_away })
    }

    /// Has a request sent, if there is room for it: for what must not wait.
    pub fn offer(&mut self, request: Request) {
        match self.queue.try_send(request) {
            Ok(()) => {}
            Err(TrySendError::Full(request)) => {
                self.turned_away.drop_request(&request, "the receiver is slow, or does not answer");
            }
            Err(TrySendError::Disconnected(request)) => {
                self.turned_away.drop_request(&request, "sending has ended");
            }
        }
    }

    /// Has a request sent; waits for room, no longer than the requests before it take.
    pub fn send(&mut self, request: Request) {
        if let Err(error) = self.queue.send(request) {
            self.turned_away.drop_request(&error.0, "sending has ended");
        }
    }

    /// Waits until everything is sent, with a limit; says what was, and what was not. Returns whether the receiver took all.
    pub fn finish(self) -> bool {
        let Self { queue, thread, deadline, time, endpoint, turned_away } = self;
        let _ = deadline.set(Instant::now() + time);
        drop(queue);
        // It does not panic.
        let mut counts = thread.join().unwrap_or_default();
        counts.add(&turned_away);
        stderr::message(counts.text(&endpoint));
        counts.reason.is_none()
    }
}

impl Counts {
    fn of(&mut self, request: &Request) -> &mut Items {
        if request.path.ends_with("/traces") { &mut self.spans } else { &mut self.points }
    }

    fn drop_request(&mut self, request: &Request, reason: &str) {
        self.of(request).dropped += request.items;
        self.reason.get_or_insert_with(|| reason.to_owned());
    }

    fn add(&mut self, other: &Self) {
        for (sum, part) in [(&mut self.spans, other.spans), (&mut self.points, other.points)] {
            sum.sent += part.sent;
            sum.refused += part.refused;
            sum.dropped += part.dropped;
        }
        self.reason = self.reason.take().or_else(|| other.reason.clone());
    }

    /// Returns what became of everything, for people.
    fn text(&self, endpoint: &Endpoint) -> String {
        let Self { spans, points, reason } = self;
        let counts = [
            (spans.refused, "span", "refused"),
            (points.refused, "point", "refused"),
            (spans.dropped, "span", "dropped"),
            (points.dropped, "point", "dropped"),
        ];
        let lost = counts.into_iter().filter(|(count, ..)| *count > 0).map(|(count, what, lost)| {
            format!("; {} {} {lost}", counted(count, what), one_or_many(count, "was", "were"))
        });
        let lost: String = lost.collect();
        let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let (spans, points) = (counted(spans.sent, "span"), counted(points.sent, "point"));
        format!("sent {spans} and {points} of metrics to {endpoint}{lost}{reason}")
    }
}

/// Sends until nothing more comes; what comes after the deadline, or while the receiver rests, is dropped.
async fn send_all(waiting: &Receiver<Request>, mut client: Client, deadline: &OnceLock<Instant>) -> Counts {
    let mut counts = Counts::default();
    let mut rests_until: Option<Instant> = None;
    // This thread has nothing else to do while it waits.
    while let Ok(request) = waiting.recv() {
        let now = Instant::now();
        if deadline.get().is_some_and(|deadline| now >= *deadline) {
            counts.drop_request(&request, "the receiver is slow");
            continue;
        }
        if rests_until.is_some_and(|until| now < until) {
            counts.of(&request).dropped += request.items;
            continue;
        }
        match client.send(&request, || deadline.get().copied()).await {
            Sent::Taken(refusal) => {
                let refused = refusal.as_ref().map_or(0, |refusal| refusal.items.min(request.items));
                let items = counts.of(&request);
                items.sent += request.items - refused;
                items.refused += refused;
                if let Some(refusal) = refusal {
                    counts.reason.get_or_insert(refusal.reason);
                }
            }
            Sent::Refused(reason) => {
                counts.of(&request).refused += request.items;
                counts.reason.get_or_insert(reason);
            }
            Sent::GivenUp(reason) => {
                counts.drop_request(&request, &reason);
                rests_until = Some(Instant::now() + REST);
            }
        }
    }
    counts
}

/// Returns the time of a request: that of the environment, or OpenTelemetry's own.
fn time() -> Result<Duration> {
    let Some(text) = env::var_os(TIME_VARIABLE).filter(|text| !text.is_empty()) else { return Ok(TIME) };
    let text = text.to_string_lossy();
    let milliseconds = text.parse().ok().filter(|milliseconds| *milliseconds > 0);
    milliseconds
        .map(Duration::from_millis)
        .ok_or_else(|| anyhow!("{TIME_VARIABLE} is {text:?}: give milliseconds, such as 10000"))
}

/// Returns the name of the program that a command runs; `None` without one.
pub fn program_name(command: &[impl AsRef<Path>]) -> Option<String> {
    let program = command.first()?.as_ref();
    Some(program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned())
}

/// Returns what results are of, with what the environment has to say about it.
pub fn resource(service: String, host: String) -> Resource {
    let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
    let others = variable(RESOURCE_VARIABLE).unwrap_or_default();
    let others = others.split(',').filter_map(|pair| pair.split_once('='));
    Resource {
        service: variable(SERVICE_VARIABLE).unwrap_or(service),
        host,
        others: others.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_accounted_for() {
        let mut counts = Counts::default();
        let request = |path, items| Request { path, body: Vec::new(), items };
        counts.of(&request("/v1/traces", 7)).sent += 7;
        counts.drop_request(&request("/v1/traces", 3), "first");
        let mut other = Counts::default();
        other.drop_request(&request("/v1/metrics", 2), "second");
        counts.add(&other);
        let endpoint = "http://x:1".parse::<Endpoint>().unwrap();
        assert_eq!(
            counts.text(&endpoint),
            "sent 7 spans and 0 points of metrics to http://x:1; 3 spans were dropped; 2 points were dropped: first"
        );
    }
}
