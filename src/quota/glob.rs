//! `[match]`: patterns in which `*` stands for any characters.

use crate::quota::Match;

/// How well a call fits: the letters of the host pattern and path pattern that fit it, longer being
/// better; `None` where it does not.
pub(super) fn rank(of: &Match, host: &str, path: &str) -> Option<(usize, usize)> {
    let host = host.to_ascii_lowercase();
    let hosts = of.hosts.iter().filter(|pattern| fits(&pattern.to_ascii_lowercase(), &host));
    let by_host = hosts.map(|pattern| letters(pattern)).max()?;
    let paths = of.paths.iter().filter(|pattern| fits(pattern, path));
    let by_path = match paths.map(|pattern| letters(pattern)).max() {
        None if !of.paths.is_empty() => return None,
        longest => longest.unwrap_or(0),
    };
    Some((by_host, by_path))
}

/// Whether a host is one of those that are named; any is, where none are.
pub(crate) fn names_host(of: &Match, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    of.hosts.is_empty() || of.hosts.iter().any(|named| fits(&named.to_ascii_lowercase(), &host))
}

fn letters(pattern: &str) -> usize {
    pattern.chars().filter(|c| *c != '*').count()
}

/// Whether `pattern` fits the whole of `text`. The first and last piece are bound to its ends, the
/// others are found from left to right, which is enough where `*` is the only wildcard.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*').filter(|piece| !piece.is_empty()) {
        match text.split_once(piece) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, text) in [
            ("a.example", "a.example"),
            ("*.example", "a.b.example"),
            ("*", ""),
            ("/v1/*", "/v1/"),
            ("/v*/x*z", "/v12/x/yz/xz"),
            ("a*b*c", "abbc"),
            ("a**c", "abc"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("a.example", "b.a.example"),
            ("*.example", "example"),
            ("/v1/*", "/v1"),
            ("a*a", "a"),
            ("a*b*c", "axc"),
        ] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn the_longer_pattern_ranks_higher() {
        let of = |host: &str, path: &str| Match {
            hosts: vec![host.to_owned()],
            paths: vec![path.to_owned()],
        };
        let rank = |of: &Match| rank(of, "API.a.example", "/v1/x");
        assert!(rank(&of("api.a.example", "*")) > rank(&of("*.a.example", "/v1/*")));
        assert!(rank(&of("*.a.example", "/v1/*")) > rank(&of("*.a.example", "/*")));
        assert_eq!(rank(&of("*.a.example", "/v2/*")), None);
    }
}
