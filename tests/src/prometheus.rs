//! Prometheus itself, which scrapes a target and answers queries.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::{child::Child, http, wait};

/// Server with its data in a folder of its own.
pub struct Prometheus {
    _server: Child,
    address: SocketAddr,
    _folder: TempDir,
}

/// Series of an answer: its labels, and its value.
pub type Found = Vec<(BTreeMap<String, String>, f64)>;

impl Prometheus {
    /// Starts a server that scrapes a target every second, with further arguments.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(program: &Path, target: SocketAddr, arguments: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let config = folder.path().join("prometheus.yml");
        fs::write(
            &config,
            format!(
                "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
                 scrape_configs: [{{job_name: board, static_configs: [{{targets: ['{target}']}}]}}]\n"
            ),
        )?;
        // Free now, and hardly taken by another until it is used.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut command = Command::new(program);
        command.current_dir(folder.path()).arg("--config.file").arg(&config);
        command.arg("--storage.tsdb.path").arg(folder.path().join("data"));
        command.arg(format!("--web.listen-address={address}")).arg("--log.level=warn").args(arguments);
        Ok(Self { _server: Child::start(&mut command)?, address, _folder: folder })
    }

    /// Asks a query; an empty answer where the server does not answer yet.
    ///
    /// # Errors
    /// When the query is wrong.
    pub fn query(&self, query: &str) -> Result<Found> {
        let mut path = String::from("/api/v1/query?query=");
        for byte in query.bytes() {
            write!(path, "%{byte:02x}")?;
        }
        let Ok(answer) = http::get(self.address, &path, "") else { return Ok(Vec::new()) };
        if answer.status == 503 {
            return Ok(Vec::new());
        }
        ensure!(answer.status == 200, "{query}: {} {}", answer.status, answer.text()?);
        let answer: Value = serde_json::from_slice(&dechunked(&answer)?)?;
        let rows = answer["data"]["result"].as_array().context("no result")?;
        rows.iter()
            .map(|row| {
                let labels = serde_json::from_value(row["metric"].clone())?;
                Ok((labels, row["value"][1].as_str().context("no value")?.parse()?))
            })
            .collect()
    }

    /// Asks a query until its answer has one series with this value.
    ///
    /// # Errors
    /// When it never has.
    pub fn wait_for(&self, query: &str, value: f64) -> Result<()> {
        wait::until(query, || {
            let found = self.query(query)?;
            Ok(matches!(&found[..], [(_, found)] if found.to_bits() == value.to_bits()).then_some(()))
        })
    }
}

/// Returns the body without the lengths of its pieces, where it has such.
fn dechunked(answer: &http::Answer) -> Result<Vec<u8>> {
    if answer.headers.get("transfer-encoding").is_none_or(|encoding| encoding != "chunked") {
        return Ok(answer.body.clone());
    }
    let (mut rest, mut whole) = (&answer.body[..], Vec::new());
    loop {
        let end = rest.windows(2).position(|part| part == b"\r\n").context("a chunk has a length")?;
        let length = usize::from_str_radix(str::from_utf8(&rest[..end])?, 16)?;
        let chunk = rest.get(end + 2..end + 2 + length).context("a chunk is whole")?;
        if length == 0 {
            return Ok(whole);
        }
        whole.extend_from_slice(chunk);
        rest = rest.get(end + 2 + length + 2..).context("another chunk follows")?;
    }
}
