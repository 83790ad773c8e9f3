//! The driver: a separate process that runs the first part of the network for all that are connected to it.

use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::parent_id;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, anyhow, bail};
use nntrace_common::layer::{Layer, Phase};

use crate::engine::{Engine, Program};
use crate::network::{Model, Part};
use crate::protocol::{Handles, Kind, Message};
use crate::truth::{self, Section};

/// Compiled network, shared by the threads.
type Shared = Arc<Mutex<Option<Program>>>;

/// Serves the socket on standard input: one control connection, and `connections` for executions.
pub fn run(connections: usize) -> Result<()> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned().context("taking over the socket")?;
    let listener = UnixListener::from(socket);
    let accept = || -> Result<UnixStream> {
        Ok(listener.accept().context("accepting a connection; standard input must be a listening socket")?.0)
    };
    let control = accept()?;
    let program = Shared::default();
    let mut threads = Vec::with_capacity(connections);
    for (index, number) in (0..connections).zip(1..) {
        let stream = accept()?;
        let program = Arc::clone(&program);
        let handles = Handles::new(parent_id(), number);
        let name = format!("driver-{index}");
        let serve = move |engine: &Engine| serve_executions(stream, handles, engine, &program);
        threads.push(Engine::spawn(name, serve)?);
    }
    serve_control(control, &program, threads)
}

/// Serves the control connection until it is closed.
fn serve_control(
    mut stream: UnixStream,
    program: &Shared,
    mut threads: Vec<JoinHandle<Result<()>>>,
) -> Result<()> {
    let mut message = Message::new();
    while let Some(kind) = message.receive(&mut stream)? {
        let result = match kind {
            Kind::Prepare => prepare(&message, program).map(|()| Vec::new()),
            Kind::Release => release(program, &mut threads).map(|()| Vec::new()),
            Kind::Report => Ok(serde_json::to_vec(&truth::Process::current("driver"))?),
            Kind::Execute | Kind::Done | Kind::Failed => Err(anyhow!("{kind:?} is nothing to ask for here")),
        };
        match result {
            Ok(reply) => {
                message.set(&reply);
                message.send(Kind::Done, &mut stream)?;
            }
            Err(error) => refuse(&error, &mut message, &mut stream)?,
        }
    }
    Ok(())
}

/// Serves an execution connection until it is closed.
fn serve_executions(
    mut stream: UnixStream,
    mut handles: Handles,
    engine: &Engine,
    program: &Shared,
) -> Result<()> {
    let mut message = Message::new();
    let mut values = Vec::new();
    // Taken with the first request, so that requests do not contend for the lock.
    let mut taken = None;
    while let Some(kind) = message.receive(&mut stream)? {
        let result = match kind {
            Kind::Execute => take(&mut taken, program)
                .and_then(|program| execute(handles.next(), &mut message, &mut values, engine, program)),
            _ => Err(anyhow!("{kind:?} is nothing to ask for here")),
        };
        match result {
            Ok(()) => message.send(Kind::Done, &mut stream)?,
            Err(error) => refuse(&error, &mut message, &mut stream)?,
        }
    }
    Ok(())
}

fn refuse(error: &anyhow::Error, message: &mut Message, stream: &mut UnixStream) -> Result<()> {
    message.set(format!("{error:#}").as_bytes());
    message.send(Kind::Failed, stream)
}

/// Compiles the network for the seed in the message.
fn prepare(message: &Message, program: &Shared) -> Result<()> {
    let _section = Section::begin(Layer::Driver, Phase::Compilation, "prepare");
    let seed = message.content().try_into().context("a seed has eight bytes")?;
    let compiled = Program::compile(Model::build(Part::Extractor, u64::from_le_bytes(seed)))?;
    *program.lock().unwrap_or_else(PoisonError::into_inner) = Some(compiled);
    Ok(())
}

/// Returns the prepared program, from `taken` once it is there.
fn take<'a>(taken: &'a mut Option<Program>, program: &Shared) -> Result<&'a Program> {
    if taken.is_none() {
        taken.clone_from(&program.lock().unwrap_or_else(PoisonError::into_inner));
    }
    taken.as_ref().context("nothing was prepared")
}

/// Runs the network on the image in the message, and replaces it by the features: work that was handed over as `handle`.
fn execute(
    handle: u64,
    message: &mut Message,
    values: &mut Vec<f32>,
    engine: &Engine,
    program: &Program,
) -> Result<()> {
    let _section = Section::begin_args(Layer::Driver, Phase::Execution, format_args!("execute#h=g.{handle}"));
    {
        let _inputs = Section::begin(Layer::Driver, Phase::InputsOutputs, "read input");
        message.read_floats(values)?;
    }
    let features = {
        let _computation = Section::begin(Layer::Driver, Phase::Computation, "extractor");
        engine.run(program, values)?
    };
    let _outputs = Section::begin(Layer::Driver, Phase::InputsOutputs, "write output");
    message.set_floats(&features);
    Ok(())
}

/// Waits for the threads, whose connections are closed by now, and drops the network.
fn release(program: &Shared, threads: &mut Vec<JoinHandle<Result<()>>>) -> Result<()> {
    let _section = Section::begin(Layer::Driver, Phase::Termination, "release");
    for thread in threads.drain(..) {
        match thread.join() {
            Ok(result) => result.context("in a thread of the driver")?,
            Err(_) => bail!("a thread of the driver panicked"),
        }
    }
    *program.lock().unwrap_or_else(PoisonError::into_inner) = None;
    Ok(())
}
