//! Models with random weights, made by the scripts of `tests/engines/models`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use super::{NUMPY, environment::Wheels, folder, named, sources};
use crate::run::{command, quietly};

/// Packages that write models.
const WRITERS: Wheels = Wheels {
    name: "writers",
    packages: &[
        "onnx==1.23.2",
        "gguf==0.19.0",
        NUMPY,
        "protobuf==7.36.2",
        "ml-dtypes==0.6.0",
        "typing-extensions==4.16.0",
        "pyyaml==6.0.3",
        "tqdm==4.70.1",
    ],
};

/// Operators of the model that is a chain of them.
pub const CHAIN: u32 = 200;

/// Size of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// About half a millisecond a run on a desktop's core
    Tiny,
    /// About ten milliseconds a run
    Large,
}

impl Size {
    /// Both sizes.
    pub const ALL: [Self; 2] = [Self::Tiny, Self::Large];

    const fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Large => "large",
        }
    }

    /// Returns the arguments for networks of images.
    const fn of_images(self) -> [&'static str; 4] {
        match self {
            Self::Tiny => ["--image", "64", "--channels", "32"],
            Self::Large => ["--image", "160", "--channels", "64"],
        }
    }

    /// Returns the arguments for models of speech.
    const fn of_sound(self) -> [&'static str; 4] {
        match self {
            Self::Tiny => ["--width", "32", "--positions", "64"],
            Self::Large => ["--width", "128", "--positions", "256"],
        }
    }

    /// Returns the arguments for language models.
    const fn of_tokens(self) -> [&'static str; 2] {
        match self {
            Self::Tiny => ["--width", "128"],
            Self::Large => ["--width", "512"],
        }
    }
}

/// Returns the path of a model, or what the names of its files have in common; it is made if it is missing or older than
/// its script.
pub fn model(kind: &str, size: Size) -> Result<PathBuf> {
    let folder = folder()?.join("models");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let path = folder.join(format!("{}.{kind}", size.name()));
    let (script, python, arguments): (_, _, Vec<String>) = match kind {
        "onnx" => ("cnn_onnx.py", WRITERS.environment()?, owned(&size.of_images())),
        "chain" => ("chain_onnx.py", WRITERS.environment()?, vec!["--operators".into(), CHAIN.to_string()]),
        "mixed" => ("mixed_onnx.py", WRITERS.environment()?, owned(&size.of_images())),
        "tflite" => ("cnn_tflite.py", environment("litert")?, owned(&size.of_images())),
        "ncnn" => ("cnn_ncnn.py", environment("ncnn")?, owned(&size.of_images())),
        "gguf" => ("llama_gguf.py", WRITERS.environment()?, owned(&size.of_tokens())),
        "genai" => ("genai_decoder.py", WRITERS.environment()?, owned(&size.of_tokens())),
        "whisper" => ("whisper_ggml.py", environment("whisper")?, owned(&size.of_sound())),
        "mnn" => (
            "cnn_mnn.py",
            environment("mnn")?,
            vec!["--from".into(), model("onnx", size)?.display().to_string()],
        ),
        other => bail!("no script makes models of the kind {other}"),
    };
    let script = sources().join("models").join(script);
    // ncnn's model is two files; the second is written last.
    let file = if kind == "ncnn" { path.with_extension("ncnn.bin") } else { path.clone() };
    if !is_newer(&file, &script) {
        println!("making     the model {}", path.display());
        let mut make = command(python);
        make.arg(&script).arg(&path).args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
        quietly(&mut make)?;
    }
    Ok(path)
}

fn environment(engine: &str) -> Result<PathBuf> {
    named(engine).map_err(anyhow::Error::msg)?.environment()
}

fn owned(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|&argument| argument.to_owned()).collect()
}

/// Whether a file is newer than a script and the module that the scripts share.
fn is_newer(file: &Path, script: &Path) -> bool {
    let written = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let Some(file) = written(file) else { return false };
    [script.to_owned(), script.with_file_name("shape.py")]
        .iter()
        .all(|source| written(source).is_some_and(|source| source <= file))
}
