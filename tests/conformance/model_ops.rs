//! What can happen in a random life.

use proptest::prelude::*;

#[derive(Clone, Debug)]
pub enum Op {
    Add { site: u8, count: u8, priority: u8, delay: u8, deadline: Option<u16>, post: bool },
    /// Jobs that the caller, the last of the processes, owns.
    Enter { site: u8, count: u8, once: bool, post: bool },
    Claim { who: usize, most: usize },
    Settle { which: usize, said: Said },
    /// An answer to a call whose lease has run out.
    Late { which: usize, said: Said },
    Release { which: usize },
    Die { who: usize },
    Sweep,
    Pass { millis: u32 },
    Step { secs: i32 },
    Hold { site: u8 },
    Resume { site: Option<u8> },
    Cancel { which: usize },
    Retry,
    Tidy,
}

#[derive(Clone, Copy, Debug)]
pub enum Said {
    Ok,
    NotFound,
    Fault,
    NoAnswer,
    NeverLeft,
    Wait { secs: u16, limit: &'static str },
    TooFast,
    Overloaded,
    Misconfigured,
    Redirect { as_get: bool },
}

fn any_said() -> impl Strategy<Value = Said> {
    let limit = prop_oneof![Just(""), Just("span"), Just("hourly"), Just("places")];
    prop_oneof![
        6 => Just(Said::Ok),
        1 => Just(Said::NotFound),
        1 => Just(Said::Fault),
        1 => Just(Said::NoAnswer),
        1 => Just(Said::NeverLeft),
        2 => (1_u16..200, limit).prop_map(|(secs, limit)| Said::Wait { secs, limit }),
        1 => Just(Said::TooFast),
        1 => Just(Said::Overloaded),
        1 => Just(Said::Misconfigured),
        1 => any::<bool>().prop_map(|as_get| Said::Redirect { as_get }),
    ]
}

pub fn any_op() -> impl Strategy<Value = Op> {
    let add = (0_u8..4, 1_u8..6, 0_u8..3, 0_u8..40, prop::option::weighted(0.2, 1_u16..900), any::<bool>())
        .prop_map(|(site, count, priority, delay, deadline, post)| Op::Add {
            site,
            count,
            priority,
            delay: delay.saturating_sub(30),
            deadline,
            post,
        });
    prop_oneof![
        4 => add,
        2 => (0_u8..4, 1_u8..4, any::<bool>(), any::<bool>())
            .prop_map(|(site, count, once, post)| Op::Enter { site, count, once, post }),
        8 => (0_usize..3, 1_usize..8).prop_map(|(who, most)| Op::Claim { who, most }),
        8 => (any::<usize>(), any_said()).prop_map(|(which, said)| Op::Settle { which, said }),
        1 => (any::<usize>(), any_said()).prop_map(|(which, said)| Op::Late { which, said }),
        2 => any::<usize>().prop_map(|which| Op::Release { which }),
        1 => (0_usize..3).prop_map(|who| Op::Die { who }),
        1 => Just(Op::Sweep),
        6 => prop_oneof![1_u32..300, 300_u32..5_000, 5_000_u32..100_000].prop_map(|millis| Op::Pass { millis }),
        1 => prop_oneof![Just(-7200), Just(7200), Just(-90), Just(90), Just(100_000)].prop_map(|secs| Op::Step { secs }),
        1 => (0_u8..4).prop_map(|site| Op::Hold { site }),
        1 => prop::option::of(0_u8..4).prop_map(|site| Op::Resume { site }),
        1 => any::<usize>().prop_map(|which| Op::Cancel { which }),
        1 => Just(Op::Retry),
        1 => Just(Op::Tidy),
    ]
}
