//! Images to classify, and the reference scores of the undivided network.

use anyhow::{Context as _, Result, ensure};

use crate::engine::{Engine, Program};
use crate::network::{CLASSES, Model, Part, SIDE};
use crate::random::Random;

/// Number of different images.
pub const COUNT: usize = 16;

/// Tolerance of a score; it covers the different order of additions in differently fused layers.
const TOLERANCE: f32 = 1e-4;

/// Image with its reference scores.
#[derive(Debug)]
pub struct Image {
    /// Name, which the marks contain as an attribute.
    pub name: String,
    /// Red, green and blue planes.
    pub pixels: Vec<f32>,
    /// Scores of the undivided network.
    expected: Vec<f32>,
}

impl Image {
    /// Creates all images, with the scores of the undivided network.
    ///
    /// None of this is marked: it is the reference, not the application.
    pub fn all(seed: u64) -> Result<Vec<Self>> {
        let whole =
            Program::compile(Model::build(Part::Whole, seed)).context("building the reference network")?;
        let engine = Engine::start();
        (0..COUNT)
            .map(|index| {
                let pixels = draw(seed, index);
                let expected = engine.run(&whole, &pixels)?;
                ensure!(expected.iter().all(|score| score.is_finite()), "the reference network overflows");
                Ok(Self { name: format!("image_{index:02}"), pixels, expected })
            })
            .collect()
    }

    /// Checks scores against the reference.
    pub fn check(&self, scores: &[f32]) -> Result<()> {
        let name = &self.name;
        ensure!(scores.len() == CLASSES, "{name}: {} scores instead of {CLASSES}", scores.len());
        let (class, expected_class) = (best(scores), best(&self.expected));
        ensure!(class == expected_class, "{name}: class {class:?} instead of {expected_class:?}");
        for (class, (score, expected)) in scores.iter().zip(&self.expected).enumerate() {
            // Written such that a NaN also fails.
            let close = (score - expected).abs() <= TOLERANCE;
            ensure!(close, "{name}: class {class} scores {score} instead of {expected}");
        }
        Ok(())
    }
}

/// Returns the class with the highest score.
fn best(scores: &[f32]) -> Option<usize> {
    (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]))
}

/// Draws waves of random direction and length in each colour, and some noise.
fn draw(seed: u64, index: usize) -> Vec<f32> {
    /// Separate from the streams of the weights, which are numbered from 0.
    const STREAM: u64 = 1 << 32;
    let mut random = Random::new(seed, STREAM + index as u64);
    let mut pixels = Vec::with_capacity(3 * SIDE * SIDE);
    for _colour in 0..3 {
        let (along_x, along_y) = (random.uniform() - 0.5, random.uniform() - 0.5);
        let (phase, strength) = (random.uniform() * 6.0, random.uniform() * 1.5 + 0.2);
        for y in 0..SIDE {
            for x in 0..SIDE {
                let wave = (along_x * x as f32 + along_y * y as f32 + phase).sin();
                pixels.push(strength * wave + 0.1 * random.normal());
            }
        }
    }
    pixels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_finds_what_is_wrong() {
        let expected = (0..CLASSES).map(|class| class as f32 / 45.0).collect::<Vec<_>>();
        let image = Image { name: "test".to_owned(), pixels: Vec::new(), expected: expected.clone() };
        assert!(image.check(&expected).is_ok());
        assert!(image.check(&expected[1..]).is_err());
        let mut scores = expected.clone();
        scores[0] += 1e-3;
        assert!(image.check(&scores).is_err());
        scores[0] = 1.0;
        assert!(image.check(&scores).is_err());
        scores[0] = f32::NAN;
        assert!(image.check(&scores).is_err());
    }

    #[test]
    fn images_differ_and_so_do_their_scores() {
        let images = Image::all(1).unwrap();
        assert_eq!(images.len(), COUNT);
        assert_ne!(images[0].pixels, images[1].pixels);
        let distance: f32 =
            images[0].expected.iter().zip(&images[1].expected).map(|(a, b)| (a - b).abs()).sum();
        assert!(distance > 10.0 * TOLERANCE, "{distance}");
    }
}
