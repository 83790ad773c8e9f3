//! Options on serving metrics.

use std::net::SocketAddr;

use anyhow::Result;

use super::{help_headings::OUTPUT, usage, values::listen_address};

/// Options on serving metrics.
#[derive(Debug, clap::Args)]
pub struct ListenOptions {
    /// Serve metrics to Prometheus by HTTP, at a port of this host or at an address
    ///
    /// Such as 9464, at <http://127.0.0.1:9464/metrics>, for this host only; another address, as 192.168.1.7:9464 or
    /// [::]:9464, needs --listen-on-network. As text, as OpenMetrics, or with native histograms, as the server asks; of the
    /// moment at which it asks, at most one second old.
    #[arg(long, value_name = "PORT|ADDRESS:PORT", value_parser = listen_address, help_heading = OUTPUT,
          hide_short_help = true)]
    pub listen: Option<SocketAddr>,

    /// Allow --listen at an address that other hosts reach
    ///
    /// Whoever reaches it can read the metrics, names of processes and functions included, without a password.
    #[arg(long, requires = "listen", help_heading = OUTPUT, hide_short_help = true)]
    pub listen_on_network: bool,
}

impl ListenOptions {
    /// Refuses to serve metrics to other hosts unless that is asked for.
    ///
    /// # Errors
    /// When it is not.
    pub fn check(&self) -> Result<()> {
        match self.listen {
            Some(address) if !address.ip().is_loopback() && !self.listen_on_network => Err(usage(format!(
                "--listen {address} is for other hosts too: whoever reaches it can read names of processes and functions, without a \
                 password; add --listen-on-network if that is wanted, or give the port alone"
            ))),
            _ => Ok(()),
        }
    }
}
