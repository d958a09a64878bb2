//! What evidence comes to, in a sentence that can be mailed.

use super::evidence::Evidence;
use super::limits::{counted, describe};
use super::words::figure;
use crate::quota::Upstream;

/// The sentence, or two.
pub fn conclude(upstream: &Upstream, evidence: &Evidence) -> String {
    let Some((first, last)) = evidence.span else {
        return format!("Nothing was sent to {} in this time.", upstream.title);
    };
    let calls = evidence.all.calls;
    let sent = match calls {
        1 => "The one call".to_owned(),
        calls => format!("Of {calls} calls"),
    };
    let part = match evidence.refused_in_part {
        0 => String::new(),
        some => format!(" as a whole, {some} in part"),
    };
    let between =
        format!("between {} and {}", first.to_rfc3339_seconds(), last.to_rfc3339_seconds());
    if evidence.all.refused == 0 {
        return format!(
            "{sent} to {} {between}{} refused{part}; no second held more than {}.",
            upstream.title,
            if calls == 1 { " was not" } else { " none was" },
            evidence.busiest[0]
        );
    }
    let number = evidence.all.refused;
    let refused = match (calls, number) {
        (1, _) => format!("{sent} to {} {between} was refused{part}", upstream.title),
        (_, number) => {
            let (share, were) = (share(number, calls), if number == 1 { "was" } else { "were" });
            format!(
                "{sent} to {} {between} {number} ({share}) {were} refused{part}",
                upstream.title
            )
        }
    };
    let [second, _, minute] = evidence.busiest;
    let kept = format!(
        "no second held more than {second} of our calls and no minute more than {minute}{}",
        declared(upstream)
    );
    let inside = match evidence.refused_inside {
        0 => "none of them as too fast while we were within the declared limits".to_owned(),
        all if all == evidence.all.refused => {
            "all of them as too fast or too much, though within the declared limits".to_owned()
        }
        some => {
            format!("{some} of them as too fast or too much, though within the declared limits")
        }
    };
    format!("{refused}, {inside}: {kept}.{}", connections(evidence))
}

fn declared(upstream: &Upstream) -> String {
    let told = upstream.limits.iter().map(|limit| {
        format!("{} ({}{})", limit.name, describe(&limit.rule).declared, counted(limit))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { String::new() } else { format!("; declared: {}", told.join("; ")) }
}

/// Where some connections were refused and others never, it is not our rate that is counted.
fn connections(evidence: &Evidence) -> String {
    let all = evidence.by_connection.len();
    let refused = evidence.by_connection.values().filter(|count| count.refused > 0).count();
    match (all, refused) {
        (0, _) | (_, 0) => String::new(),
        (1, _) => " All went over one connection.".to_owned(),
        (all, refused) => format!(" {refused} of {all} connections met refusals."),
    }
}

/// "12 %", "0.4 %".
pub fn share(part: u64, of: u64) -> String {
    let permille = part.saturating_mul(1000).checked_div(of).unwrap_or(0);
    let tenths = u32::try_from(permille).unwrap_or(1000);
    format!("{} %", figure(f64::from(tenths) / 10.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::quota::declare;
    use crate::report::evidence::Count;

    fn shop() -> Upstream {
        let text = "name = \"shop\"\ntitle = \"The shop\"\n[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"10/s\"\n";
        declare::parse("shop", "shop.toml", text).unwrap()
    }

    #[test]
    fn it_says_what_was_kept_and_what_was_refused() {
        let at = Timestamp::from_secs(1_772_366_400);
        let evidence = Evidence {
            all: Count { calls: 600, refused: 45 },
            refused_inside: 45,
            busiest: [10, 99, 590],
            span: Some((at, Timestamp::from_secs(1_772_366_460))),
            by_connection: [(1, Count { calls: 600, refused: 45 })].into(),
            ..Evidence::default()
        };
        assert_eq!(
            conclude(&shop(), &evidence),
            "Of 600 calls to The shop between 2026-03-01T12:00:00Z and 2026-03-01T12:01:00Z 45 (7.5 %) \
             were refused, all of them as too fast or too much, though within the declared limits: no second held more than 10 of our \
             calls and no minute more than 590; declared: plan (10 a second, burst 1). All went over \
             one connection."
        );
        assert!(conclude(&shop(), &Evidence::default()).starts_with("Nothing was sent"));
        let one = Evidence { all: Count { calls: 1, refused: 1 }, ..evidence.clone() };
        assert!(conclude(&shop(), &one).starts_with("The one call to The shop between "));
        assert!(conclude(&shop(), &one).contains("12:01:00Z was refused, "));
        let part = Evidence { all: Count { calls: 2, refused: 0 }, refused_in_part: 1, ..evidence };
        assert!(
            conclude(&shop(), &part).contains("none was refused as a whole, 1 in part; no second")
        );
    }
}
