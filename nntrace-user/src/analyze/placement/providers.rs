//! Providers: the parts of an engine that run a model's operators on a processor.
//!
//! A provider is known by the name of the section in which it works, which the engine makes.

use serde::Serialize;

use self::Processor::{Cpu, Gpu, Npu};
use crate::model::run_facts::ProbedEngine;

/// Processor that runs operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Processor {
    /// The CPUs.
    Cpu,
    /// A GPU.
    Gpu,
    /// An accelerator for neural networks, or a signal processor.
    Npu,
}

impl Processor {
    /// Returns the name for people.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Gpu => "GPU",
            Self::Npu => "NPU",
        }
    }
}

/// Execution providers of ONNX Runtime that have one processor. Others are known by their names alone: options of the session
/// choose what OpenVINO, QNN, NNAPI, CoreML and SNPE run on, and the environment what VSINPU does.
const EXECUTION_PROVIDERS: &[(&str, Processor)] = &[
    ("ACL", Cpu),
    ("ArmNN", Cpu),
    ("CANN", Npu),
    ("MIGraphX", Gpu),
    ("NvTensorRTRTX", Gpu),
    ("Rknpu", Npu),
    ("Tensorrt", Gpu),
    ("WebGpu", Gpu),
    ("Xnnpack", Cpu),
];

/// Delegates of LiteRT that have one processor, without `TfLite` and `Delegate` in their names. Others are known by their names
/// alone.
///
/// Source: `custom_name` of the delegates.
const DELEGATES: &[(&str, Processor)] = &[
    ("XNNPack", Cpu),
    ("Gpu", Gpu),
    ("GpuV2", Gpu),
    ("Hexagon", Npu),
    ("Teflon", Npu),
    ("Ethosu", Npu),
    ("Neutron", Npu),
];

/// Operators that stand for a part of a graph that was compiled in advance, with its provider.
const COMPILED_PARTS: &[(&str, &str, Processor)] =
    &[("edgetpu-custom-op", "Edge TPU", Npu), ("ethos-u", "Ethos-U", Npu), ("NeutronGraph", "Neutron", Npu)];

/// Devices whose drivers serve one kind of processor, by the start of their names.
const DEVICES: &[(&str, Processor)] = &[
    ("accel", Npu),
    ("apex_", Npu),
    ("ethosn", Npu),
    ("ethosu", Npu),
    ("hailo", Npu),
    ("rknpu", Npu),
    ("kgsl-", Gpu),
    ("mali", Gpu),
    ("nvidia", Gpu),
];

/// Provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Provider {
    /// Its name.
    pub(super) name: String,
    /// Processor that it runs operators on; `None` where that is not known.
    pub(super) processor: Option<Processor>,
}

impl Provider {
    /// Returns the provider that works in a section of this name; `None` where the name is that of an operator.
    ///
    /// ONNX Runtime names a part of a graph that a provider has compiled `QNNExecutionProvider_QNN_4711_0`; delegates of LiteRT are
    /// named `TfLiteXNNPackDelegate`, `Vx Delegate`, and the classes of their kernels `NeutronDelegateKernel`.
    pub(super) fn named_by(section: &str) -> Option<Self> {
        if let Some((_, name, processor)) = COMPILED_PARTS.iter().find(|(own, ..)| *own == section) {
            return Some(Self { name: (*name).to_owned(), processor: Some(*processor) });
        }
        if let Some((before, _)) = section.split_once("ExecutionProvider_") {
            return Self::of(before.rsplit('_').next()?, EXECUTION_PROVIDERS);
        }
        if let Some(name) = section.strip_suffix("DelegateKernel") {
            return Self::of(name, DELEGATES);
        }
        let (name, version) = match section.strip_suffix("V2") {
            Some(name) => (name, "V2"),
            None => (section, ""),
        };
        let name = name.strip_suffix("Delegate")?.trim_end();
        Self::of(&format!("{}{version}", name.strip_prefix("TfLite").unwrap_or(name)), DELEGATES)
    }

    fn of(name: &str, known: &[(&str, Processor)]) -> Option<Self> {
        if name.is_empty() || name == "CPU" || name.contains(|c: char| !c.is_ascii_alphanumeric()) {
            return None;
        }
        let processor = known.iter().find(|(own, _)| *own == name).map(|(_, processor)| *processor);
        Some(Self { name: name.to_owned(), processor })
    }
}

/// Returns the processor that the driver of a device serves; `None` where it may be several.
pub(super) fn processor_of(device: &str) -> Option<Processor> {
    DEVICES.iter().find(|(start, _)| device.starts_with(start)).map(|(_, processor)| *processor)
}

/// Engines whose maps show the operators of all of their backends in the CPU's layer, also where a GPU runs them.
const ENGINES_OF_ALL_BACKENDS: [&str; 5] = ["mnn", "torch", "armnn", "opencv-dnn", "executorch"];

/// Returns those engines of a run whose operators are in the CPU's layer wherever they ran.
pub(super) fn of_all_backends(engines: &[ProbedEngine]) -> Vec<String> {
    let names = engines.iter().map(|engine| engine.engine.clone());
    let mut names: Vec<String> =
        names.filter(|name| ENGINES_OF_ALL_BACKENDS.contains(&name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_one_kind_are_known_by_their_names() {
        for (device, processor) in [
            ("rknpu", Some(Npu)),
            ("accel0", Some(Npu)),
            ("ethosu0", Some(Npu)),
            ("mali0", Some(Gpu)),
            ("renderD128", None),
            ("galcore", None),
        ] {
            assert_eq!(processor_of(device), processor, "{device}");
        }
    }

    #[test]
    fn providers_are_known_by_the_names_of_what_they_have_compiled() {
        let named =
            |section: &str| Provider::named_by(section).map(|Provider { name, processor }| (name, processor));
        let provider = |name: &str, processor| Some((name.to_owned(), processor));
        assert_eq!(named("OpenVINOExecutionProvider_OpenVINO-EP-subgraph_1_0"), provider("OpenVINO", None));
        assert_eq!(named("VSINPUExecutionProvider_VSINPU_1_0"), provider("VSINPU", None));
        assert_eq!(named("AcmeExecutionProvider_1"), provider("Acme", None));
        assert_eq!(named("TfLiteXNNPackDelegate"), provider("XNNPack", Some(Cpu)));
        assert_eq!(named("TfLiteGpuDelegateV2"), provider("GpuV2", Some(Gpu)));
        assert_eq!(named("TfLiteArmNnDelegate"), provider("ArmNn", None));
        assert_eq!(named("Vx Delegate"), provider("Vx", None));
        assert_eq!(named("Teflon Delegate"), provider("Teflon", Some(Npu)));
        assert_eq!(named("NeutronDelegateKernel"), provider("Neutron", Some(Npu)));
        assert_eq!(named("edgetpu-custom-op"), provider("Edge TPU", Some(Npu)));
        assert_eq!(named("main_QNNExecutionProvider_1"), provider("QNN", None));
        for section in [
            "Conv_12",
            "_ExecutionProvider_1",
            "a b ExecutionProvider_1",
            "CPUExecutionProvider",
            "CPUExecutionProvider_1",
            "DelegateKernel",
            "",
            "TfLiteDelegate",
            "Hexagon",
            "Gpu",
        ] {
            assert_eq!(named(section), None, "{section}");
        }
    }
}
