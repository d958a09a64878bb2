//! The one suite that every store must pass. Each case is written against the trait and run over
//! each store; `world` checks after every claim what must hold after any.

#[path = "conformance/stores.rs"]
mod stores;
#[path = "conformance/world.rs"]
mod world;

macro_rules! subjects {
    ($($file:literal $subject:ident { $($case:ident,)+ })+) => {
        $(#[path = $file] mod $subject;)+
        mod sqlite_at_once {
            $(mod $subject { $(#[test] fn $case() { crate::$subject::$case(&crate::stores::at_once) })+ })+
        }
        mod sqlite_threaded {
            $(mod $subject { $(#[test] fn $case() { crate::$subject::$case(&crate::stores::threaded) })+ })+
        }
    };
}

subjects! {
    "conformance/add.rs" add {
        jobs_are_numbered_in_the_order_given,
        an_addition_that_fails_adds_nothing,
        what_is_sent_comes_back_whole,
        a_job_for_later_waits_for_its_instant,
        a_job_that_is_due_earlier_wakes_its_partition,
        loads_are_told_with_their_jobs,
        an_addition_is_news_to_other_processes,
    }
    "conformance/dedupe.rs" dedupe {
        an_active_one_is_not_added_again,
        what_is_different_is_no_duplicate,
        the_users_own_key_decides,
        none_lets_all_in,
        a_day_lasts_to_midnight_utc,
        for_ever_outlasts_the_job,
        one_that_may_have_been_sent_is_active,
        one_whose_like_is_active_is_not_tried_again,
    }
    "conformance/claim.rs" claim {
        an_attempt_is_on_record_before_it_is_sent,
        no_job_is_in_two_calls,
        no_call_id_is_used_twice,
        a_lease_lasts_for_the_call_and_longer,
        the_lead_is_kept,
        an_unknown_upstream_has_nothing,
        a_call_says_whether_it_is_paced_and_repeatable,
        what_was_added_as_unrepeatable_stays_so,
    }
    "conformance/order.rs" order {
        priority_then_due_then_arrival,
        partitions_share_fairly,
        a_later_partition_is_not_kept_waiting,
        a_due_job_of_high_priority_is_seen_among_low_ones,
        a_job_that_backed_off_comes_back_at_its_priority,
        a_job_told_to_wait_keeps_its_place,
        a_new_priority_counts_at_once,
        who_waits_with_a_high_priority_is_let_go_first,
    }
}
