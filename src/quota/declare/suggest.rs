//! What a mistyped name was meant to be.

/// The name nearest to `typed`, where one is near enough to be what was meant.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed_low = typed.to_lowercase();
    let most = (typed.chars().count() / 3).max(1);
    let ranked = names.into_iter().map(|name| (distance(&typed_low, &name.to_lowercase()), name));
    ranked.filter(|(far, _)| *far <= most).min_by_key(|(far, _)| *far).map(|(_, name)| name)
}

/// ` (did you mean `daily`?)` where a name is near, else nothing: to stand behind the name that was typed.
pub fn meant<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(typed, names.into_iter().filter(|name| *name != typed));
    near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}

/// Letters inserted, dropped, changed, or neighbours swapped, between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    // The row before the last one, and the last one: of each beginning of `b`.
    let (mut before, mut row) = (Vec::new(), (0..=b.len()).collect::<Vec<usize>>());
    let mut letter_before = None;
    for (i, from) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX - 1);
            let mut least = at(&row, j) + usize::from(from != *to);
            least = least.min(at(&row, j + 1) + 1).min(at(&next, j) + 1);
            let swapped = j > 0 && letter_before == Some(*to) && b.get(j - 1) == Some(&from);
            if swapped {
                least = least.min(at(&before, j - 1) + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
        letter_before = Some(from);
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
        assert_eq!(nearest("brust", names), Some("burst"));
        assert_eq!(nearest("cost", ["host", "code"]), Some("host"));
        assert_eq!(nearest("shop", ["host"]), None);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!((distance("isbn", "isnb"), distance("", "ab")), (1, 2));
    }

    #[test]
    fn neighbours_that_are_swapped_are_one_mistake() {
        let far = [("daliy", "daily"), ("adily", "daily"), ("daiyl", "daily"), ("dayli", "daily")];
        assert_eq!(far.map(|(typed, meant)| distance(typed, meant)), [1, 1, 1, 2]);
        assert_eq!([distance("", "ab"), distance("ab", ""), distance("ab", "ab")], [2, 2, 0]);
    }

    #[test]
    fn a_third_of_the_letters_may_be_wrong() {
        let names = ["concurrency", "rate"];
        assert_eq!(nearest("concurent", names), Some("concurrency"));
        assert_eq!(nearest("concrnt", names), None);
        assert_eq!(nearest("rat", names), Some("rate"));
    }
}
