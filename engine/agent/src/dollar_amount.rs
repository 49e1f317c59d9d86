//! Reads amounts of US dollars as users write them: `5`, `5.00`, `$5`, `5$`, `5 USD` and `USD 5`. What could be another
//! amount, such as `0,20`, `1 000` or `5k`, isn't read at all.

/// What is written before an amount, in lowercase.
const SIGNS_BEFORE: [&str; 3] = ["us$", "usd", "$"];
/// What is written after an amount, in lowercase.
const SIGNS_AFTER: [&str; 6] = ["us dollars", "us$", "usd", "$", "dollars", "dollar"];

fn is_amount_char(letter: char) -> bool {
    letter.is_ascii_digit() || letter == '.'
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

/// Reads digits with at most one point. A point at the end ends a sentence.
fn parse_plain(amount: &str) -> Option<f64> {
    let amount = amount.trim_end_matches('.');
    amount.parse().ok().filter(|dollars: &f64| dollars.is_finite() && amount.chars().all(is_amount_char))
}

/// Returns the amount if the text is one and nothing else.
pub fn parse_dollar_amount(text: &str) -> Option<f64> {
    let lower = text.trim().to_lowercase();
    let amount = SIGNS_BEFORE.iter().find_map(|sign| lower.strip_prefix(sign)).unwrap_or(&lower);
    let amount = SIGNS_AFTER.iter().find_map(|sign| amount.strip_suffix(sign)).unwrap_or(amount);
    parse_plain(amount.trim())
}

/// Returns the amount in a sentence in lowercase that names US dollars: `Some(None)` if it can't be read, and `None` if
/// the sentence doesn't name them.
pub(crate) fn find_dollar_amount(lower: &str) -> Option<Option<f64>> {
    let named = ["us dollars", "us$", "usd", "dollars"];
    let marked = named.iter().fold(lower.to_owned(), |text, name| text.replace(name, "$"));
    let (before, after) = marked.split_once('$')?;
    let (left, right) = (before.trim_end(), after.trim_start());
    let (number, rest) = right.split_at(right.find(|letter| !is_amount_char(letter)).unwrap_or(right.len()));
    if before.ends_with(is_digit) || !number.contains(is_digit) {
        let (head, number) = left.split_at(left.trim_end_matches(is_amount_char).len());
        let is_part = head.ends_with(|letter: char| letter.is_alphanumeric() || matches!(letter, ',' | '-'))
            || head.trim_end().ends_with(is_digit);
        return Some(parse_plain(number).filter(|_| !is_part));
    }
    let is_part = rest.starts_with(char::is_alphanumeric)
        || rest.trim_start().starts_with(is_digit)
        || rest.strip_prefix(',').is_some_and(|behind| behind.starts_with(is_digit));
    Some(parse_plain(number).filter(|_| !is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_users_write_them() {
        for text in ["5", "5.00", "$5", "$ 5", "5$", " 5 $ ", "5 USD", "USD 5", "usd5", "US$5", "5 dollars", "$5 USD"] {
            assert_eq!(parse_dollar_amount(text), Some(5.0), "{text}");
        }
        assert_eq!((parse_dollar_amount("$.5"), parse_dollar_amount("0")), (Some(0.5), Some(0.0)));
        let wrong = ["", "$", ".", "-5", "+5", "0,20", "1 000", "1e3", "inf", "NaN", "5 EUR", "€5", "5k", "5 $ a day"];
        for text in wrong {
            assert_eq!(parse_dollar_amount(text), None, "{text}");
        }
        assert_eq!(parse_dollar_amount(&"9".repeat(400)), None);
    }
}
