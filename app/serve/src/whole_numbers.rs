//! Whole numbers in JSON bodies. JSON Schema counts 3.0 among them, and so do clients whose language has no others.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Number;

/// The whole numbers that all numbers of JSON with a fraction of zero are taken for.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

fn whole<T: TryFrom<i128>, E: Error>(number: &Number) -> Result<T, E> {
    let exact = |float: &f64| float.fract() == 0.0 && float.abs() <= MAX_EXACT_FLOAT;
    let value = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    // A float within this limit is exactly one integer.
    let value = value.or_else(|| number.as_f64().filter(exact).map(|float| float as i128));
    let wrong = || E::custom(format!("{number} isn't a whole number that fits here"));
    T::try_from(value.ok_or_else(wrong)?).map_err(|_| wrong())
}

/// Reads a whole number.
pub(crate) fn needed<'de, D: Deserializer<'de>, T: TryFrom<i128>>(deserializer: D) -> Result<T, D::Error> {
    whole(&Number::deserialize(deserializer)?)
}

/// Reads a whole number, or none.
pub(crate) fn optional<'de, D: Deserializer<'de>, T: TryFrom<i128>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::<Number>::deserialize(deserializer)?.map(|number| whole(&number)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Row {
        #[serde(deserialize_with = "needed")]
        at: u64,
        #[serde(default, deserialize_with = "optional")]
        priority: Option<i32>,
    }

    #[test]
    fn a_fraction_of_zero_is_none() {
        let read = |text: &str| serde_json::from_str::<Row>(text).map(|row| (row.at, row.priority)).ok();
        assert_eq!(read(r#"{"at": 3.0, "priority": -2.0}"#), Some((3, Some(-2))));
        assert_eq!(read(r#"{"at": 18446744073709551615, "priority": null}"#), Some((u64::MAX, None)));
        assert_eq!(read(r#"{"at": 0}"#), Some((0, None)));
        for wrong in [r#"{"at": 3.5}"#, r#"{"at": -1}"#, r#"{"at": "3"}"#, r#"{"at": 1e300}"#, r#"{"at": null}"#, "{}"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(read(r#"{"at": 1, "priority": 3000000000}"#), None);
    }
}
