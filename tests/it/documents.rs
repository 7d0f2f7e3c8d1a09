//! A handful of documents to one table, for people who are no biologists.

use checkrein_tests::{Place, root};

#[test]
fn every_cell_is_a_quotation_and_what_is_missing_is_said() {
    let place = Place::new();
    let task = root().join("tests/tasks/documents/task.toml").display().to_string();
    let config = root().join("tests/tasks/documents/checkrein.toml").display().to_string();
    let state = place.state().display().to_string();
    let _ = place.run(&["run", &task, "--config", &config, "--state", &state]).expect(0);
    let report = place.run(&["report", "--state", &state, "--json"]).expect(0).json();
    let facts = report["facts"].as_array().unwrap();
    assert_eq!(facts.len(), 12);
    for fact in facts {
        assert_eq!(fact["level"], "independent");
        let content = &fact["content"];
        if content["missing"] == true {
            assert_eq!(fact["subject"], "documents/bodensolar/warranty");
            continue;
        }
        let name = fact["source"].as_str().unwrap().strip_prefix("/in/").unwrap().to_owned();
        let text = std::fs::read(root().join("tests/tasks/documents/offers").join(name)).unwrap();
        let (start, end) =
            (content["start"].as_u64().unwrap() as usize, content["end"].as_u64().unwrap() as usize);
        assert_eq!(&text[start..end], content["quote"].as_str().unwrap().as_bytes());
    }
}
