//! Fractional positions: strings that sort by bytes, with room between any two.
//!
//! Uses the common scheme (a base-62 fraction without trailing zeros, see Figma, "Realtime editing of ordered
//! sequences"). Equal positions that two devices create at the same time are ordered by the block's id.

const POSITION_DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn digit_value(digit: u8) -> usize {
    match digit {
        b'0'..=b'9' => usize::from(digit - b'0'),
        b'A'..=b'Z' => usize::from(digit - b'A') + 10,
        b'a'..=b'z' => usize::from(digit - b'a') + 36,
        _ => 0, // a hostile document's position still sorts somewhere; it never panics
    }
}

/// Returns a position after `low` and before `high` (`None`: no bound). If there's no room because `low >= high`, the
/// result is only after `low`: the caller then moves the block at `high`.
pub fn position_between(low: Option<&str>, high: Option<&str>) -> String {
    let found = fraction_between(low, high);
    match low {
        // Only a position of another implementation with other digits gets here. There is room after it.
        Some(low) if found.as_str() <= low => {
            format!("{low}{}", char::from(POSITION_DIGITS[POSITION_DIGITS.len() / 2]))
        }
        Some(_) | None => found,
    }
}

fn fraction_between(low: Option<&str>, high: Option<&str>) -> String {
    let low = low.unwrap_or("").as_bytes();
    let high = high.filter(|high| high.as_bytes() > low).map(str::as_bytes);
    let mut out = String::new();
    let mut bound = high;
    let mut at = 0;
    loop {
        let floor = low.get(at).map_or(0, |digit| digit_value(*digit));
        let ceiling = match bound {
            Some(high) => high.get(at).map_or(0, |digit| digit_value(*digit)),
            None => POSITION_DIGITS.len(),
        };
        if ceiling > floor + 1 {
            out.push(char::from(POSITION_DIGITS[usize::midpoint(floor, ceiling)]));
            return out;
        }
        if bound.is_some_and(|high| at >= high.len()) && at >= low.len() {
            // `high` is `low` followed by zeros, which only another implementation writes. There is no room.
            out.push(char::from(POSITION_DIGITS[POSITION_DIGITS.len() / 2]));
            return out;
        }
        out.push(char::from(POSITION_DIGITS[floor]));
        if ceiling > floor {
            bound = None; // already below `high`: from here on only `low` binds
        }
        at += 1;
    }
}

/// Returns `count` positions, evenly spaced and of equal length.
pub fn spread_positions(count: usize) -> Vec<String> {
    let mut width = 1;
    let mut room = POSITION_DIGITS.len();
    while room <= count + 1 {
        room = room.saturating_mul(POSITION_DIGITS.len());
        width += 1;
    }
    // One digit more than needed, so that the first insertions between neighbors stay short.
    let step = room / (count + 1);
    (1..=count)
        .map(|index| {
            let mut number = index * step;
            let mut digits = vec![0_u8; width];
            for digit in digits.iter_mut().rev() {
                *digit = POSITION_DIGITS[number % POSITION_DIGITS.len()];
                number /= POSITION_DIGITS.len();
            }
            // No trailing zeros: otherwise nothing would fit before the successor of the shorter form.
            digits.push(POSITION_DIGITS[POSITION_DIGITS.len() / 2]);
            digits.into_iter().map(char::from).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spread_sorts() {
        for count in [0, 1, 2, 60, 61, 62, 1000, 10_000] {
            let positions = spread_positions(count);
            assert_eq!(positions.len(), count);
            assert!(positions.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn foreign_positions_end() {
        for (low, high) in [("a", "a0"), ("a", "a000"), ("", "0"), ("b", "a"), ("\u{e4}", "\u{f6}"), ("a", "a")] {
            assert!(position_between(Some(low), Some(high)).as_str() > low, "{low} {high}");
        }
    }

    proptest! {
        #[test]
        fn there_is_always_room(choices in prop::collection::vec(0_usize..1000, 1..200)) {
            let mut positions = spread_positions(2);
            for choice in choices {
                let at = choice % (positions.len() + 1);
                let low = at.checked_sub(1).map(|at| positions[at].clone());
                let new = position_between(low.as_deref(), positions.get(at).map(String::as_str));
                positions.insert(at, new);
                prop_assert!(positions.windows(2).all(|pair| pair[0] < pair[1]), "{positions:?}");
            }
        }
    }
}
