//! The fusion gate: how much words count against meaning, decided for each query by what its two rankings look like.
//!
//! A fixed weight fits the collection that it was chosen on. The gate's parameters are trained on many collections, and
//! each of these measures the parameters that were trained without it (`tests/bench/fusion`).

/// Number of signals, including the constant one.
pub const GATE_SIGNALS: usize = 4;

/// The parameters of the fusion gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FusionGate {
    /// The factor of each signal; the sum goes through a logistic function. In the order of [`GateSignals::values`].
    pub factors: [f32; GATE_SIGNALS],
    /// Weight of reciprocal ranks (k = 10) in addition to scores, from 0. It keeps the fusion from doing worse than
    /// rank fusion where the two kinds of scores are spread differently than on the collections of the training.
    pub ranks: f32,
    /// Minimum weight of words for a query of at most [`SHORT_QUERY_TERMS`] words, 0 to 1. Who types so few looks for
    /// these words; the collections of the training hold questions.
    pub short_query_floor: f32,
}

/// Maximum number of words of a short query.
pub(crate) const SHORT_QUERY_TERMS: usize = 3;

impl Default for FusionGate {
    /// The parameters in `tests/bench/fusion/gate.json`, written by `tests/bench/fusion/train.py`.
    fn default() -> Self {
        FusionGate { factors: [-1.244, 0.472, 1.285, -1.29], ranks: 0.25, short_query_floor: 0.4 }
    }
}

impl FusionGate {
    /// Returns a gate that gives words this weight for every query, 0 to 1, and ignores ranks.
    pub fn fixed(words: f32) -> FusionGate {
        let words = words.clamp(0.001, 0.999);
        let mut factors = [0.0; GATE_SIGNALS];
        factors[0] = (words / (1.0 - words)).ln();
        FusionGate { factors, ranks: 0.0, short_query_floor: 0.0 }
    }

    /// Returns the weight of words for a query with these signals, 0 to 1.
    pub(crate) fn word_weight(&self, shape: QueryShape, signals: &GateSignals) -> f32 {
        let floor = if shape.terms <= SHORT_QUERY_TERMS { self.short_query_floor } else { 0.0 };
        let sum: f32 = self.factors.iter().zip(signals.values).map(|(factor, value)| factor * value).sum();
        (1.0 / (1.0 + (-sum).exp())).max(floor)
    }
}

/// The words of a query as the gate sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct QueryShape {
    /// Number of different words.
    pub(crate) terms: usize,
    /// Sum of the words' inverse document frequencies: rare words count most.
    pub(crate) rarity: f32,
}

/// What is visible of a query when its two rankings are fused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateSignals {
    /// The values: one; the logarithm of the query's length; those of the spread of the scores by words, against what
    /// the rarity of the words lets expect, and of the cosines. Scores that lie close together tell hits apart badly.
    pub values: [f32; GATE_SIGNALS],
}

impl GateSignals {
    /// Measures a query by its words and the spreads of its two rankings: the best score less the last that counts.
    #[allow(clippy::cast_precision_loss, reason = "numbers of words")]
    pub(crate) fn measure(shape: QueryShape, word_spread: f32, cosine_spread: f32) -> GateSignals {
        let words = (word_spread.max(0.0) + 1e-3) / (shape.rarity.max(0.0) + 1.0).sqrt();
        let cosines = cosine_spread.max(0.0) + 1e-3;
        // The offsets only bring usual values near zero.
        GateSignals { values: [1.0, (shape.terms as f32 + 1.0).ln() - 2.0, words.ln(), cosines.ln() + 1.5] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_hits_apart_counts_more() {
        let gate = FusionGate { factors: [0.0, 0.0, 1.0, -1.0], ranks: 0.0, short_query_floor: 0.4 };
        let shape = QueryShape { terms: 6, rarity: 24.0 };
        let weight = |words: f32, cosines: f32| gate.word_weight(shape, &GateSignals::measure(shape, words, cosines));
        assert!(weight(10.0, 0.2) > weight(5.0, 0.2) && weight(10.0, 0.2) > weight(10.0, 0.5));
        let short = QueryShape { terms: 2, rarity: 9.0 };
        assert!(gate.word_weight(short, &GateSignals::measure(short, 0.1, 0.9)) >= 0.4, "few words are looked for");
        let values = GateSignals::measure(shape, 9.999, 0.199).values;
        let expected = [1.0, 7.0_f32.ln() - 2.0, 2.0_f32.ln(), 0.2_f32.ln() + 1.5];
        assert!(values.iter().zip(expected).all(|(value, wanted)| (value - wanted).abs() < 1e-4), "{values:?}");
    }

    #[test]
    fn a_fixed_gate_ignores_the_query_and_extremes_stay_in_range() {
        let fixed = FusionGate::fixed(0.4);
        for (words, cosines) in [(0.0, 0.0), (1e9, 1.0), (-1.0, -1.0)] {
            let signals = GateSignals::measure(QueryShape::default(), words, cosines);
            assert!(signals.values.iter().all(|value| value.is_finite()));
            let shape = QueryShape::default();
            assert!((fixed.word_weight(shape, &signals) - 0.4).abs() < 1e-5);
            assert!((0.0..=1.0).contains(&FusionGate::default().word_weight(shape, &signals)));
        }
    }

    /// The parameters in the program are those that the training wrote.
    #[test]
    fn the_default_is_what_was_trained() {
        let trained = include_str!("../../../tests/bench/fusion/gate.json");
        let numbers = |name: &str| -> Vec<f32> {
            let rest = trained.split_once(&format!("\"{name}\":")).expect(name).1;
            let list = rest.split(['[', ']']).nth(1).expect("a list");
            list.split(',').map(|number| number.trim().parse().expect("a number")).collect()
        };
        let gate = FusionGate::default();
        assert_eq!(numbers("factors"), gate.factors);
        assert_eq!(numbers("ranks"), [gate.ranks]);
    }
}
