//! The one suite that every store must pass. Each case is written against the trait and run over
//! each store; `world` checks after every claim what must hold after any.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

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
        a_row_that_replaces_one_of_its_own_addition_is_counted_once,
        what_is_different_is_no_duplicate,
        the_users_own_key_decides,
        none_lets_all_in,
        a_day_lasts_to_midnight_utc,
        for_ever_outlasts_the_job,
        one_that_may_have_been_sent_is_active,
        one_whose_like_is_active_is_not_tried_again,
        what_has_not_changed_is_not_added_again,
        what_came_to_nothing_counts_as_never_added,
        a_newer_one_takes_the_place_of_one_that_waits,
        one_of_the_day_that_waits_is_replaced_and_one_that_went_is_not,
        a_newer_one_keeps_a_wait_that_was_told,
        one_that_moves_to_another_partition_leaves_its_own,
    }
    "conformance/claim.rs" claim {
        an_attempt_is_on_record_before_it_is_sent,
        no_job_is_in_two_calls,
        no_call_id_is_used_twice,
        a_lease_lasts_for_the_call_and_longer,
        the_lead_is_kept,
        an_unknown_upstream_has_nothing,
        a_call_says_whether_it_is_repeatable,
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
        of_what_came_due_meanwhile_the_best_goes_first,
        a_job_can_stand_where_it_would_had_it_come_earlier,
    }
    "conformance/budgets.rs" budgets {
        a_window_holds_its_amount_and_no_more,
        all_processes_share_a_window,
        what_was_spent_stays_spent_after_a_crash,
        a_job_tried_again_is_charged_again,
        what_was_released_or_never_left_goes_back,
        units_that_come_back_wake_who_waits,
        a_refused_call_is_refunded_where_only_accepted_ones_count,
        an_instance_with_figures_of_its_own_has_them,
        a_reserve_is_left_for_people,
        units_spent_elsewhere_count,
        a_rolling_limit_holds_in_every_span,
        units_spent_elsewhere_count_in_the_span,
        a_cost_is_taken_from_the_column,
        what_can_never_fit_fails_and_says_so,
        a_large_job_holds_back_no_other_partition,
        a_large_job_is_not_starved_by_small_ones,
        what_a_shared_window_cannot_grant_later_closes_nobody_now,
    }
    "conformance/rates.rs" rates {
        no_span_holds_more_than_the_rate,
        the_planned_rate_is_used,
        processes_share_one_timeline,
        time_without_work_is_no_credit,
        crashes_give_no_second_burst,
        slots_given_back_are_handed_out_again,
        slots_go_back_newest_first,
        a_missed_slot_is_taken_anew,
        a_keyed_rate_beside_a_shared_one,
        rates_of_their_own_run_side_by_side,
        many_who_share_an_instance_are_let_go_as_it_grants,
    }
    "conformance/concurrency.rs" concurrency {
        leased_calls_take_the_places,
        the_places_of_dead_processes_come_free,
        keyed_places_are_waited_for_apart,
        a_place_that_comes_free_is_news,
        slots_are_near_where_places_are_few,
    }
    "conformance/blocks.rs" blocks {
        nothing_goes_before_the_hint_and_others_do,
        jitter_only_adds,
        one_probe_goes_first_and_then_the_rest,
        a_probe_refused_closes_for_longer,
        a_probe_that_was_not_sent_or_lost_goes_again,
        a_named_limit_closes_for_all_who_share_it,
        a_block_on_a_limit_without_a_key_closes_the_upstream,
        a_thousand_who_wait_send_one_probe_and_then_go,
        three_partitions_refused_close_what_they_share,
        two_partitions_refused_close_only_themselves,
        refusals_under_way_count_once,
        a_longer_hint_of_one_under_way_counts,
        an_earlier_call_that_is_refused_sends_no_second_probe,
        an_earlier_call_that_is_refused_after_the_probe_got_through,
        a_hint_that_comes_beside_a_probe_is_kept_to,
        calls_claimed_before_a_block_are_told,
        overload_without_a_hint_backs_off_both,
        a_hint_too_far_away_is_a_hold,
        a_hint_that_was_clamped_is_a_hold_too,
        an_endless_retry_after_zero_is_bounded,
        of_one_never_answered_few_are_out_at_a_time,
        of_one_that_fell_silent_few_are_out_at_a_time,
        a_first_answer_is_news,
        hints_under_way_are_one_refusal,
    }
    "conformance/remaining.rs" remaining {
        sending_stops_at_what_was_reported,
        a_window_of_its_own_ends_as_it_was_told,
        a_calendars_window_ends_with_the_day,
        our_own_count_still_limits,
        a_figure_that_rises_within_the_window_is_no_news,
        an_answer_of_yesterday_says_nothing_of_today,
        what_was_claimed_beyond_it_stays,
        what_never_left_comes_back,
        another_process_is_held_to_it_and_a_restart_forgets_nothing,
        it_is_said_who_counts_what,
        a_rate_waits_for_the_window_that_was_told,
        an_upstream_that_tells_refuses_nothing,
        the_upstream_is_asked_before_the_first_call,
        a_question_without_an_answer_holds_nobody_for_long,
        a_question_lets_no_job_expire_that_its_answer_may_let_go,
        a_question_is_put_again_in_time_by_one_process,
        questions_that_fail_are_put_more_seldom,
        a_question_opens_what_the_last_one_closed,
        questions_keep_to_the_other_limits,
        where_nothing_else_lets_it_go_the_question_waits,
    }
    "conformance/adapt.rs" adapt {
        the_pace_is_halved_and_comes_back,
        refusals_under_way_cut_it_once,
        a_restart_and_other_processes_keep_to_it,
        only_what_says_too_fast_cuts_it,
        without_a_name_it_is_the_partitions_own_pace,
        what_others_share_is_not_cut_for_one,
        what_costs_the_whole_burst_still_fits,
        a_span_is_made_longer,
        a_stricter_upstream_refuses_few,
    }
    "conformance/holds.rs" holds {
        a_person_holds_a_partition_and_lets_it_go,
        a_person_holds_an_upstream_and_lets_it_go,
        a_resume_is_news,
        the_first_block_holds_the_partition,
        the_second_misconfigured_in_a_row_holds,
        an_answer_between_two_refusals_counts_anew,
        a_poison_job_fails_alone,
        many_under_way_hold_once,
        a_key_that_stays_pending_is_misconfigured,
        a_rate_that_does_not_pass_is_a_quota,
        what_is_held_delays_no_other,
        a_resume_does_not_cut_a_hint_short,
        a_resume_sends_no_second_probe,
        a_refused_token_is_no_refusal_of_its_partition,
        only_what_is_held_for_a_reason_is_let_go,
        what_is_closed_until_an_instant_is_let_go_before,
        what_is_closed_until_an_instant_opens_by_itself,
        what_the_upstream_closed_for_longer_stays_closed,
        a_retry_opens_no_hold,
        a_poison_job_is_tried_anew_by_a_person,
        who_was_not_refused_goes_first_after_a_resume,
    }
    "conformance/pending.rs" pending {
        other_answers_do_not_give_a_pending_key_more_time,
        no_restart_gives_a_pending_key_more_time,
        a_success_ends_a_pending_keys_time,
        a_resume_gives_a_pending_key_its_time_anew,
        a_pending_key_is_asked_once_in_a_while,
    }
    "conformance/settles.rs" settles {
        an_answer_ends_its_job,
        the_attempt_is_kept_with_its_reading,
        fields_are_kept_with_the_job,
        settling_twice_is_the_same_as_once,
        failures_back_off_and_are_used_up,
        a_failure_touches_only_its_job,
        being_told_to_wait_is_never_used_up,
        what_may_not_be_repeated_is_sent_again_only_on_proof,
        many_settle_at_once,
    }
    "conformance/batches.rs" batches {
        jobs_of_a_partition_share_a_call,
        a_call_is_one_call_however_many_it_carries,
        a_batch_never_exceeds_what_is_left,
        for_a_rate_of_items_a_batch_waits_to_be_whole,
        a_batch_that_is_not_full_lingers,
        one_that_is_full_by_bytes_goes_at_once,
        each_item_ends_as_the_answer_says,
        what_was_refused_for_another_item_goes_again,
        a_refusal_that_says_less_is_left_counted_nothing,
        one_refused_as_a_whole_is_halved_until_one_is_found,
        a_number_that_is_too_large_is_left,
        a_lost_batch_gives_all_its_jobs_back,
        one_that_must_not_be_repeated_is_unsure_as_a_whole,
        one_given_back_unsent_takes_nothing,
        a_job_too_late_for_the_slot_leaves_its_batch,
        other_requests_do_not_share_a_call,
        after_a_resume_one_job_goes_before_whole_batches,
        a_resume_that_is_refused_cost_one_job,
        after_a_block_a_whole_batch_probes,
    }
    "conformance/redirects.rs" redirects {
        a_job_that_is_sent_on_goes_to_the_other_address,
        each_hop_is_on_record,
        a_hop_is_no_failure,
        one_past_its_deadline_is_not_sent_on,
        one_that_goes_on_by_get_may_be_repeated,
        one_that_goes_on_as_it_is_may_not,
        a_retry_begins_at_the_jobs_own_address,
        a_lost_hop_goes_to_the_other_address_again,
        a_late_redirect_is_followed_while_nothing_was_sent_since,
        the_way_opens_no_block_and_forgets_no_refusal,
        what_nobody_gets_past_behind_a_redirect_is_held,
    }
    "conformance/leases.rs" leases {
        a_lease_that_ran_out_gives_the_job_back,
        a_lost_lease_is_told_to_who_looks_before_sending,
        what_must_not_be_repeated_is_unsure_once_marked,
        an_unsure_job_is_resolved_by_a_person,
        a_late_answer_counts_while_nothing_was_sent_since,
        a_late_answer_resolves_an_unsure_job,
        a_stale_answer_is_recorded_and_moves_nothing,
        a_stale_answer_after_a_later_one_moves_nothing,
        the_hint_of_a_late_refusal_is_kept_to,
        a_late_answer_to_a_job_that_was_ended_moves_nothing,
        the_living_keep_their_leases,
        a_process_that_leaves_is_gone,
        what_a_dead_process_had_is_news,
        a_late_silence_is_not_told_twice,
    }
    "conformance/deadlines.rs" deadlines {
        it_expires_when_it_has_passed,
        a_sweep_finds_it_too,
        it_expires_at_once_behind_a_shared_limit,
        it_expires_at_once_behind_a_keyed_limit,
        it_expires_at_once_behind_a_block,
        a_hint_within_the_deadline_is_waited_for,
        it_expires_at_once_where_its_back_off_is_longer,
        a_slot_after_the_deadline_is_not_taken,
        a_running_job_is_left_alone,
        it_expires_at_once_whenever_it_comes_behind_a_block,
        it_tells_the_limit_that_kept_it,
        one_that_is_set_to_be_due_too_late_expires,
        one_that_passes_while_it_waits_tells_what_for,
    }
    "conformance/acts.rs" acts {
        a_load_is_counted_cancelled_and_gone,
        retry_leads_back_from_any_end,
        filters_pick_what_they_say,
        an_act_is_bounded_by_its_limit,
        what_runs_or_must_not_is_left_alone,
        due_and_deadline_can_be_set,
        pruning_takes_attempts_and_bodies_along,
        the_last_body_is_told,
    }
    "conformance/clocks.rs" clocks {
        a_step_of_the_wall_clock_gives_no_second_allowance,
        a_step_moves_no_slot_and_no_lease,
        a_step_is_told_once,
        a_step_wakes_who_waits_for_a_calendar,
        a_hint_by_the_wall_clock_is_kept_to_after_a_step,
        store_time_outlives_the_process,
        a_larger_amount_counts_at_once,
        more_places_count_at_once,
        a_limit_that_is_gone_lets_go,
        another_kind_of_rule_begins_anew,
        another_zone_carries_over_what_it_can,
        a_reboot_gives_nothing_a_second_time,
    }
    "conformance/forecasts.rs" forecasts {
        it_comes_as_foretold,
        what_was_spent_and_blocked_counts,
        what_is_held_is_left_out_and_told,
        a_load_ends_with_its_last_job,
        costs_are_taken_from_the_column,
    }
    "conformance/inspect.rs" inspect {
        the_binding_limit_is_named_as_it_changes,
        a_budget_tells_spent_amount_and_reset,
        each_turn_is_told_apart,
        a_block_is_told_with_the_servers_words,
        the_log_is_filtered_and_ordered,
        columns_and_instants_are_told,
        an_attempt_that_is_under_way_is_told,
        only_a_day_that_was_used_up_shows_when_it_begins,
    }
    "conformance/tidy.rs" tidy {
        what_is_idle_is_forgotten_and_what_counts_is_not,
        a_block_that_is_not_over_is_kept,
        results_are_told_in_the_order_in_which_they_ended,
        pruning_takes_what_is_too_old_and_the_room_is_given_back,
        a_result_has_the_body_of_its_last_attempt_alone,
    }
    "conformance/callers.rs" callers {
        only_its_owner_takes_it,
        they_take_turns_with_the_queue_for_a_place,
        they_take_turns_for_a_keyed_place,
        neither_starves_under_a_rate,
        who_lets_its_turn_pass_is_not_waited_for,
        a_queue_that_nobody_sends_is_not_waited_for,
        what_is_plenty_is_waited_for_by_nobody,
        it_ends_with_its_owner,
        who_gives_up_gets_no_call,
        a_permit_ends_with_its_call,
        the_reserve_is_for_who_may_use_it,
        it_takes_the_units_that_it_says,
        what_is_held_is_held_for_them_too,
        a_refusal_of_one_line_closes_all,
        no_run_waits_for_them,
        nobody_sends_it_again,
        one_bad_call_does_not_hold_the_queue,
        its_deadline_is_told_at_once,
    }
    "conformance/model.rs" model {
        any_life_keeps_the_promises,
    }
}
