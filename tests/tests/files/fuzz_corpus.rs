//! Inputs kept from fuzzing, checked without a fuzzer.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus");

#[test]
fn every_kept_input_passes() -> Result<()> {
    for (name, check) in nntrace_fuzz::TARGETS {
        let folder = Path::new(CORPUS).join(name);
        let mut count = 0;
        for entry in fs::read_dir(&folder).with_context(|| format!("no inputs in {}", folder.display()))? {
            let path = entry?.path();
            let data = fs::read(&path)?;
            // The panic message does not contain the file.
            let passes = std::panic::catch_unwind(|| check(&data)).is_ok();
            assert!(passes, "{name}: {}", path.display());
            count += 1;
        }
        assert!(count > 0, "{name}: the folder is empty");
    }
    Ok(())
}

#[test]
fn every_folder_has_its_target() -> Result<()> {
    let names = |entries: fs::ReadDir| -> Result<BTreeSet<String>> {
        entries
            .map(|entry| Ok(entry?.path().with_extension("").file_name().unwrap().to_string_lossy().into()))
            .collect()
    };
    let targets: BTreeSet<String> = nntrace_fuzz::TARGETS.iter().map(|&(name, _)| name.into()).collect();
    assert_eq!(names(fs::read_dir(CORPUS)?)?, targets);
    let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/src/bin");
    assert_eq!(names(fs::read_dir(programs)?)?, targets);
    Ok(())
}
