//! The inference engine: compiled networks, and the threads that execute them.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};
use rten::{ModelOptions, RunOptions, ThreadPool, ValueView, op_registry};

use crate::network::Model;

/// Network that is optimised and planned, for any thread to run.
#[derive(Clone)]
pub struct Program {
    model: Arc<rten::Model>,
    input: [usize; 4],
}

/// One thread of the engine.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Pool of one thread: images are processed in parallel, not the parts of a layer.
    pool: Arc<ThreadPool>,
}

impl Program {
    /// Optimises and plans a network, and packs its weights.
    pub fn compile(model: Model) -> Result<Self> {
        let operators =
            op_registry!(Add, Conv, Flatten, Gemm, GlobalAveragePool, MaxPool, Relu, Softmax, Transpose);
        let mut options = ModelOptions::with_ops(operators);
        options.prepack_weights(true);
        let Model { onnx, input } = model;
        let model = options.load(onnx).context("compiling the network")?;
        Ok(Self { model: Arc::new(model), input })
    }
}

impl Engine {
    /// Starts an engine with a thread of its own.
    pub fn start() -> Self {
        Self { pool: Arc::new(ThreadPool::with_num_threads(1)) }
    }

    /// Starts an engine and runs `work` on its thread.
    ///
    /// The thread that writes the marks is then also the one that computes, as in most engines. Called from any other
    /// thread, this engine would compute on its own thread and make the caller wait.
    pub fn spawn<R, W>(name: String, work: W) -> Result<JoinHandle<R>>
    where
        R: Send + 'static,
        W: FnOnce(&Self) -> R + Send + 'static,
    {
        let run = move || {
            let engine = Self::start();
            engine.pool.run(|| {
                // Only for viewing threads by their names, so it may fail.
                let _ = std::fs::write("/proc/thread-self/comm", name);
                work(&engine)
            })
        };
        thread::Builder::new().name("engine".to_owned()).spawn(run).context("starting a thread")
    }

    /// Runs a network on one input.
    pub fn run(&self, program: &Program, input: &[f32]) -> Result<Vec<f32>> {
        let input = ValueView::from_shape(program.input, input).context("the input has another shape")?;
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.pool)));
        let output = program.model.run_one(input.into(), Some(options)).context("running the network")?;
        Ok(output.into_tensor::<f32>().context("the output is not made of numbers")?.into_data())
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("parameters", &self.model.total_params()).finish_non_exhaustive()
    }
}
