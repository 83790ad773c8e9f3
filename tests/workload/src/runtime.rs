//! The NN runtime: a library in the application's process that passes models to the driver, and runs the rest on the
//! CPU.

use anyhow::{Context as _, Result, ensure};
use nntrace_common::layer::{Layer, Phase};

use crate::engine::{Engine, Program};
use crate::ipc::{Connection, DriverProcess};
use crate::network::{self, Model, Part};
use crate::truth::{self, Section};

/// The runtime, with its driver.
#[derive(Debug)]
pub struct Runtime {
    driver: DriverProcess,
    /// Connections not used by any session yet.
    connections: Vec<Connection>,
}

/// Network that was described to the runtime.
#[derive(Debug)]
pub struct RuntimeModel {
    seed: u64,
    /// Part that the driver does not support.
    fallback: Model,
}

/// Compiled network: the part other than the driver's.
#[derive(Debug)]
pub struct Compilation {
    fallback: Program,
}

/// Resources of one thread to execute a compiled network.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    fallback: Program,
    /// Output of the driver, channels last.
    features: Vec<f32>,
    /// The same, channels first.
    planes: Vec<f32>,
}

impl RuntimeModel {
    /// Describes the network for this seed.
    pub fn create(seed: u64) -> Self {
        let _section = Section::begin(Layer::Runtime, Phase::Preparation, "create model");
        Self { seed, fallback: Model::build(Part::Classifier, seed) }
    }
}

impl Runtime {
    /// Starts a runtime that serves up to `sessions` threads.
    pub fn start(sessions: usize) -> Result<Self> {
        let (driver, connections) = DriverProcess::start(sessions)?;
        Ok(Self { driver, connections })
    }

    /// Compiles a network: the driver its part, the CPU fallback the rest.
    pub fn compile(&mut self, model: RuntimeModel) -> Result<Compilation> {
        let _section = Section::begin(Layer::Runtime, Phase::Compilation, "compile");
        {
            let _request = Section::begin(Layer::Ipc, Phase::Compilation, "prepare");
            self.driver.prepare(model.seed).context("preparing the driver")?;
        }
        let _fallback = Section::begin(Layer::CpuFallback, Phase::Compilation, "compile classifier");
        Ok(Compilation { fallback: Program::compile(model.fallback)? })
    }

    /// Creates the resources of one thread to execute a compiled network.
    pub fn session(&mut self, compilation: &Compilation) -> Result<Session> {
        let connection = self.connections.pop().context("there are no more connections to the driver")?;
        let fallback = compilation.fallback.clone();
        Ok(Session { connection, fallback, features: Vec::new(), planes: Vec::new() })
    }

    /// Drops a compiled network, whose sessions must be gone.
    pub fn free(&mut self, compilation: Compilation) -> Result<()> {
        let _section = Section::begin(Layer::Runtime, Phase::Termination, "free");
        drop(compilation);
        self.connections.clear();
        let _request = Section::begin(Layer::Ipc, Phase::Termination, "release");
        self.driver.release().context("releasing the driver's part")
    }

    /// Ends the driver, and returns its counts.
    pub fn finish(self) -> Result<truth::Process> {
        self.driver.finish()
    }
}

impl Session {
    /// Runs the network on one image.
    pub fn execute(&mut self, engine: &Engine, pixels: &[f32], scores: &mut Vec<f32>) -> Result<()> {
        let _section = Section::begin(Layer::Runtime, Phase::Execution, "execute");
        {
            let _inputs = Section::begin(Layer::Runtime, Phase::InputsOutputs, "copy input");
            self.connection.message.set_floats(pixels);
        }
        {
            let _request = Section::begin(Layer::Ipc, Phase::Execution, "execute");
            self.connection.execute().context("executing on the driver")?;
        }
        let output = self.fall_back(engine).context("executing on the CPU")?;
        let _results = Section::begin(Layer::Runtime, Phase::Results, "copy scores");
        ensure!(output.len() == network::CLASSES, "the network has {} scores", output.len());
        scores.clear();
        scores.extend_from_slice(&output);
        Ok(())
    }

    /// Runs the CPU fallback: the driver's output, in the layout for the CPU, through the rest of the network.
    fn fall_back(&mut self, engine: &Engine) -> Result<Vec<f32>> {
        let _section = Section::begin(Layer::CpuFallback, Phase::Execution, "execute");
        let transformation = Section::begin(Layer::CpuFallback, Phase::Transformation, "channels first");
        self.connection.message.read_floats(&mut self.features)?;
        network::channels_first(&self.features, &mut self.planes)?;
        let _computation = transformation.switch(Layer::CpuFallback, Phase::Computation, "classifier");
        engine.run(&self.fallback, &self.planes)
    }
}
