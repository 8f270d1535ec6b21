//! The suite: what every store must pass, whoever wrote it and wherever it keeps things.
//!
//! A store's crate says how it is opened, in a [`Harness`], and calls [`store_suite!`](crate::store_suite). That
//! gives one `#[test]` for each case, named by its sentence, in a module for each topic.
//!
//! A case is a function of its topic's file and one line of the list below; a test compares the two. What is absent:
//! anything that only some stores promise, save durability, which stores that keep nothing skip.
//!
//! ```
//! use std::sync::Arc;
//! use trapline_frontier::{MemoryStore, Store, suite::Harness};
//!
//! struct Memory;
//!
//! impl Harness for Memory {
//!     fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
//!         pollster::block_on(future)
//!     }
//!     fn open(&mut self) -> Arc<dyn Store> {
//!         Arc::new(MemoryStore::new())
//!     }
//!     fn reopen(&mut self, _crash: bool) -> Option<Arc<dyn Store>> {
//!         None
//!     }
//! }
//!
//! trapline_frontier::store_suite!(Memory);
//! # fn main() {}
//! ```

pub mod admission;
pub mod bulk;
pub mod claiming;
pub mod counting;
pub mod crawls;
pub mod durability;
pub mod handles;
pub mod hostile;
pub mod leases;
pub mod pages;
pub mod records;
pub mod scanning;
pub mod settling;
pub mod steering;
pub mod time;
pub mod traces;

mod trial;
mod workload;

use std::sync::Arc;

use crate::store::Store;

/// How the suite opens a store. Each case gets a harness of its own, and may call it from several threads.
///
/// A harness may keep a store open for itself, beside the handle it gives away: then dropping the handles does not
/// close the store, and [`reopen`](Harness::reopen) decides how it ends.
pub trait Harness: Sync {
    /// Waits for a future, on whatever runtime the store needs. Never called inside itself, but from several
    /// threads at once.
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T;

    /// Opens a store, fresh and empty. Opened twice, it gives two stores that know nothing of each other.
    ///
    /// # Panics
    /// If it cannot: a case without a store has failed.
    fn open(&mut self) -> Arc<dyn Store>;

    /// Opens the latest store again, after closing it in good order, or as if its process had been killed. The
    /// suite has dropped all its handles by then. None: this store keeps nothing.
    fn reopen(&mut self, crash: bool) -> Option<Arc<dyn Store>>;
}

/// The tests that every store must pass, one `#[test]` each: `store_suite!(an expression that makes a harness)`.
#[macro_export]
macro_rules! store_suite {
    ($harness:expr) => {
        $crate::store_suite_cases! { [$crate::store_suite_tests] ($harness) }
    };
}

/// The list of all cases: hands it to the macro that `$then` names, after `$given`. Attributes such as
/// `#[ignore = "reason"]` go with the test.
#[doc(hidden)]
#[macro_export]
macro_rules! store_suite_cases {
    ([$($then:tt)*] $given:tt) => {
        $($then)*! {
            $given
            admission {
                everything_of_a_request_comes_back,
                nothing_is_added_to_a_plain_request,
                own_fingerprint_decides_identity,
                method_and_body_are_part_of_the_identity,
                a_known_url_keeps_its_first_request,
                a_batch_is_answered_in_its_order,
                what_is_not_a_url_is_refused_in_its_place,
                an_empty_batch_changes_nothing,
                depth_is_limited_by_crawl_and_request,
                a_refused_url_stays_unknown,
                dont_filter_makes_the_url_pending_once_more,
                a_statement_ends_a_lease,
                a_class_of_its_own_wins_over_the_policy,
                a_cost_of_its_own_is_charged,
                a_slot_is_a_queue_of_the_callers_own,
                terms_are_taken_on_by_the_queue,
            }
            bulk {
                forgetting_forgets_whatever_its_state,
                forgetting_goes_by_queue_and_pattern,
                forgetting_forgets_every_entry_of_a_url,
                a_revisit_fetches_what_is_done_again,
                a_revisit_goes_by_pattern_and_not_after_the_end,
                pages_are_forgotten_by_age,
                a_revisit_of_many_goes_on_in_the_background,
                forgetting_many_can_be_cancelled,
                what_came_later_is_not_forgotten,
                what_is_visited_again_meanwhile_is_forgotten,
            }
            claiming {
                a_lease_names_crawl_queue_and_deadline,
                queues_bounds_how_many_supply,
                per_queue_bounds_what_each_supplies,
                bounds_hold_together,
                min_queues_spreads_a_claim,
                min_queues_fills_up_from_what_there_is,
                keys_asks_only_the_queues_named,
                except_passes_over_the_queues_named,
                partitions_asks_only_those,
                partitions_take_turns,
                next_tells_when_more_will_be,
                polling_when_told_to_gets_everything,
                next_is_nothing_when_nothing_is_foreseen,
                a_claim_of_many_equals_many_claims_of_one,
                zero_asks_for_nothing,
                more_than_there_is_gets_all_there_is,
                a_claim_may_ask_for_a_longer_lease,
                a_claim_never_breaks_concurrency,
                a_claim_tells_when_the_crawl_is_exhausted,
            }
            counting {
                counts_are_what_lists_have,
                fetches_bytes_and_grants_are_counted,
                an_empty_crawl_counts_nothing,
            }
            crawls {
                crawls_never_see_each_other,
                names_are_taken_as_they_are,
                a_store_lists_its_crawls,
                attaching_makes_nothing,
                a_claim_from_any_crawl_takes_turns,
                a_claim_from_any_crawl_keeps_its_bounds,
                a_claim_from_any_crawl_passes_over_paused_ones,
                a_pause_holds_until_it_is_resumed,
                finish_is_final,
                a_limit_reached_finishes_the_crawl,
                a_full_queue_refuses_until_there_is_room,
                an_exhausted_crawl_may_pause_itself,
                a_deleted_crawl_is_gone,
                an_unknown_crawl_is_an_error_with_a_sentence,
                creating_twice_changes_nothing,
                settings_change_all_or_none,
                settings_are_in_force_at_once,
                partitions_must_make_sense,
            }
            durability {
                pending_urls_survive_in_their_order,
                turns_survive,
                leases_survive_with_number_and_deadline,
                waits_survive,
                terms_survive_with_who_set_them,
                budgets_survive,
                page_records_notes_and_dead_letters_survive,
                counts_and_reasons_survive,
                the_crawl_survives_with_its_settings,
                the_end_of_a_crawl_survives,
                time_does_not_go_back,
                jobs_go_on,
                jobs_over_many_urls_go_on,
                what_was_recovered_is_told,
                everything_survives_a_workload,
            }
            handles {
                a_url_is_added_to_exactly_one,
                a_url_is_handed_out_to_exactly_one,
                concurrency_holds_across_handles,
                a_lease_is_settled_by_exactly_one,
                a_link_is_added_by_exactly_one_parent,
                a_crawl_is_created_by_exactly_one,
            }
            hostile {
                strange_text_in_a_request_comes_back,
                strange_text_names_queues_and_groups,
                strange_text_names_crawls,
                strange_text_in_notes_and_visits_comes_back,
                what_is_too_long_is_refused,
                a_large_request_comes_back,
                the_end_of_time_does_not_wrap_around,
                settings_may_be_huge,
                terms_and_costs_may_be_huge,
                nonsense_is_harmless,
                a_page_may_link_to_itself_a_thousand_times,
                a_page_may_restate_itself,
                many_small_things_are_kept,
            }
            leases {
                numbers_never_repeat,
                numbers_outlive_their_crawl,
                a_lease_expires_at_its_deadline,
                deliveries_are_counted,
                a_retry_clears_the_count_of_deliveries,
                retries_in_a_row_are_counted,
                a_renewal_moves_the_deadline,
                a_lease_belongs_to_its_crawl,
                any_handle_may_settle,
                a_url_has_one_live_lease,
                forgetting_a_url_ends_its_lease,
                a_lease_for_no_time_has_expired,
            }
            pages {
                validators_come_with_the_next_lease,
                visits_and_changes_are_counted,
                only_a_visit_changes_the_page_record,
                a_next_visit_comes_when_it_is_due,
                a_page_record_is_lost_only_with_its_url,
                a_note_is_written_replaced_and_removed,
                a_note_expires_at_its_time,
                notes_are_found_by_prefix,
                a_settlement_writes_notes_in_order,
            }
            records {
                records_restored_elsewhere_are_the_same,
                a_restored_crawl_goes_on_alike,
                what_is_known_is_not_restored,
                entries_of_one_url_are_all_restored,
                a_leased_url_is_restored_as_pending,
                a_queue_in_use_is_not_restored,
                a_restored_crawl_survives,
                restoring_nonsense_is_refused_or_harmless,
            }
            scanning {
                queues_are_listed_by_state_with_reasons,
                reasons_name_a_crawl_that_does_not_run,
                named_queues_leave_out_the_unknown,
                urls_are_listed_by_key_pattern_and_state,
                an_exact_list_is_answered_in_its_order,
                what_is_due_later_says_when,
                live_leases_are_listed,
                cursors_walk_over_everything_once,
                the_crawl_describes_itself,
                a_cursor_past_the_end_finds_nothing,
                a_page_has_room_for_one_row_at_least,
            }
            settling {
                every_outcome_has_its_answer,
                links_are_answered_in_their_order,
                a_batch_settles_in_its_order,
                settling_twice_happens_once,
                a_lease_never_granted_is_stale,
                links_and_notes_come_with_the_settlement,
                any_outcome_may_carry_links_and_notes,
                a_settlements_own_delay_wins,
                release_and_disregard_give_the_cost_back,
                a_refund_is_what_the_lease_cost,
                a_url_that_ended_says_why,
                a_retry_in_the_past_is_due_at_once,
            }
            steering {
                every_term_is_in_force_and_reported,
                an_operators_terms_win_over_later_candidates,
                default_terms_are_the_crawls_again,
                a_block_holds_until_its_time,
                a_retired_queue_waits_to_be_reinstated,
                a_raised_budget_is_in_force_at_once,
                an_unknown_queue_can_be_steered_ahead,
                a_purge_forgets_what_is_pending,
                a_purge_by_pattern_forgets_what_matches,
                a_purge_of_many_goes_on_in_the_background,
                a_purge_of_the_crawl_forgets_what_matches_everywhere,
                a_purge_of_everything_holds_at_once,
                a_purge_leaves_alone_what_came_later,
                a_purge_leaves_alone_what_was_scheduled_later,
                a_cancelled_job_stops_where_it_is,
                cancelling_no_job_concerns_nothing,
                a_deleted_queue_keeps_terms_and_pace,
                dead_letters_are_listed_with_their_reason,
                dead_letters_are_replayed_by_url_queue_and_all,
                dead_letters_are_purged_by_url_queue_and_all,
                a_replay_of_many_goes_on_in_the_background,
                forget_says_whether_it_was_known,
                a_url_is_moved_to_a_class,
                steering_concerns_its_queue_only,
                a_url_is_steered_by_its_identity,
            }
            time {
                an_earlier_now_counts_as_the_latest_seen,
                reading_moves_time_on,
                every_verb_lets_happen_what_is_due,
                crawls_do_not_share_their_time,
                a_long_silence_is_caught_up_in_order,
            }
            traces {
                every_trace_holds,
                every_durable_trace_holds,
            }
        }
    };
}

/// One module a topic, one test a case.
#[doc(hidden)]
#[macro_export]
macro_rules! store_suite_tests {
    (($harness:expr) $($topic:ident { $($(#[$attribute:meta])* $case:ident,)* })*) => {
        $(
            mod $topic {
                #[allow(unused_imports, reason = "the harness may be named by a path")]
                use super::*;
                $(
                    #[test]
                    $(#[$attribute])*
                    fn $case() {
                        $crate::suite::$topic::$case($harness);
                    }
                )*
            }
        )*
    };
}

/// The same list as values.
#[cfg(test)]
macro_rules! store_suite_names {
    (() $($topic:ident { $($(#[$attribute:meta])* $case:ident,)* })*) => {
        [$((stringify!($topic), vec![$(stringify!($case)),*])),*]
    };
}
#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn no_case_is_forgotten_in_the_list() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/suite");
        let listed = store_suite_cases! { [store_suite_names] () };
        let mut topics = BTreeSet::new();
        for (topic, cases) in &listed {
            topics.insert((*topic).to_owned());
            let file = std::fs::read_to_string(folder.join(topic).with_extension("rs")).unwrap();
            let written: Vec<_> = file
                .lines()
                .filter_map(|line| line.strip_prefix("pub fn ")?.split_once("<H: Harness>("))
                .map(|(name, _)| name)
                .collect();
            assert_eq!(
                &written, cases,
                "the functions of {topic}.rs and its list, which go in the same order"
            );
        }
        let head = include_str!("mod.rs");
        let modules = head.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
        assert_eq!(topics, modules.map(str::to_owned).collect());
    }
}
