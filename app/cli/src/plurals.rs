//! Numbers of things in output: `1 note`, `2 notes`.

use std::fmt::Display;

/// Returns a number of things, whose name gets an s unless there is one of them.
pub(super) fn counted(number: impl Display, thing: &str) -> String {
    let number = number.to_string();
    let ending = if number == "1" { "" } else { "s" };
    format!("{number} {thing}{ending}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_thing_has_no_s() {
        assert_eq!([0, 1, 2, 11].map(|number| counted(number, "note")), ["0 notes", "1 note", "2 notes", "11 notes"]);
    }
}
