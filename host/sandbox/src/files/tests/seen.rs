//! Nothing that differs between machines, moments or runs is seen.

use super::*;

#[tokio::test]
async fn two_runs_see_the_same_and_nothing_of_the_machine() {
    let mut seen = Vec::new();
    for names in [["x", "m", "given", "z"], ["z", "given", "m", "x"]] {
        let world = World::new();
        std::fs::remove_file(world.path("in/given")).unwrap();
        for name in names {
            std::fs::write(world.path("in").join(name), "given").unwrap();
        }
        // A second name shows in the count of the real links.
        std::fs::hard_link(world.path("in/given"), world.path("second")).unwrap();
        let ran = world.run(world.setting(&guests::looks_at_the_machine())).await;
        assert!(ran.record.is_empty(), "{:?}", ran.record);
        seen.push(notes(&ran));
    }
    let notes = &seen[0];
    assert_eq!(notes[..5], ["ok"; 5]);
    // Size, links, and no times: two files, a folder, an input with two names.
    assert_eq!(notes[5..9], ["ok", "0", "1", "0"]);
    assert_eq!(notes[9..13], ["ok", "100", "1", "0"]);
    assert_eq!(notes[13..17], ["ok", "0", "1", "0"]);
    assert_eq!(notes[17..21], ["ok", "5", "1", "0"]);
    // One place has one hash, whatever the way to it; another has another.
    assert_eq!(notes[21..24], notes[24..27]);
    assert_ne!(notes[21..24], notes[27..30]);
    assert_eq!(notes[30], "20", "no-entry");
    let tail = &notes[notes.len() - 11..];
    assert_eq!(tail, ["ok", "a", "b", "c", "ok", "ok", "given", "m", "x", "z", "ok"]);
    assert_eq!(seen[0], seen[1]);
}
