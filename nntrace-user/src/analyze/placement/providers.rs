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
    /// The word that people read.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Gpu => "GPU",
            Self::Npu => "NPU",
        }
    }
}

/// Execution providers of ONNX Runtime that have one processor. Others are known by their names alone: options of the session
/// choose what OpenVINO, QNN, NNAPI, CoreML and SNPE run on.
const EXECUTION_PROVIDERS: &[(&str, Processor)] = &[
    ("ACL", Cpu),
    ("ArmNN", Cpu),
    ("CANN", Npu),
    ("Js", Gpu),
    ("MIGraphX", Gpu),
    ("NvTensorRTRTX", Gpu),
    ("Rknpu", Npu),
    ("Tensorrt", Gpu),
    ("VSINPU", Npu),
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
    ("edgetpu-custom-op", Npu),
];

/// Provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Provider {
    /// Its name, as people know it.
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
        if let Some((name, _)) = section.split_once("ExecutionProvider_") {
            return Self::of(name, EXECUTION_PROVIDERS);
        }
        if let Some(name) = section.strip_suffix("DelegateKernel") {
            return Self::of(name, DELEGATES);
        }
        let version = if section.ends_with("DelegateV2") { "V2" } else { "" };
        let delegate = section.strip_suffix(version).and_then(|name| name.strip_suffix("Delegate"));
        if let Some(name) = delegate {
            let name = name.trim_end().strip_prefix("TfLite").unwrap_or(name.trim_end());
            return Self::of(&format!("{name}{version}"), DELEGATES);
        }
        DELEGATES.iter().any(|(own, _)| *own == section).then(|| Self::of(section, DELEGATES))?
    }

    fn of(name: &str, known: &[(&str, Processor)]) -> Option<Self> {
        if name.is_empty() || name == "CPU" || name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        {
            return None;
        }
        let processor = known.iter().find(|(own, _)| *own == name).map(|(_, processor)| *processor);
        Some(Self { name: name.to_owned(), processor })
    }
}

/// Engines whose maps show the operators of all of their backends in the CPU's layer, also where a GPU runs them.
const ENGINES_OF_ALL_BACKENDS: [&str; 5] = ["mnn", "torch", "armnn", "opencv-dnn", "executorch"];

/// Returns the processor of operators in the CPU's layer, by the engines of a run; `None` where it is not known.
pub(super) fn own_processor(engines: &[ProbedEngine]) -> Option<Processor> {
    let is_of_all = |engine: &ProbedEngine| ENGINES_OF_ALL_BACKENDS.contains(&engine.engine.as_str());
    (!engines.iter().any(is_of_all)).then_some(Cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_known_by_the_names_of_what_they_have_compiled() {
        let named =
            |section: &str| Provider::named_by(section).map(|Provider { name, processor }| (name, processor));
        let provider = |name: &str, processor| Some((name.to_owned(), processor));
        assert_eq!(named("OpenVINOExecutionProvider_OpenVINO-EP-subgraph_1_0"), provider("OpenVINO", None));
        assert_eq!(named("VSINPUExecutionProvider_VSINPU_1_0"), provider("VSINPU", Some(Npu)));
        assert_eq!(named("AcmeExecutionProvider_1"), provider("Acme", None));
        assert_eq!(named("TfLiteXNNPackDelegate"), provider("XNNPack", Some(Cpu)));
        assert_eq!(named("TfLiteGpuDelegateV2"), provider("GpuV2", Some(Gpu)));
        assert_eq!(named("TfLiteArmNnDelegate"), provider("ArmNn", None));
        assert_eq!(named("Vx Delegate"), provider("Vx", None));
        assert_eq!(named("Teflon Delegate"), provider("Teflon", Some(Npu)));
        assert_eq!(named("NeutronDelegateKernel"), provider("Neutron", Some(Npu)));
        assert_eq!(named("edgetpu-custom-op"), provider("edgetpu-custom-op", Some(Npu)));
        for section in [
            "Conv_12",
            "_ExecutionProvider_1",
            "a b ExecutionProvider_1",
            "CPUExecutionProvider",
            "CPUExecutionProvider_1",
            "DelegateKernel",
            "",
            "TfLiteDelegate",
        ] {
            assert_eq!(named(section), None, "{section}");
        }
    }
}
