//! Lanes of `nntrace.h` in all ways of building programs: a thread has one for all files of a program or library, and the
//! profiler finds the function that offers it, with its semaphore.

use std::{
    collections::BTreeSet,
    path::Path,
    process::Command,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    child::Child,
    lane::{MARKS_BEFORE, Marker, Way},
    native::{compile, source},
};

fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for compiler in ["gcc", "clang"] {
        for is_cxx in [false, true] {
            // Only clang's own linker reads its intermediate files.
            let lto: &[&str] = if compiler == "clang" { &["-fuse-ld=lld"] } else { &[] };
            for (flags, link_flags, has_library) in [
                (&["-O0"][..], &[][..], false),
                (&["-O1"], &[], false),
                (&["-O2"], &[], false),
                (&["-O3"], &[], false),
                (&["-O2"], &["-static"], false),
                (&["-O2", "-fPIE"], &["-pie", "-s"], false),
                (&["-O2", "-flto"], lto, false),
                (&["-O0"], &[], true),
                (&["-O2"], &["-s"], true),
            ] {
                ways.push(Way { compiler, is_cxx, flags, link_flags, has_library });
            }
        }
    }
    ways
}

/// Returns what `readelf` prints of a file.
fn readelf(option: &str, path: &Path) -> Result<String> {
    let ended = Child::run(Command::new("readelf").args(["-W", option]).arg(path))
        .context("readelf: run `cargo xtask test`, which installs it")?;
    Ok(ended.expect_code(0)?.text())
}

/// Checks that a file has notes of the name, of one place, and returns the address of the semaphore.
fn semaphore(path: &Path, name: &str) -> Result<u64> {
    let notes = readelf("-n", path)?;
    let places: BTreeSet<&str> = notes
        .split("Provider: nntrace\n")
        .filter(|note| note.contains(&format!("Name: {name}\n")))
        .filter_map(|note| note.lines().find(|line| line.contains("Semaphore: ")))
        .collect();
    ensure!(places.len() == 1, "notes {name} in {}: {places:?}", path.display());
    let (_, address) =
        places.iter().find_map(|place| place.split_once("Semaphore: 0x")).context("a semaphore")?;
    Ok(u64::from_str_radix(address, 16)?)
}

/// Whether an address is in the part of a segment that is in the file, and can be written to.
fn is_data_of_the_file(path: &Path, address: u64) -> Result<bool> {
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16);
    for line in readelf("-l", path)?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["LOAD", _offset, virtual_address, _, file_bytes, _, flags @ ..] = &words[..] {
            let begin = number(virtual_address)?;
            if flags.first() == Some(&"RW") && (begin..begin + number(file_bytes)?).contains(&address) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn check(way: Way) -> Result<()> {
    let folder = tempfile::tempdir()?;
    for file in way.build(folder.path())? {
        ensure!(semaphore(&file, "mark")? == 0, "others attach without raising it");
        let address = semaphore(&file, "lane")?;
        ensure!(address != 0 && is_data_of_the_file(&file, address)?, "{address:#x} in {}", file.display());
    }
    let mut marker = Marker::start(&way)?;
    let mut lane = marker.first_lane()?;
    lane.accept()?;
    let part = marker.calls("part")?;
    let definition = "define [NN_LR_PP]part";
    if way.has_library {
        ensure!(part == ["probe B|[NN_LR_PP]part", "probe E"], "a lane of its own: {part:?}");
        // Nobody but the profiler wants lanes of the library.
        ensure!(lane.used()? == 0);
    } else {
        ensure!(part.is_empty() && marker.ask("threads")? == "1", "{part:?}");
        ensure!(lane.read()? == [definition, "begin [NN_LR_PP]part", "end"]);
    }
    // Each form is told from the others by the compiler.
    for (word, begin) in [
        ("plain", "begin [NN_LR_PE]plain"),
        ("named", "text B|[NN_LR_PE]a name"),
        ("pairs", "text B|[NN_LR_PE]pairs#iter=7#acct=foo"),
        ("switched", "begin [SW][NN_LC_PCO]switched"),
    ] {
        for _ in 0..2 {
            ensure!(marker.calls(&format!("begin {word}"))?.is_empty());
            ensure!(marker.calls("end")?.is_empty());
            let mut lines = lane.read()?;
            lines.retain(|line| !line.starts_with("define "));
            ensure!(lines == [begin, "end"], "{word}: {lines:?}");
        }
    }
    ensure!(marker.calls("begin overall")? == ["probe B|[NN_LA_PO]overall"]);
    ensure!(marker.calls("end")? == ["probe E"]);
    let pid = marker.pid;
    marker.pid = marker.ask("fork")?.parse()?;
    let child = marker.calls("run 40")?;
    ensure!(child[..MARKS_BEFORE].iter().all(|call| call.starts_with("probe ")), "{child:?}");
    ensure!(marker.offered(&child[MARKS_BEFORE])?.key != lane.key);
    ensure!(marker.ask("exit")? == "0");
    marker.pid = pid;
    marker.exit()
}

#[test]
fn every_build_has_one_lane_a_thread() {
    let ways = ways();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(way) = ways.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = check(*way) {
                        let text = format!("{way:?}: {error:#}");
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push(text);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(ways.len(), 36);
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), ways.len(), failures.join("\n"));
}

#[test]
fn a_linker_that_removes_what_nobody_refers_to_leaves_the_notes() -> Result<()> {
    for words in [
        &["gcc", "-std=c99", "-O2", "-ffunction-sections", "-Wl,--gc-sections"][..],
        &["clang", "-std=c99", "-O2", "-ffunction-sections", "-fuse-ld=lld", "-Wl,--gc-sections"],
    ] {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("marks");
        compile(words, &[&source("marks.c"), &source("marks-part.c")], &program)?;
        assert_eq!(semaphore(&program, "mark")?, 0, "{words:?}");
        let address = semaphore(&program, "lane")?;
        assert!(is_data_of_the_file(&program, address)?, "{words:?}: {address:#x}");
        Child::run(&mut Command::new(&program))?.expect_code(0)?;
    }
    Ok(())
}

#[test]
fn a_program_may_be_built_without_lanes() -> Result<()> {
    for compiler in [["gcc", "-std=c99", "-xc"], ["g++", "-std=c++11", "-xc++"]] {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("marks");
        let sources = ["marks.c", "marks-part.c"].map(source);
        let mut words = [&compiler[..], &["-O2", "-DNNTRACE_NO_LANES"]].concat();
        words.extend(sources.iter().filter_map(|source| source.to_str()));
        compile(&words, &[], &program)?;
        assert_eq!(semaphore(&program, "mark")?, 0);
        assert!(semaphore(&program, "lane").is_err());
        assert!(!readelf("-s", &program)?.contains("lane"), "{compiler:?}");
        Child::run(&mut Command::new(&program))?.expect_code(0)?;
    }
    Ok(())
}
