//! What a mistyped name was meant to be.

/// The name nearest to `typed`, where one is near enough to be what was meant.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed_low = typed.to_lowercase();
    let most = typed.chars().count().div_ceil(3).max(1);
    let ranked = names.into_iter().map(|name| (distance(&typed_low, &name.to_lowercase()), name));
    ranked.filter(|(far, _)| *far <= most).min_by_key(|(far, _)| *far).map(|(_, name)| name)
}

/// Letters inserted, dropped or changed between two words (Levenshtein), one row at a time.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (to, above) in b.iter().zip(row.iter().skip(1)) {
            let changed = diagonal + usize::from(from != *to);
            left = changed.min(left + 1).min(above + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["rate", "amount", "time_zone", "burst"];
        assert_eq!(nearest("timezone", names), Some("time_zone"));
        assert_eq!(nearest("Burst", names), Some("burst"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
