//! The network: a small residual image classifier, built in code with weights that follow from a seed.
//!
//! It can be built whole, or cut in two: a feature extractor for the driver, and a classifier with the layers that
//! the driver does not support. At the cut the tensor changes its layout, as it does on real accelerators: the driver
//! returns channels last.

use anyhow::{Result, ensure};

use crate::onnx::{Attribute, Graph, Value};
use crate::random::Random;

/// Width and height of an image, which has three channels.
pub const SIDE: usize = 64;
/// Number of classes.
pub const CLASSES: usize = 10;

/// Channels, height and width at the cut.
const CUT: (usize, usize, usize) = (64, 16, 16);

/// Part of the network to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it, in one piece: the reference for the two others.
    Whole,
    /// From the image to features, channels last.
    Extractor,
    /// From features, channels first, to one score per class.
    Classifier,
}

/// Description of a network in the ONNX format; nothing is planned or optimised yet.
#[derive(Clone, Debug)]
pub struct Model {
    /// Contents of an ONNX file.
    pub onnx: Vec<u8>,
    /// Shape of the input.
    pub input: [usize; 4],
}

impl Model {
    /// Describes a part of the network for this seed.
    pub fn build(part: Part, seed: u64) -> Self {
        let (channels, height, width) = CUT;
        let image = [1, 3, SIDE, SIDE];
        let mut build = Builder { graph: Graph::default(), seed };
        match part {
            Part::Whole => {
                let features = build.extractor(INPUT);
                let scores = build.classifier(&features);
                build.finish(image, &scores, &[1, CLASSES])
            }
            Part::Extractor => {
                let features = build.extractor(INPUT);
                let perm = [("perm", Value::Ints(&[0, 2, 3, 1]))];
                let features = build.node("channels_last", "Transpose", &[&features], &perm);
                build.finish(image, &features, &[1, height, width, channels])
            }
            Part::Classifier => {
                let scores = build.classifier(INPUT);
                build.finish([1, channels, height, width], &scores, &[1, CLASSES])
            }
        }
    }
}

/// Transforms the layout at the cut: from the extractor's output, channels last, to the classifier's input, channels
/// first.
pub fn channels_first(features: &[f32], planes: &mut Vec<f32>) -> Result<()> {
    let (channels, height, width) = CUT;
    let count = features.len();
    ensure!(count == channels * height * width, "{count} features are not what the cut hands over");
    planes.resize(count, 0.0);
    for (channel, plane) in planes.chunks_exact_mut(height * width).enumerate() {
        for (value, pixel) in plane.iter_mut().zip(features.chunks_exact(channels)) {
            *value = pixel[channel];
        }
    }
    Ok(())
}

/// Name of every network's input.
const INPUT: &str = "input";

/// Builder of a network. Its layers are functions from the name of a value to the name of a value.
struct Builder {
    graph: Graph,
    seed: u64,
}

/// Square convolution that keeps the size except for its stride.
struct Convolution {
    from: usize,
    to: usize,
    side: usize,
    stride: usize,
    groups: usize,
}

impl Convolution {
    const fn new(from: usize, to: usize, side: usize, stride: usize) -> Self {
        Self { from, to, side, stride, groups: 1 }
    }
}

impl Builder {
    fn finish(mut self, input: [usize; 4], output: &str, shape: &[usize]) -> Model {
        self.graph.input(INPUT, &input);
        self.graph.output(output, shape);
        Model { onnx: self.graph.into_model("workload"), input }
    }

    /// Builds the extractor: 64x64 pixels to 16x16 positions with 64 features each.
    fn extractor(&mut self, image: &str) -> String {
        let x = self.rectified("stem", image, &Convolution::new(3, 16, 3, 2));
        let x = self.rectified("widen", &x, &Convolution::new(16, 32, 3, 1));
        let window = [("kernel_shape", Value::Ints(&[2, 2])), ("strides", Value::Ints(&[2, 2]))];
        let x = self.node("pool", "MaxPool", &[&x], &window);
        let x = self.residual("block_a", &x, 32);
        self.rectified("features", &x, &Convolution::new(32, CUT.0, 3, 1))
    }

    /// Builds the classifier: 16x16 positions with 64 features each to one score per class.
    fn classifier(&mut self, features: &str) -> String {
        let x = self.rectified("reduce", features, &Convolution::new(CUT.0, 96, 3, 2));
        let x = self.residual("block_b", &x, 96);
        let depthwise = Convolution { groups: 96, ..Convolution::new(96, 96, 3, 1) };
        let x = self.rectified("depthwise", &x, &depthwise);
        let x = self.rectified("pointwise", &x, &Convolution::new(96, 128, 1, 1));
        let x = self.node("average", "GlobalAveragePool", &[&x], &[]);
        let x = self.node("flat", "Flatten", &[&x], &[("axis", Value::Int(1))]);
        let weights = self.weights("dense", &[128, CLASSES], 128);
        let bias = self.bias("dense", CLASSES);
        let x = self.node("dense", "Gemm", &[&x, &weights, &bias], &[]);
        self.node("scores", "Softmax", &[&x], &[("axis", Value::Int(1))])
    }

    fn node(&mut self, name: &str, operation: &str, inputs: &[&str], attributes: &[Attribute<'_>]) -> String {
        self.graph.node(name, operation, inputs, attributes);
        name.to_owned()
    }

    /// Draws weights that keep the variance through a layer of `fan_in` inputs and a rectifier (He's initialization).
    fn weights(&mut self, layer: &str, shape: &[usize], fan_in: usize) -> String {
        let deviation = (2.0 / fan_in as f32).sqrt();
        self.constant(&format!("{layer}.weights"), shape, deviation)
    }

    fn bias(&mut self, layer: &str, size: usize) -> String {
        self.constant(&format!("{layer}.bias"), &[size], 0.05)
    }

    fn constant(&mut self, name: &str, shape: &[usize], deviation: f32) -> String {
        self.graph.constant(name, shape, &drawn(self.seed, name, shape, deviation));
        name.to_owned()
    }

    fn convolution(&mut self, name: &str, x: &str, of: &Convolution) -> String {
        let inputs = of.from / of.groups;
        let weights = self.weights(name, &[of.to, inputs, of.side, of.side], inputs * of.side * of.side);
        let bias = self.bias(name, of.to);
        let attributes = [
            ("kernel_shape", Value::Ints(&[of.side; 2])),
            ("strides", Value::Ints(&[of.stride; 2])),
            ("pads", Value::Ints(&[of.side / 2; 4])),
            ("group", Value::Int(of.groups as u64)),
        ];
        self.node(name, "Conv", &[x, &weights, &bias], &attributes)
    }

    /// Adds a convolution and its rectifier.
    fn rectified(&mut self, name: &str, x: &str, of: &Convolution) -> String {
        let x = self.convolution(name, x, of);
        self.node(&format!("{name}.relu"), "Relu", &[&x], &[])
    }

    /// Adds two convolutions, and their input to their output.
    fn residual(&mut self, name: &str, x: &str, channels: usize) -> String {
        let convolution = Convolution::new(channels, channels, 3, 1);
        let y = self.rectified(&format!("{name}.first"), x, &convolution);
        let y = self.convolution(&format!("{name}.second"), &y, &convolution);
        let sum = self.node(&format!("{name}.sum"), "Add", &[x, &y], &[]);
        self.node(&format!("{name}.relu"), "Relu", &[&sum], &[])
    }
}

/// Draws the values of a constant, which depend on its name: a part of the network has the same weights as the whole,
/// whatever else it contains.
fn drawn(seed: u64, name: &str, shape: &[usize], deviation: f32) -> Vec<f32> {
    let stream = name.bytes().fold(0, |sum: u64, byte| (sum * 31 + u64::from(byte)) & 0xffff_ffff);
    let mut random = Random::new(seed, stream);
    (0..shape.iter().product()).map(|_| deviation * random.normal()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, Program};

    fn run(part: Part, seed: u64, input: &[f32]) -> Result<Vec<f32>> {
        Engine::start().run(&Program::compile(Model::build(part, seed))?, input)
    }

    fn picture() -> Vec<f32> {
        let mut random = Random::new(3, 3);
        (0..3 * SIDE * SIDE).map(|_| random.normal()).collect()
    }

    #[test]
    fn the_parts_together_are_the_whole() {
        for seed in [0, 42] {
            let whole = run(Part::Whole, seed, &picture()).unwrap();
            let features = run(Part::Extractor, seed, &picture()).unwrap();
            let mut planes = Vec::new();
            channels_first(&features, &mut planes).unwrap();
            assert_ne!(planes, features);
            let scores = run(Part::Classifier, seed, &planes).unwrap();
            assert_eq!(scores.len(), CLASSES);
            assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            for (score, expected) in scores.iter().zip(&whole) {
                assert!((score - expected).abs() < 1e-5, "{scores:?} {whole:?}");
            }
        }
    }

    #[test]
    fn another_seed_is_another_network() {
        let features = |seed| run(Part::Extractor, seed, &picture()).unwrap();
        assert_eq!(features(1), features(1));
        assert_ne!(features(1), features(2));
    }

    #[test]
    fn an_input_of_another_size_is_refused() {
        assert!(run(Part::Extractor, 1, &[0.0; 5]).is_err());
        assert!(channels_first(&[0.0; 5], &mut Vec::new()).is_err());
    }

    /// Compares the engine with the definition of a convolution with stride, border and bias, written as sums.
    #[test]
    fn a_convolution_computes_what_it_should() {
        let (from, to, side, seed) = (3, 4, 6, 5);
        let mut build = Builder { graph: Graph::default(), seed };
        let output = build.rectified("layer", INPUT, &Convolution::new(from, to, 3, 2));
        let model = build.finish([1, from, side, side], &output, &[1, to, side / 2, side / 2]);

        let input = drawn(seed, "input", &[from, side, side], 1.0);
        let output = Engine::start().run(&Program::compile(model).unwrap(), &input).unwrap();
        assert_eq!(output.len(), to * side * side / 4);

        let weights = drawn(seed, "layer.weights", &[to, from, 3, 3], (2.0 / 27.0_f32).sqrt());
        let bias = drawn(seed, "layer.bias", &[to], 0.05);
        // Coordinates are one too high, so that the border is 0 and side + 1.
        let pixel = |channel: usize, y: usize, x: usize| {
            let inside = (1..=side).contains(&y) && (1..=side).contains(&x);
            if inside { input[(channel * side + y - 1) * side + x - 1] } else { 0.0 }
        };
        let mut results = output.iter();
        for channel in 0..to {
            for y in 0..side / 2 {
                for x in 0..side / 2 {
                    let mut sum = bias[channel];
                    for c in 0..from {
                        for dy in 0..3 {
                            for dx in 0..3 {
                                let weight = weights[((channel * from + c) * 3 + dy) * 3 + dx];
                                sum += weight * pixel(c, 2 * y + dy, 2 * x + dx);
                            }
                        }
                    }
                    let result = results.next().unwrap();
                    assert!((result - sum.max(0.0)).abs() < 1e-4, "{result} {sum}");
                }
            }
        }
    }
}
