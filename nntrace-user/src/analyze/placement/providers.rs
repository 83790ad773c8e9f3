//! Providers: the parts of an engine that run a model's operators on a processor.
//!
//! A provider is known by the name of the section in which it works, which the engine makes.

use serde::Serialize;

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

use Processor::{Cpu, Gpu, Npu};

/// Execution providers of ONNX Runtime that compile parts of a graph, or have kernels of their own, with their processors;
/// `None` where an option of the session chooses it.
///
/// Source: the names in libonnxruntime.so 1.24.1.
const EXECUTION_PROVIDERS: &[(&str, Option<Processor>)] = &[
    ("ACL", Some(Cpu)),
    ("ArmNN", Some(Cpu)),
    ("CANN", Some(Npu)),
    ("CPU", Some(Cpu)),
    ("CUDA", Some(Gpu)),
    ("CoreML", None),
    ("Dml", None),
    ("Dnnl", Some(Cpu)),
    ("Js", Some(Gpu)),
    ("MIGraphX", Some(Gpu)),
    ("Nnapi", None),
    ("NvTensorRTRTX", Some(Gpu)),
    ("OpenVINO", None),
    ("QNN", None),
    ("Rknpu", Some(Npu)),
    ("SNPE", Some(Npu)),
    ("Tensorrt", Some(Gpu)),
    ("VSINPU", Some(Npu)),
    ("VitisAI", Some(Npu)),
    ("WebGpu", Some(Gpu)),
    ("WebNN", None),
    ("Xnnpack", Some(Cpu)),
];

/// Delegates of LiteRT whose processors are known, by the names of their sections: their own names, or the classes of their
/// kernels.
///
/// Source: `custom_name` of the delegates, and classes that derive from `tflite::SimpleDelegateKernelInterface`.
const DELEGATES: &[(&str, &str, Option<Processor>)] = &[
    ("TfLiteXNNPackDelegate", "XNNPACK", Some(Cpu)),
    ("TfLiteFlexDelegate", "Flex", Some(Cpu)),
    ("TfLiteGpuDelegateV2", "GPU", Some(Gpu)),
    ("edgetpu-custom-op", "Edge TPU", Some(Npu)),
    ("VxDelegateKernel", "VX", Some(Npu)),
    ("EthosuDelegateKernel", "Ethos-U", Some(Npu)),
    ("TfLiteHexagonDelegate", "Hexagon", Some(Npu)),
    ("HexagonDelegateKernel", "Hexagon", Some(Npu)),
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
    /// ONNX Runtime names a part of a graph that a provider has compiled `QNNExecutionProvider_QNN_4711_0`.
    pub(super) fn named_by(section: &str) -> Option<Self> {
        if let Some((_, name, processor)) = DELEGATES.iter().find(|(own, ..)| *own == section) {
            return Some(Self { name: (*name).to_owned(), processor: *processor });
        }
        let execution_provider = section.split_once("ExecutionProvider_").map(|(name, _)| name);
        let delegate = || section.strip_prefix("TfLite")?.strip_suffix("Delegate");
        let kernel = || section.strip_suffix("DelegateKernel");
        let name = execution_provider.or_else(delegate).or_else(kernel)?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        let known = EXECUTION_PROVIDERS.iter().find(|(own, _)| *own == name);
        let processor = execution_provider.and(known).and_then(|(_, processor)| *processor);
        Some(Self { name: name.to_owned(), processor })
    }
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
        assert_eq!(named("TfLiteXNNPackDelegate"), provider("XNNPACK", Some(Cpu)));
        assert_eq!(named("TfLiteArmNnDelegate"), provider("ArmNn", None));
        assert_eq!(named("AcmeDelegateKernel"), provider("Acme", None));
        for section in [
            "Conv_12",
            "_ExecutionProvider_1",
            "a b ExecutionProvider_1",
            "CPUExecutionProvider",
            "",
            "TfLiteDelegate",
        ] {
            assert_eq!(named(section), None, "{section}");
        }
    }
}
