//! Metrics of a run that goes on, by HTTP, for a Prometheus server that asks.
//!
//! One thread without privileges answers; it has nothing of the run but a channel. The run makes the metrics when they are
//! asked for: nobody who asks for them costs nothing, and however often somebody does, they are made once a second.

mod http;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use nntrace_user::{export::metrics::Metrics, model::plurals::one_or_many};
use tokio::{
    runtime,
    sync::{Mutex, mpsc, oneshot},
    time::timeout,
};

use crate::{logging, stderr};

/// Name of the thread, as `ps -T` shows it.
const THREAD: &str = "nntrace-metrics";
/// Age up to which metrics are given again.
const FRESH: Duration = Duration::from_secs(1);
/// Time in which the run makes metrics; it may be about to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Address that is taken, where nothing is served yet: known to be free before anything is measured.
pub struct MetricsListener(TcpListener);

/// Requests of a server for metrics. Dropped, nothing is served any more.
pub struct Scrapes {
    asked: mpsc::Receiver<Scrape>,
    refused: Arc<AtomicU64>,
    /// Ends the thread when it is dropped.
    _serving: oneshot::Sender<()>,
}

/// Request for metrics.
pub struct Scrape(oneshot::Sender<Metrics>);

/// Metrics as the run made them last.
struct Source {
    ask: mpsc::Sender<Scrape>,
    latest: Mutex<Option<(Instant, Arc<Metrics>)>>,
}

impl MetricsListener {
    /// Takes the address.
    ///
    /// # Errors
    /// When it is not this host's, is taken, or is not for everybody to take.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let hint = || format!("cannot serve metrics at {address}: name another with --listen");
        let listener = TcpListener::bind(address).with_context(hint)?;
        listener.set_nonblocking(true).with_context(hint)?;
        Ok(Self(listener))
    }

    /// Starts to serve, and says where.
    ///
    /// # Errors
    /// When there is no further thread.
    pub fn serve(self) -> Result<Scrapes> {
        let address = self.0.local_addr().context("cannot serve metrics: the address is not known")?;
        let (ask, asked) = mpsc::channel(1);
        let (serving, ended) = oneshot::channel();
        let refused = Arc::new(AtomicU64::new(0));
        let source = Source { ask, latest: Mutex::new(None) };
        let counter = Arc::clone(&refused);
        let thread = thread::Builder::new().name(THREAD.into());
        let started = thread.spawn(move || {
            if let Err(error) = serve(self.0, source, counter, ended) {
                logging::announce(&format!("metrics are not served: {error}; the run goes on"));
            }
        });
        started.context("cannot serve metrics: no thread can be started")?;
        stderr::message(format_args!("metrics are at http://{address}/metrics"));
        if !address.ip().is_loopback() {
            stderr::message(format_args!(
                "whoever reaches {address} can read them, names of processes and functions included, without a password"
            ));
        }
        Ok(Scrapes { asked, refused, _serving: serving })
    }
}

impl Scrapes {
    /// Waits for the next request; for ever, where nothing is served.
    pub async fn next(scrapes: &mut Option<Self>) -> Scrape {
        if let Some(Self { asked, .. }) = scrapes
            && let Some(scrape) = asked.recv().await
        {
            return scrape;
        }
        std::future::pending().await
    }
}

impl Drop for Scrapes {
    fn drop(&mut self) {
        let refused = self.refused.load(Ordering::Relaxed);
        if refused > 0 {
            stderr::message(format_args!(
                "{refused} {} refused, as {} others were open",
                one_or_many(refused, "connection to the metrics was", "connections to the metrics were"),
                http::MOST_CONNECTIONS
            ));
        }
    }
}

impl Scrape {
    /// Gives the metrics to who asked.
    pub fn answer(self, metrics: Metrics) {
        // Nobody may wait for them any more.
        let _ = self.0.send(metrics);
    }
}

impl Source {
    /// Returns metrics that are made now, or were a moment ago; `None` when the run makes none any more.
    async fn metrics(&self) -> Option<Arc<Metrics>> {
        // Those who ask meanwhile wait here, and get the same.
        let mut latest = self.latest.lock().await;
        if let Some((made, metrics)) = latest.as_ref().filter(|(made, _)| made.elapsed() < FRESH) {
            log::debug!("metrics of {:?} ago are given again", made.elapsed());
            return Some(Arc::clone(metrics));
        }
        let (answer, answered) = oneshot::channel();
        let asked = async {
            self.ask.send(Scrape(answer)).await.ok()?;
            answered.await.ok()
        };
        let metrics = Arc::new(timeout(PATIENCE, asked).await.ok()??);
        *latest = Some((Instant::now(), Arc::clone(&metrics)));
        Some(metrics)
    }
}

/// Serves until the run has ended.
fn serve(
    listener: TcpListener,
    source: Source,
    refused: Arc<AtomicU64>,
    ended: oneshot::Receiver<()>,
) -> io::Result<()> {
    nntrace_user::caller::drop_all()?;
    runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tokio::select! {
            // Nothing is ever sent: the other end is gone.
            _ = ended => {}
            () = http::accept(listener, Arc::new(source), refused) => {}
        }
        Ok(())
    })
}
