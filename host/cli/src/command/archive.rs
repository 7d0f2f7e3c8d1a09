//! `export` and `import`: a run in one file, with all that it takes to execute it again elsewhere.

use std::fs::Permissions;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use checkrein_contract::Digest;
use checkrein_contract::id::RunId;
use checkrein_contract::port::StorageError;
use checkrein_contract::units::{show_bytes, show_count};
use checkrein_store::{Exported, Imported, State, StoreError};
use serde_json::json;
use tempfile::TempDir;

use super::run;
use crate::args::Global;
use crate::error::{CliError, exit};
use crate::output;
use crate::report::escape::{shell, visible};
use crate::world::{open_state, read_state};

/// How the name of an export ends.
pub(super) const EXTENSION: &str = "checkrein";

/// The file, beside the reports of a run, which says that it came from elsewhere and what its components
/// may do was not accepted here.
pub(super) const IMPORTED: &str = "imported";

pub(super) fn export(global: &Global, run: &str, out: Option<&Path>) -> Result<u8, CliError> {
    let state = read_state(global)?;
    let run = state.resolve(run)?;
    // Also says whether the id can be the name of a file.
    let folder = state.run_dir(&run)?;
    let file = out.map_or_else(|| PathBuf::from(format!("{run}.{EXTENSION}")), Path::to_owned);
    let replaces = replaces(&file, &run)?;
    let driver = state.drives(&run)?.map(|driving| driving.holder);
    if let Some(driver) = &driver {
        output::message(&visible(&format!("{driver} drives the run: what is there so far is exported")));
    }
    let exported = write(&state, &run, &file, replaces)?;
    // Where it lies here says nothing to who reads the report elsewhere.
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let word = json!({
        "file": name,
        "digest": exported.digest,
        "bytes": exported.bytes,
        "head": exported.head,
        "command": replay_of(&name),
    });
    run::write_below(&folder, "export.json", word.to_string().as_bytes())?;
    report(&state, &run, driver)?;
    tell_export(global, &run, &file, &exported);
    Ok(exit::DONE)
}

pub(super) fn import(global: &Global, file: &Path, digest: Option<&str>) -> Result<u8, CliError> {
    let expected = digest.map(str::parse::<Digest>).transpose().map_err(|error| {
        CliError::usage(format!("--digest: {error}"), "it was printed when the run was exported")
    })?;
    let mut reader = open(file)?;
    let state = open_state(global)?;
    let imported = state.import(&mut reader, expected).map_err(altered)?;
    if imported.fresh {
        // Nobody here granted anything to what is in it: see `resume`.
        run::write_below(&state.run_dir(&imported.run)?, IMPORTED, imported.digest.to_string().as_bytes())?;
    }
    tell_import(global, file, &imported);
    Ok(exit::DONE)
}

/// An export that was read into a folder of its own, for a while.
pub(super) struct Aside {
    pub(super) state: State,
    pub(super) imported: Imported,
    /// Dropped last: with it the state is gone.
    pub(super) folder: TempDir,
}

/// Reads an export into a folder for temporary files.
pub(super) fn aside(file: &Path, expected: Option<Digest>) -> Result<Aside, CliError> {
    let mut reader = open(file)?;
    let folder = tempfile::Builder::new().prefix("checkrein-replay-").tempdir();
    let folder = folder.map_err(|error| StorageError::of_io(&std::env::temp_dir(), &error))?;
    let state = State::open(&folder.path().join("state"))?;
    let imported = state.import(&mut reader, expected).map_err(altered)?;
    Ok(Aside { state, imported, folder })
}

/// A log or a file that is not what was written is a difference; a disk that fails, a database of
/// another version and a run that is driven are what they always are.
pub(super) fn altered(error: StoreError) -> CliError {
    match error {
        StoreError::Storage(StorageError::Damaged { .. }) => CliError::Difference(error.to_string()),
        StoreError::Storage(_) | StoreError::Newer { .. } | StoreError::Driven { .. } => error.into(),
        other => CliError::Difference(other.to_string()),
    }
}

fn open(file: &Path) -> Result<BufReader<std::fs::File>, CliError> {
    let opened = std::fs::File::open(file).map_err(|error| CliError::unreadable(file, &error))?;
    Ok(BufReader::new(opened))
}

/// Whether the file is there, and an export of the same run: nothing else is written over.
fn replaces(file: &Path, run: &RunId) -> Result<bool, CliError> {
    let found = match std::fs::symlink_metadata(file) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(StorageError::of_io(file, &error).into()),
    };
    let same = found.is_file()
        && match aside(file, None) {
            Ok(known) => known.imported.run == *run,
            Err(error @ (CliError::Storage(_) | CliError::Ours(_))) => return Err(error),
            Err(_) => false,
        };
    if same {
        return Ok(true);
    }
    let message = format!("{} is there already, and is not an export of run {run}", file.display());
    Err(CliError::usage(message, "name another file with --out, or remove it"))
}

/// Writes an export aside and renames it: a name stands for a whole file, or for none.
fn write(state: &State, run: &RunId, file: &Path, replaces: bool) -> Result<Exported, CliError> {
    let wrong = |error: io::Error| CliError::from(StorageError::of_io(file, &error));
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Made to be handed on: whoever may read what the user writes may read it.
    let mut aside = tempfile::Builder::new()
        .prefix(".checkrein-export-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(parent)
        .map_err(wrong)?;
    let mut writer = BufWriter::new(aside.as_file_mut());
    let exported = state.export(run, &[], &mut writer)?;
    writer.flush().map_err(wrong)?;
    drop(writer);
    aside.as_file().sync_all().map_err(wrong)?;
    let renamed = if replaces { aside.persist(file) } else { aside.persist_noclobber(file) };
    renamed.map_err(|error| wrong(error.error))?;
    Ok(exported)
}

/// Writes the report anew: it names the file from now on.
fn report(state: &State, run: &RunId, driver: Option<String>) -> Result<(), CliError> {
    let view = run::view_of(state, run)?.driven_by(driver);
    let view = run::with_export(state, view);
    run::write_reports(state, &view)?;
    Ok(())
}

fn tell_export(global: &Global, run: &RunId, file: &Path, exported: &Exported) {
    let command = replay_of(&file.display().to_string());
    let Exported { digest, bytes, events, blobs, head } = exported;
    if global.json {
        output::json(&json!({
            "schema": "checkrein/export@1",
            "run": run,
            "file": file.display().to_string(),
            "digest": digest,
            "size_bytes": bytes,
            "events": events,
            "blobs": blobs,
            "head": head,
            "command": command,
        }));
        return;
    }
    output::line(&visible(&format!("file    {}, {}", file.display(), show_bytes(*bytes))));
    output::line(&format!("events  {}, blobs {}", show_count(*events), show_count(*blobs)));
    output::line(&format!("head    {}", head.hex()));
    output::line(&format!("digest  {digest}"));
    output::line(&format!("replay with: {command}"));
}

fn tell_import(global: &Global, file: &Path, imported: &Imported) {
    let Imported { run, events, blobs, head, digest, fresh } = imported;
    let state = global.state.as_ref();
    let state =
        state.map_or_else(String::new, |dir| format!(" --state {}", shell(&dir.display().to_string())));
    let command = format!("{}{state}", replay_of(run.as_str()));
    if global.json {
        output::json(&json!({
            "schema": "checkrein/import@1",
            "run": run,
            "file": file.display().to_string(),
            "digest": digest,
            "events": events,
            "blobs": blobs,
            "head": head,
            "fresh": fresh,
            "command": command,
        }));
        return;
    }
    if !fresh {
        output::message("this run was here already, as it stands in the file");
    }
    output::line(&visible(&format!("run     {run}")));
    output::line(&format!("events  {}, blobs {}", show_count(*events), show_count(*blobs)));
    output::line(&format!("head    {}", head.hex()));
    output::line(&format!("digest  {digest}"));
    output::line(&format!("replay with: {command}"));
}

fn replay_of(what: &str) -> String {
    format!("checkrein replay {}", shell(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_an_export_of_the_run_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let (file, run) = (folder.path().join("r.checkrein"), RunId::from("r"));
        assert!(!replaces(&file, &run).unwrap());
        std::fs::write(&file, "a letter").unwrap();
        let refused = replaces(&file, &run).unwrap_err();
        assert!(matches!(refused, CliError::Usage { .. }), "{refused}");
        assert!(refused.to_string().contains("not an export of run r"), "{refused}");
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(replaces(&file, &run).is_err());
        std::fs::remove_dir(&file).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &file).unwrap();
        assert!(replaces(&file, &run).is_err());
    }

    #[test]
    fn an_altered_file_is_a_difference_and_a_full_disk_is_none() {
        let place = || "a".to_owned();
        let damaged = StorageError::Damaged { place: place(), detail: "it was changed".to_owned() };
        assert!(matches!(altered(damaged.into()), CliError::Difference(_)));
        let unreadable =
            StoreError::Unreadable { run: "r".into(), seq: 3, kind: "x".to_owned(), detail: "y".to_owned() };
        assert!(matches!(altered(unreadable), CliError::Difference(_)));
        assert!(matches!(altered(StorageError::Full { place: place() }.into()), CliError::Storage(_)));
        let newer = StoreError::Newer { place: place(), found: 9, ours: 2 };
        assert!(matches!(altered(newer), CliError::Storage(_)));
    }

    #[test]
    fn the_command_is_one_that_a_shell_takes() {
        assert_eq!(replay_of("20261130-abcdef.checkrein"), "checkrein replay 20261130-abcdef.checkrein");
        assert_eq!(replay_of("a paper/run.checkrein"), "checkrein replay 'a paper/run.checkrein'");
    }
}
