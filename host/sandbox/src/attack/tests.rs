//! Every attack, each in a process of its own: what it leaves behind is counted there, and nothing
//! of other tests is.

use std::process::Command;

use super::*;
use crate::testing::{guests, sandbox};

mod judged;
mod mixed;

/// Runs a test of this crate, and nothing else, in another process.
fn alone(test: &str, attack: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(WHICH, attack)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

const WHICH: &str = "CHECKREIN_ATTACK";

/// The attack that the environment names, or all of them.
#[tokio::test]
#[ignore = "each attack is a test of its own, which runs this in a process of its own"]
#[allow(clippy::print_stderr, reason = "a table is read by a person")]
async fn in_this_process() {
    let which = std::env::var(WHICH).ok();
    let (sandbox, _folder) = sandbox();
    let runner = Runner::start(&sandbox, &Limits::default()).await.unwrap();
    let mut failed = Vec::new();
    let asked_for = |attack: &&Attack| which.as_ref().is_none_or(|which| attack.slug() == *which);
    let corpus = corpus();
    for attack in corpus.iter().filter(asked_for).filter(|attack| !attack.needs_a_worker()) {
        let report = runner.run(attack).await;
        eprintln!("{:70} {:40} {:6} ms {:?}", attack.slug(), report.wall, report.stopped_ms, report.leaked);
        assert!(report.measured);
        if !report.passed() {
            failed.push(report);
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

macro_rules! attacks {
    ($($name:ident)*) => {
        $(#[test] fn $name() { alone("attack::tests::in_this_process", &stringify!($name).replace('_', "-")); })*

        #[test]
        fn every_attack_is_a_test() {
            let tests: Vec<String> = [$(stringify!($name)),*].iter().map(|name| name.replace('_', "-")).collect();
            // Those that need a worker are tried where there is a program to start: `tests/it/loading.rs`.
            let here = |attack: &Attack| (!attack.needs_a_worker()).then(|| attack.slug());
            let attacks: Vec<String> = corpus().iter().filter_map(here).collect();
            let missing: Vec<_> = attacks.iter().filter(|attack| !tests.contains(attack)).collect();
            assert!(missing.is_empty(), "no test: {missing:#?}");
            let unknown: Vec<_> = tests.iter().filter(|test| !attacks.contains(test)).collect();
            assert!(unknown.is_empty(), "no attack: {unknown:#?}");
            assert_eq!(attacks.len(), tests.len(), "two of one name");
        }
    };
}

#[test]
fn texts_are_those_of_the_corpus() {
    let folder = guests().join("attacks");
    let known: Vec<_> =
        corpus().iter().filter_map(|one| Some((format!("{}.wat", one.slug()), one.text()?))).collect();
    if std::env::var_os("CHECKREIN_ASSEMBLE").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        for (file, text) in &known {
            std::fs::write(folder.join(file), format!("{text}\n")).unwrap();
        }
    }
    for (file, text) in &known {
        let there = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        assert!(there.trim_end() == text.trim_end(), "{file}: write it again, with CHECKREIN_ASSEMBLE=1");
    }
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.iter().any(|(file, _)| *file == name), "{name}: no attack has this text; remove it");
    }
}

attacks! {
    time_a_loop_in_the_executor
    time_a_loop_in_the_trigger
    time_a_loop_in_verification
    time_a_loop_in_recovery
    time_a_loop_in_a_start_function
    time_a_loop_in_realloc
    time_a_loop_in_post_return
    time_a_loop_in_a_destructor
    time_all_of_the_memory_filled_in_a_loop
    time_a_table_filled_in_a_loop
    time_computing_past_its_fuel
    time_recursion_without_end
    time_an_hour_of_sleep_through_the_clock
    time_an_hour_of_sleep_through_poll
    time_sleep_for_ever
    time_an_hour_of_sleep_in_short_naps
    time_a_host_call_that_never_returns
    time_ten_million_cheap_calls_of_the_host
    time_ten_million_cheap_calls_of_wasi
    time_a_hundred_waits_of_20_ms
    time_a_resource_left_behind_with_a_loop_as_destructor
    memory_growing_to_4_gib
    memory_growing_to_4_gib_at_once
    memory_a_memory_of_4_gib_from_the_start
    memory_memories_that_are_too_much_together
    memory_many_memories
    memory_many_tables
    memory_a_table_of_a_million
    memory_a_table_that_grows_for_ever
    memory_many_instances
    memory_a_handle_ten_million_times
    memory_a_gigabyte_of_random_numbers_at_once
    memory_a_text_of_4_gib_as_a_result
    memory_a_list_of_4_gib_as_a_result
    memory_a_list_whose_length_overflows
    memory_a_list_of_the_largest_length
    memory_a_result_of_60_mib
    memory_one_text_in_four_thousand_facts
    memory_a_million_draft_facts
    memory_two_thousand_draft_facts
    memory_a_content_of_2_mib
    memory_a_realloc_that_points_outside
    memory_a_gigabyte_of_log_lines
    memory_a_gigabyte_of_standard_output
    memory_refusals_of_two_megabytes_each
    network_a_request_without_a_grant
    network_a_request_from_the_trigger
    network_a_request_from_the_recovery
    network_other_spellings_of_what_is_granted
    network_addresses_in_other_spellings
    network_methods_that_are_not_granted
    loading_a_function_of_more_than_a_megabyte
    loading_an_empty_file
    loading_a_text
    loading_a_core_module
    loading_a_component_cut_in_half
    loading_a_component_of_65_mib
    loading_no_manifest
    loading_a_manifest_that_is_not_toml
    loading_a_manifest_that_asks_for_the_whole_network
    loading_a_manifest_that_asks_for_a_limit_that_is_none
    loading_a_version_of_the_interface_to_come
    loading_an_import_that_nobody_has
    loading_a_hundred_memories
    loading_a_hundred_tables
    loading_a_hundred_instances
    loading_a_loop_in_the_start_function
    loading_a_loop_in_the_trigger
    loading_a_loop_in_the_schema
    loading_a_verification_that_accepts_everything
    lies_content_that_is_not_json
    lies_content_10000_levels_deep
    lies_content_with_a_number_that_no_double_holds
    lies_an_artifact_outside_of_work
    lies_an_artifact_above_work
    lies_an_artifact_that_is_not_there
    lies_one_artifact_twice
    lies_a_fact_whose_subject_is_a_path
    lies_a_fact_whose_subject_is_a_message
    lies_a_fact_whose_content_is_not_json
    lies_a_score_of_255
    lies_arguments_that_are_no_object
    lies_a_verdict_without_checks
    lies_a_finding_that_expects_what_it_found
    lies_a_finding_that_expects_nothing
    lies_a_remedy_that_names_a_path
    lies_leaving_with_success
    files_the_folder_above
    files_absolute_paths
    files_the_folder_of_another_call
    files_a_hard_link
    files_symbolic_links
    files_filling_the_disk_by_size
    files_filling_the_disk_by_count
    files_filling_the_disk_by_a_sparse_file_of_1_tib
    files_a_name_that_is_not_utf_8
    network_a_request_through_wasi_http
    network_a_raw_socket
    network_a_name_looked_up
    secrets_reading_the_environment_and_arguments
}
