//! Least squares with values that are not below 0, and which of them the rows determine.
//!
//! Source: C. Lawson and R. Hanson, *Solving Least Squares Problems* (1974), chapter 23. A model has some dozens of powers: a
//! factorization again for each step takes less than the reading of one state of a run.

/// A column of which no more than this share is new is taken for a combination of those before it: its value would be a
/// hundred times as uncertain as one that stands alone.
const NEW_SHARE: f64 = 1e-2;
/// Gradient below which a value stays 0, as a share of the target's length.
const FLAT: f64 = 1e-10;

/// Use of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Use {
    /// Its value is determined.
    Determined,
    /// It is 0 in every row.
    Empty,
    /// It is a combination of these columns before it, which matter to it.
    DependsOn(Vec<usize>),
}

/// Values of columns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Solution {
    /// Value of each column, no less than 0.
    pub(super) values: Vec<f64>,
    /// Standard error of each for noise of 1 in each row; `None` for those at 0.
    pub(super) errors: Vec<Option<f64>>,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn length(column: &[f64]) -> f64 {
    dot(column, column).sqrt()
}

/// Finds the columns, in their order, whose values the rows determine.
pub(super) fn uses(columns: &[Vec<f64>]) -> Vec<Use> {
    let mut bases: Vec<Vec<f64>> = Vec::new();
    let mut determined: Vec<usize> = Vec::new();
    let mut uses = Vec::new();
    for (number, column) in columns.iter().enumerate() {
        let whole = length(column);
        if whole == 0.0 {
            uses.push(Use::Empty);
            continue;
        }
        let mut rest: Vec<f64> = column.iter().map(|value| value / whole).collect();
        // Twice is enough for a remainder that is right to the last digits.
        for basis in bases.iter().chain(&bases) {
            let along = dot(basis, &rest);
            rest.iter_mut().zip(basis).for_each(|(rest, basis)| *rest -= along * basis);
        }
        let new = length(&rest);
        if new < NEW_SHARE {
            uses.push(Use::DependsOn(parts(columns, &determined, column)));
            continue;
        }
        for value in &mut rest {
            *value /= new;
        }
        bases.push(rest);
        determined.push(number);
        uses.push(Use::Determined);
    }
    uses
}

/// Returns those of the columns that a twentieth or more of another one is made of.
fn parts(columns: &[Vec<f64>], among: &[usize], column: &[f64]) -> Vec<usize> {
    const LEAST: f64 = 0.05;
    let chosen: Vec<&[f64]> = among.iter().map(|&number| columns[number].as_slice()).collect();
    let normal = Normal::new(&chosen, column);
    let all: Vec<usize> = (0..chosen.len()).collect();
    let Some(shares) = normal.solve(&all) else { return among.to_vec() };
    let least = LEAST * length(column);
    let numbers = among.iter().zip(shares).filter(|(_, share)| share.abs() >= least);
    numbers.map(|(&number, _)| number).collect()
}

/// Finds the values, no less than 0, with which the sum of the columns is closest to the target. The columns are independent.
pub(super) fn non_negative(columns: &[&[f64]], target: &[f64]) -> Solution {
    let normal = Normal::new(columns, target);
    let flat = FLAT * length(target);
    let count = columns.len();
    let mut values = vec![0.0; count];
    let mut free: Vec<usize> = Vec::new();
    // It ends after far fewer steps; the bound is for rounding that goes around in a circle.
    for _ in 0..10 * count {
        let gradient = |number: &usize| normal.gradient(*number, &values);
        let held = (0..count).filter(|number| !free.contains(number));
        let steepest = held.max_by(|a, b| gradient(a).total_cmp(&gradient(b)));
        let Some(next) = steepest.filter(|number| gradient(number) > flat) else { break };
        free.push(next);
        while let Some(found) = normal.solve(&free) {
            // As far towards the free optimum as no value falls below 0.
            let falls = free.iter().zip(&found).filter(|(_, found)| **found <= 0.0);
            let step =
                falls.map(|(&number, found)| values[number] / (values[number] - found)).reduce(f64::min);
            let Some(step) = step else {
                free.iter().zip(&found).for_each(|(&number, &found)| values[number] = found);
                break;
            };
            let step = if step.is_finite() { step } else { 0.0 };
            for (&number, &found) in free.iter().zip(&found) {
                values[number] += step * (found - values[number]);
            }
            let falls_to_0 =
                |number: usize, found: f64| found <= 0.0 && values[number] <= FLAT * length(target);
            let fallen: Vec<usize> = free
                .iter()
                .zip(&found)
                .filter(|&(&number, &found)| falls_to_0(number, found))
                .map(|(&number, _)| number)
                .collect();
            if fallen.is_empty() {
                break;
            }
            free.retain(|number| !fallen.contains(number));
            for &number in &fallen {
                values[number] = 0.0;
            }
        }
    }
    let mut errors = vec![None; count];
    for (at, &number) in free.iter().enumerate() {
        errors[number] = normal.variance(&free, at).map(|variance| variance.sqrt() / normal.lengths[number]);
    }
    let values = values.iter().zip(&normal.lengths).map(|(value, length)| value / length).collect();
    Solution { values, errors }
}

/// Normal equations of columns of length 1.
struct Normal {
    lengths: Vec<f64>,
    products: Vec<Vec<f64>>,
    /// Products with the target.
    target: Vec<f64>,
}

impl Normal {
    fn new(columns: &[&[f64]], target: &[f64]) -> Self {
        let lengths: Vec<f64> = columns.iter().map(|column| length(column)).collect();
        let product = |(a, a_length): (&&[f64], &f64), (b, b_length): (&&[f64], &f64)| {
            dot(a, b) / (a_length * b_length)
        };
        let products = columns.iter().zip(&lengths);
        let products = products.map(|a| columns.iter().zip(&lengths).map(|b| product(a, b)).collect());
        let target = columns.iter().zip(&lengths).map(|(column, length)| dot(column, target) / length);
        Self { products: products.collect(), target: target.collect(), lengths }
    }

    /// Returns how fast the squares become less with a value.
    fn gradient(&self, number: usize, values: &[f64]) -> f64 {
        self.target[number] - dot(&self.products[number], values)
    }

    /// Solves for some of the columns.
    fn solve(&self, chosen: &[usize]) -> Option<Vec<f64>> {
        let target: Vec<f64> = chosen.iter().map(|&number| self.target[number]).collect();
        self.solve_for(chosen, target)
    }

    /// Returns the variance of the chosen column at a place, for noise of 1.
    fn variance(&self, chosen: &[usize], at: usize) -> Option<f64> {
        let mut unit = vec![0.0; chosen.len()];
        unit[at] = 1.0;
        self.solve_for(chosen, unit).map(|inverse| inverse[at])
    }

    /// Solves by Cholesky's factors; `None` where the columns are not independent.
    fn solve_for(&self, chosen: &[usize], mut target: Vec<f64>) -> Option<Vec<f64>> {
        let count = chosen.len();
        let mut factor = vec![vec![0.0; count]; count];
        for row in 0..count {
            for column in 0..=row {
                let before = dot(&factor[row][..column], &factor[column][..column]);
                let rest = self.products[chosen[row]][chosen[column]] - before;
                factor[row][column] = if row == column {
                    (rest > f64::EPSILON).then(|| rest.sqrt())?
                } else {
                    rest / factor[column][column]
                };
            }
        }
        for row in 0..count {
            target[row] = (target[row] - dot(&factor[row][..row], &target[..row])) / factor[row][row];
        }
        for row in (0..count).rev() {
            let below: f64 = (row + 1..count).map(|other| factor[other][row] * target[other]).sum();
            target[row] = (target[row] - below) / factor[row][row];
        }
        Some(target)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn combinations_of_columns_before_and_empty_ones_are_not_determined() {
        let (a, b) = (vec![1.0, 2.0, 0.0, 1.0], vec![0.0, 1.0, 1.0, 3.0]);
        let sum: Vec<f64> = a.iter().zip(&b).map(|(a, b)| 2.0 * a + b).collect();
        let double = b.iter().map(|b| 2.0 * b).collect();
        let columns = [a, vec![0.0; 4], b, sum, double, vec![0.0, 0.0, 0.0, 1.0]];
        assert_eq!(
            uses(&columns),
            [
                Use::Determined,
                Use::Empty,
                Use::Determined,
                Use::DependsOn(vec![0, 2]),
                Use::DependsOn(vec![2]),
                Use::Determined,
            ]
        );
    }

    #[test]
    fn errors_are_those_of_the_textbook() {
        // A line through (0, 1), (1, 3), (2, 5), and one that would be below 0.
        let (ones, slope) = ([1.0, 1.0, 1.0], [0.0, 1.0, 2.0]);
        let solution = non_negative(&[&ones, &slope], &[1.0, 3.0, 5.0]);
        assert!((solution.values[0] - 1.0).abs() < 1e-12 && (solution.values[1] - 2.0).abs() < 1e-12);
        let errors: Vec<f64> = solution.errors.into_iter().flatten().collect();
        assert!((errors[0] - (5.0_f64 / 6.0).sqrt()).abs() < 1e-12, "{errors:?}");
        assert!((errors[1] - 0.5_f64.sqrt()).abs() < 1e-12, "{errors:?}");
        let solution = non_negative(&[&ones, &slope], &[5.0, 3.0, 1.0]);
        assert_eq!((solution.values[1], solution.errors[1]), (0.0, None));
        assert!((solution.values[0] - 3.0).abs() < 1e-12);
    }

    /// Sum of the squares of what is left.
    fn squares(columns: &[Vec<f64>], values: &[f64], target: &[f64]) -> f64 {
        let rows = target.iter().enumerate();
        rows.map(|(row, target)| {
            let sum: f64 = columns.iter().zip(values).map(|(column, value)| column[row] * value).sum();
            (target - sum).powi(2)
        })
        .sum()
    }

    /// Best of the free optima of all choices of columns that have no value below 0.
    fn best(columns: &[Vec<f64>], target: &[f64]) -> f64 {
        let all: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let normal = Normal::new(&all, target);
        let choices = (0..1_u32 << columns.len()).filter_map(|choice| {
            let chosen: Vec<usize> = (0..columns.len()).filter(|number| choice >> number & 1 == 1).collect();
            let found = normal.solve(&chosen)?;
            let mut values = vec![0.0; columns.len()];
            for (&number, found) in chosen.iter().zip(found) {
                values[number] = found / normal.lengths[number];
            }
            values.iter().all(|value| *value >= 0.0).then(|| squares(columns, &values, target))
        });
        choices.fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #[test]
        fn the_values_are_the_best_that_are_not_below_0(
            numbers in prop::collection::vec(prop::collection::vec(-8..8_i32, 9), 1..6),
            target in prop::collection::vec(-20..20_i32, 9),
        ) {
            let column = |numbers: &Vec<i32>| numbers.iter().map(|&number| f64::from(number)).collect();
            let columns: Vec<Vec<f64>> = numbers.iter().map(column).collect();
            let target: Vec<f64> = column(&target);
            let uses = uses(&columns);
            let columns: Vec<Vec<f64>> =
                columns.into_iter().zip(uses).filter(|(_, of)| *of == Use::Determined).map(|(column, _)| column).collect();
            let all: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
            let solution = non_negative(&all, &target);
            prop_assert!(solution.values.iter().all(|value| *value >= 0.0));
            let (found, best) = (squares(&columns, &solution.values, &target), best(&columns, &target));
            prop_assert!((found - best).abs() <= 1e-9 * (1.0 + best), "{found} is not {best}");
        }
    }
}
