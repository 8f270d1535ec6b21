//! Trace scripts that hold on every store: one small script for each sentence of the semantics.
//!
//! A new one is a file in `traces/` (or `traces/durable/`, if it closes the store) and one line of the list below.

use super::{Arc, Harness, Store};
use crate::script::{Player, Verb, Verdict, parse};

/// The scripts of a folder, by name, with their text.
macro_rules! traces {
    ($folder:literal, [$($name:literal),* $(,)?]) => {
        &[$(($name, include_str!(concat!($folder, $name, ".trace")))),*]
    };
}

/// Every script plays as it says.
pub fn every_trace_holds<H: Harness>(mut harness: H) {
    // One store for all of them, each in a crawl of its own: opening one may be slow.
    let store = harness.open();
    let played = TRACES.iter().map(|(name, text)| play(&mut harness, Arc::clone(&store), name, text));
    all_hold(played.collect());
}

/// Every script that closes the store plays as it says, on stores that keep something.
pub fn every_durable_trace_holds<H: Harness>(mut harness: H) {
    drop(harness.open());
    if harness.reopen(false).is_none() {
        eprintln!("skipped: this store keeps nothing");
        return;
    }
    let played = DURABLE.iter().map(|(name, text)| {
        let store = harness.open();
        play(&mut harness, store, name, text)
    });
    all_hold(played.collect());
}

/// Panics with all scripts that differ.
fn all_hold(played: Vec<Result<(), String>>) {
    let scripts = played.len();
    let failed: Vec<_> = played.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{} of {scripts} scripts differ\n{}", failed.len(), failed.join("\n"));
}

/// Plays one script. If it differs, answers its lines with what came back.
fn play<H: Harness>(harness: &mut H, store: Arc<dyn Store>, name: &str, text: &str) -> Result<(), String> {
    let script = parse(text).map_err(|error| format!("{name}: {error}"))?;
    let mut lines = format!("{name}:\n");
    let mut different = false;
    let started = harness.block_on(Player::start(store, name, &script.settings));
    let mut player = started.map_err(|error| format!("{name}: {error}"))?;
    for step in &script.steps {
        let answer = match step.verb {
            Verb::Restart | Verb::Crash => {
                let left = player.leave();
                let store = harness.reopen(step.verb == Verb::Crash);
                let store = store.ok_or_else(|| format!("{name}: the store keeps nothing any more"))?;
                player = harness.block_on(left.resume(store)).map_err(|error| format!("{name}: {error}"))?;
                "ok".to_owned()
            }
            ref verb => harness
                .block_on(player.play(step.at, verb))
                .map_err(|error| format!("{lines}  {step}\n  failed: {error}"))?,
        };
        different |= step.judge(&answer) == Verdict::Different;
        lines += &format!("  {}\n", step.describe(&answer));
    }
    if different { Err(lines) } else { Ok(()) }
}

#[rustfmt::skip]
const TRACES: &[(&str, &str)] = traces!("traces/", [
    "admit_a_via_is_not_admitted",
    "admit_blocked_admission_refuses_new_urls",
    "admit_dont_filter_improve_means_its_newest_entry",
    "admit_dont_filter_makes_an_entry_of_its_own",
    "admit_dont_filter_url_counts_as_seen",
    "admit_dont_filter_url_means_its_newest_entry",
    "admit_improve_moves_behind_what_waits_in_the_better_class",
    "admit_improve_of_a_url_not_pending_is_known",
    "admit_improve_of_an_unknown_url_is_added",
    "admit_improve_to_a_worse_class_is_known",
    "admit_key_of_the_caller_names_the_queue",
    "admit_known_url_changes_nothing",
    "admit_malformed_urls_are_refused",
    "admit_max_depth_refuses_only_what_is_deeper",
    "admit_max_queue_length_refuses_until_there_is_room",
    "admit_next_visit_is_as_if_admitted_then",
    "admit_next_visit_makes_a_url_pending_from_then_on",
    "admit_next_visit_revives_a_done_url",
    "admit_restating_ends_a_lease",
    "admit_statement_done_about_an_unknown_url_is_restated",
    "admit_statement_done_takes_a_pending_url_out",
    "admit_terms_are_taken_on_by_the_queue",
    "admit_terms_never_win_over_an_operator",
    "admit_terms_of_a_known_candidate_are_ignored",
    "admit_the_port_belongs_to_the_key_unless_it_is_the_schemes_own",
    "budget_a_dear_url_may_overdraw_the_balance",
    "budget_a_lease_is_charged_when_it_is_granted",
    "budget_a_lone_queue_is_activated_again",
    "budget_a_queue_turns_inactive_only_when_it_would_be_ready",
    "budget_an_empty_balance_sends_the_queue_behind_the_inactive_ones",
    "budget_below_what_is_spent_retires_at_the_next_turn",
    "budget_cost_given_wins_over_the_policy",
    "budget_cost_is_fixed_at_admission",
    "budget_cost_zero_is_free",
    "budget_disregard_refunds_spent_and_balance",
    "budget_error_penalty_counts_towards_the_budget",
    "budget_error_penalty_is_added_by_retry_and_dead",
    "budget_is_never_exceeded_by_a_grant",
    "budget_no_replenishment_of_the_crawl_retires_all_queues",
    "budget_no_replenishment_retires_a_queue",
    "budget_period_starts_anew_from_the_crawls_start",
    "budget_raised_for_the_crawl_reconsiders_all_queues",
    "budget_reconsidered_in_vain_retires_again",
    "budget_refund_keeps_the_session_going",
    "budget_refund_reconsiders_a_retired_queue",
    "budget_release_refunds_spent_and_balance",
    "budget_retires_at_a_claim_and_the_claim_goes_on",
    "budget_retry_and_new_delivery_are_charged_again",
    "budget_set_by_an_operator_is_not_the_crawls",
    "budget_terms_of_a_candidate_reconsider_a_retired_queue",
    "budget_unit_costs_one_whatever_the_url",
    "budget_wag_looks_at_query_and_via",
    "claim_except_passes_over_the_queues_named",
    "claim_keys_asks_only_the_queues_named",
    "claim_lease_duration_wins_over_the_setting",
    "claim_never_breaks_the_concurrency_of_a_queue",
    "claim_of_many_is_as_many_claims_of_one",
    "claim_per_queue_bounds_what_one_queue_supplies",
    "claim_queues_bounds_how_many_queues_supply",
    "claim_what_is_both_named_and_excluded_is_excluded",
    "claim_zero_grants_nothing_and_charges_nothing",
    "crawl_delay_changed_counts_from_the_next_settlement",
    "crawl_finish_is_final",
    "crawl_finish_lets_settlements_count",
    "crawl_is_exhausted_while_nothing_is_left",
    "crawl_is_not_kept_from_its_end_by_a_retired_queue",
    "crawl_limit_can_be_set_while_it_runs",
    "crawl_max_bytes_finishes_when_reached",
    "crawl_max_time_finishes_when_reached",
    "crawl_max_urls_finishes_when_reached",
    "crawl_max_urls_lets_the_leases_out_be_settled",
    "crawl_pause_at_finish_pauses_an_exhausted_crawl",
    "crawl_pause_does_not_stop_the_clock",
    "crawl_pause_holds_for_claims_that_name_their_queues",
    "crawl_pause_holds_until_resume",
    "crawl_pause_lets_admissions_go_on",
    "crawl_setting_does_not_win_over_a_term",
    "crawl_settings_are_in_force_for_the_very_next_claim",
    "crawl_stays_running_when_exhausted_without_pause_at_finish",
    "group_is_a_term_that_can_be_steered",
    "group_members_do_not_share_concurrency",
    "group_members_share_a_pace",
    "group_of_another_name_is_not_concerned",
    "group_starts_no_wait_with_a_release",
    "group_wait_does_not_change_the_age_of_its_members",
    "group_wait_never_moves_back",
    "lease_dead_worker_costs_one_lease_not_the_url",
    "lease_expired_too_often_makes_a_dead_letter",
    "lease_expiry_happens_before_any_verb",
    "lease_expiry_leaves_the_charge",
    "lease_has_expired_at_its_deadline_noticed_or_not",
    "lease_max_deliveries_is_five_by_default",
    "lease_max_deliveries_of_one_gives_one_chance",
    "lease_may_be_settled_until_its_last_moment",
    "lease_only_one_is_live_for_an_entry",
    "lease_release_does_not_clear_the_count_of_expiries",
    "lease_renewal_does_not_clear_the_count_of_expiries",
    "lease_renewal_is_no_settlement",
    "lease_renewal_may_bring_the_deadline_nearer",
    "lease_renewal_of_an_expired_lease_is_stale",
    "lease_renewal_sets_the_deadline_from_now",
    "lease_replay_clears_the_count_of_expiries",
    "lease_retry_clears_the_count_of_expiries",
    "must_example_script",
    "must_lease_expiry",
    "must_politeness",
    "must_precedence",
    "must_rotation",
    "must_site_first",
    "must_total_budget",
    "must_wag",
    "order_a_due_retry_stays_in_its_class",
    "order_a_next_visit_is_as_if_admitted_when_due",
    "order_class_by_cost_is_cheaper_first",
    "order_class_by_depth_first_goes_down",
    "order_class_by_depth_is_breadth_first",
    "order_class_by_score_is_higher_first",
    "order_class_comes_first_and_lower_is_better",
    "order_date_is_by_scheduled_time_then_text",
    "order_date_keeps_an_improved_url_at_its_time",
    "order_date_schedules_a_url_without_a_time_at_its_admission",
    "order_due_retries_go_first_by_due_time",
    "order_expired_leases_go_first_by_deadline",
    "order_fifo_is_the_default",
    "order_improve_puts_even_a_due_retry_last",
    "order_lifo_also_serves_a_due_retry_first",
    "order_lifo_puts_an_improved_url_last",
    "order_lifo_release_takes_the_old_place",
    "order_lifo_serves_the_newest_first",
    "order_priority_is_mapped_to_a_class",
    "order_release_of_a_due_retry_is_first_again",
    "order_retries_and_expired_leases_stand_in_one_line",
    "order_retries_due_together_keep_the_order_of_admission",
    "order_visits_due_together_keep_the_order_of_their_settlements",
    "pace_any_settlement_with_a_delay_starts_a_wait",
    "pace_claim_counts_from_the_grant",
    "pace_claim_may_be_over_before_the_settlement",
    "pace_concurrency_lowered_waits_for_the_leases_out",
    "pace_default_delay_is_one_second",
    "pace_next_fetch_time_never_moves_back",
    "pace_queues_own_delay_wins_over_the_crawls",
    "pace_release_disregard_and_expiry_start_no_wait",
    "pace_retry_and_dead_wait_too",
    "pace_settlements_own_delay_wins",
    "pace_steered_delay_counts_from_the_next_settlement",
    "queue_activation_keeps_its_age",
    "queue_better_precedence_is_served_before_ready_ones",
    "queue_blocked_wins_over_empty",
    "queue_busy_wins_over_snoozed",
    "queue_counts_tell_of_urls_now_in_that_state",
    "queue_earlier_one_comes_first",
    "queue_empty_wins_over_snoozed",
    "queue_equal_ages_go_in_the_order_of_the_commands",
    "queue_is_never_starved_by_another_of_its_precedence",
    "queue_new_one_starts_active_without_hold_queues",
    "queue_of_several_hindrances_ending_together_the_later_command_counts",
    "queue_ready_is_preferred_to_an_older_inactive_one",
    "queue_retired_wins_over_blocked",
    "queue_running_empty_keeps_terms_spent_and_next_fetch_time",
    "queue_running_empty_starts_a_new_session",
    "queue_walks_through_its_states",
    "queue_what_is_due_happens_in_the_order_of_its_times",
    "queue_with_everything_due_later_is_snoozed",
    "queue_with_leases_and_nothing_pending_is_busy",
    "queue_worse_one_keeps_its_balance_until_its_turn_comes_back",
    "settle_a_done_parent_never_lacks_its_links",
    "settle_a_visit_leaves_a_page_record",
    "settle_an_old_lease_number_changes_nothing",
    "settle_any_outcome_may_carry_links",
    "settle_by_whoever_holds_the_lease_after_a_pause",
    "settle_dead_makes_a_dead_letter",
    "settle_disregard_is_terminal",
    "settle_done_with_a_next_visit_is_pending_again_then",
    "settle_every_outcome_has_its_answer",
    "settle_links_are_admitted_in_their_order",
    "settle_links_come_before_the_queue_finds_its_state",
    "settle_links_seen_before_change_nothing",
    "settle_release_takes_the_url_back_to_its_old_place",
    "settle_retry_comes_back_at_its_time",
    "settle_retry_later_lets_others_pass",
    "settle_twice_is_stale_and_nothing_of_it_happens",
    "settle_without_a_lease_number_means_the_newest_lease",
    "steer_block_holds_until_its_time",
    "steer_block_leaves_leases_alone",
    "steer_concurrency_is_in_force_for_the_very_next_claim",
    "steer_delete_forgets_all_urls_and_makes_leases_stale",
    "steer_delete_keeps_the_next_fetch_time_in_force",
    "steer_makes_an_unknown_queue_known",
    "steer_precedence_keeps_the_age_of_a_queue",
    "steer_present_value_changes_nothing",
    "steer_purge_forgets_what_is_pending",
    "steer_purge_forgotten_urls_can_come_again",
    "steer_reinstate_ends_a_retirement_by_hand",
    "steer_retire_ends_the_session",
    "steer_retire_keeps_the_urls_and_accepts_new_ones",
    "steer_retire_lets_a_lease_be_settled",
    "steer_several_terms_in_one_command",
    "steer_unblock_is_in_force_for_the_very_next_claim",
    "url_forgotten_is_unknown_and_new_again",
    "url_forgotten_never_comes_for_its_next_visit",
    "url_forgotten_while_leased_ends_the_lease",
    "url_forgotten_while_pending_is_not_handed_out",
    "url_forgotten_with_dont_filter_loses_all_entries",
    "url_has_one_of_six_states",
    "url_next_visit_replaces_an_earlier_one",
    "url_replayed_is_as_if_admitted_now",
    "url_replayed_with_dont_filter_means_all_entries",
]);

#[rustfmt::skip]
const DURABLE: &[(&str, &str)] = traces!("traces/durable/", [
    "admit_answered_urls_survive_a_crash",
    "budget_spent_and_balance_survive_a_restart",
    "crawl_pause_survives_a_restart",
    "lease_expiries_are_counted_across_restarts",
    "lease_survives_a_restart_and_its_number_never_repeats",
    "pace_survives_a_restart",
    "settle_done_with_links_survives_a_crash",
    "steer_is_durable",
]);

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn no_trace_is_forgotten_in_the_list() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/suite/traces");
        for (folder, listed) in [(folder.clone(), TRACES), (folder.join("durable"), DURABLE)] {
            let mut files: Vec<_> = std::fs::read_dir(&folder)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|ending| ending == "trace"))
                .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
                .collect();
            files.sort();
            let listed: Vec<_> = listed.iter().map(|(name, _)| *name).collect();
            assert_eq!(files, listed, "{}", folder.display());
        }
    }

    #[test]
    fn only_durable_traces_close_the_store() {
        for (traces, closes) in [(TRACES, false), (DURABLE, true)] {
            for (name, text) in traces {
                let steps = parse(text).unwrap_or_else(|error| panic!("{name}: {error}")).steps;
                let does = steps.iter().any(|step| matches!(step.verb, Verb::Restart | Verb::Crash));
                assert_eq!(does, closes, "{name}");
            }
        }
    }
}
