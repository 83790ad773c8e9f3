//! The runtime's end of the connections to the driver, and the driver's process.

use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use nntrace_common::emit::Payload;

use crate::protocol::{Handles, Kind, Message};
use crate::truth;

/// Process of the driver, with its control connection.
#[derive(Debug)]
pub struct DriverProcess {
    child: Child,
    control: Connection,
}

/// Connection of one thread to the driver.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    /// Request and, after [`Connection::call`], reply.
    pub message: Message,
    handles: Handles,
}

impl DriverProcess {
    /// Starts the driver, with this many connections beside the control connection.
    pub fn start(connections: usize) -> Result<(Self, Vec<Connection>)> {
        let directory = tempfile::tempdir().context("making a directory for the driver's socket")?;
        let path = directory.path().join("driver");
        let listener = UnixListener::bind(&path).with_context(|| format!("binding {}", path.display()))?;
        // The connections are made before the driver runs and wait in the listener's queue. So it never waits for one
        // that does not come, and the path can be removed at once.
        let connect = |number: u32| -> Result<Connection> {
            let stream = UnixStream::connect(&path).context("connecting to the driver's socket")?;
            let handles = Handles::new(std::process::id(), number);
            Ok(Connection { stream, message: Message::new(), handles })
        };
        // The driver counts its connections alike.
        let control = connect(0)?;
        let workers = (1..).take(connections).map(connect).collect::<Result<Vec<_>>>()?;
        let program = std::env::current_exe().context("finding this program")?;
        let child = Command::new(&program)
            .arg("driver")
            .arg(connections.to_string())
            .stdin(Stdio::from(OwnedFd::from(listener)))
            // An interrupt from the terminal is handled by the application; the driver ends with its connections.
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {} as the driver", program.display()))?;
        Ok((Self { child, control }, workers))
    }

    /// Makes the driver compile its part of the network for this seed.
    pub fn prepare(&mut self, seed: u64) -> Result<()> {
        self.control.message.set(&seed.to_le_bytes());
        self.control.call(Kind::Prepare)
    }

    /// Makes the driver drop the network, once every other connection is closed.
    pub fn release(&mut self) -> Result<()> {
        self.control.message.set(&[]);
        self.control.call(Kind::Release)
    }

    /// Requests the driver's counts, and waits until its process has ended.
    pub fn finish(mut self) -> Result<truth::Process> {
        self.control.message.set(&[]);
        self.control.call(Kind::Report)?;
        let report =
            serde_json::from_slice(self.control.message.content()).context("reading the driver's report")?;
        drop(self.control);
        let status = self.child.wait().context("waiting for the driver")?;
        ensure!(status.success(), "the driver failed: {status}");
        Ok(report)
    }
}

impl Connection {
    /// Hands an execution over to the driver and waits for the result, as [`Connection::call`] does.
    pub fn execute(&mut self) -> Result<()> {
        let handle = self.handles.next();
        truth::event(&Payload::instant("nn.send").with("h", format_args!("g.{handle}")));
        self.call(Kind::Execute)
    }

    /// Sends the message as a request and waits for the reply, which takes its place.
    pub fn call(&mut self, kind: Kind) -> Result<()> {
        self.message.send(kind, &mut self.stream)?;
        match self.message.receive(&mut self.stream)? {
            Some(Kind::Done) => Ok(()),
            Some(Kind::Failed) => {
                bail!("the driver says: {}", String::from_utf8_lossy(self.message.content()))
            }
            Some(other) => bail!("the driver replied {other:?} to {kind:?}"),
            None => bail!("the driver closed the connection instead of replying to {kind:?}"),
        }
    }
}
