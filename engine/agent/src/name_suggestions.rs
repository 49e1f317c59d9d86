//! Suggestions for mistyped names: the closest known ones.

/// Maximum number of suggested names.
const MAX_CLOSEST_NAMES: usize = 3;

/// Returns the known names closest to an unknown one, closest first; none if all are too different.
pub fn closest_names<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted: String = name.chars().take(100).flat_map(char::to_lowercase).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<(usize, &str)> = known
        .filter_map(|one| {
            let lower = one.to_lowercase();
            let distance = strsim::damerau_levenshtein(&wanted, &lower);
            let most = (wanted.chars().count().max(lower.chars().count()) / 3).max(1);
            let begins = wanted.len() >= 2 && (lower.starts_with(&wanted) || wanted.starts_with(&lower));
            (distance <= most || begins).then_some((distance, one))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, one)| one).take(MAX_CLOSEST_NAMES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_finds_its_neighbours() {
        let names = ["assistant", "qa", "backend", "frontend", "security"];
        let near = |name: &str| closest_names(name, names.into_iter());
        assert_eq!(near("backand"), ["backend"]);
        assert_eq!(near("q"), ["qa"]);
        assert_eq!(near("secur"), ["security"]);
        assert_eq!(near("nonsense"), [] as [&str; 0]);
        assert_eq!(near(""), [] as [&str; 0]);
    }
}
