//! Functions of engines that end in every way: each call is a section that ends, and the target is not harmed.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    child::Child,
    engine_ends::{EngineEnds, WAYS},
    live,
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::live::engines::{EngineMaps, FoundEngine, Survey};
use tempfile::TempDir;

/// Compiles the engine, stripped, in a folder that is removed with it.
fn stripped() -> Result<(EngineEnds, TempDir)> {
    let folder = tempfile::tempdir()?;
    Ok((EngineEnds::build(folder.path(), &["-s"])?, folder))
}

/// Profiles all ways of this beginning.
fn check(beginnings: &[&str]) -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (engine, _folder) = stripped()?;
    let wanted: Vec<_> =
        WAYS.iter().filter(|way| beginnings.iter().any(|it| way.name.starts_with(it))).collect();
    ensure!(wanted.len() >= beginnings.len(), "{wanted:?}");
    wanted.into_iter().try_for_each(|way| engine.check(way).map(drop))
}

#[test]
fn exceptions_are_caught_inside_and_outside_of_probed_functions() -> Result<()> {
    check(&["throws", "stages"])
}

#[test]
fn what_an_exception_leaves_is_over_when_it_is_caught() -> Result<()> {
    check(&["deeper"])
}

#[test]
fn probed_functions_are_jumped_over() -> Result<()> {
    check(&["jumps"])
}

#[test]
fn threads_end_in_probed_functions() -> Result<()> {
    check(&["threads"])
}

#[test]
fn functions_jump_to_others() -> Result<()> {
    check(&["hops"])
}

#[test]
fn functions_call_themselves_and_return_at_many_places() -> Result<()> {
    check(&["returns"])
}

#[test]
fn threads_change_their_stack_in_probed_functions() -> Result<()> {
    check(&["lower", "upper", "abandoned"])
}

/// Returns the engine that is found in a file by the map.
fn found(file: &Path, map: &Path) -> Result<Option<FoundEngine>> {
    let mut maps = EngineMaps::default();
    ensure!(maps.add("engine.toml", &fs::read_to_string(map)?).is_empty());
    let mut survey = Survey::default();
    survey.file(file, &maps);
    ensure!(survey.failed.is_empty(), "{:?}", survey.failed);
    Ok(survey.engines.pop())
}

#[test]
fn a_function_whose_end_cannot_be_told_is_listed_with_the_reason() -> Result<()> {
    let (engine, _folder) = stripped()?;
    let found = found(&engine.library(), &engine.map())?.context("the engine")?;
    assert!(found.probes.iter().all(|probe| probe.function != "ends_unclear"), "{:?}", found.probes);
    let about: Vec<_> = found.notes.iter().filter(|note| note.contains("ends_unclear")).collect();
    assert_eq!(about.len(), 1, "{:?}", found.notes);
    assert!(
        about[0]
            .contains("not probed: ends_unclear: an indirect jump may lead into the function or out of it")
    );
    let end = |function: &str| {
        let probe = found.probes.iter().find(|probe| probe.function == function);
        probe.map(|probe| (probe.end, probe.returns.len())).with_context(|| function.to_owned())
    };
    assert!(end("ends_at_many_places")?.1 > 2, "{:?}", end("ends_at_many_places"));
    // It jumps to one that is probed itself; the functions that the others jump to return in their place.
    assert_eq!(end("ends_hop")?, ("stack pointer", 0));
    for hop in ["ends_hop_away", "ends_hop_sometimes"] {
        let (kind, count) = end(hop)?;
        assert!(kind == "returns" && count > 0, "{hop}: {kind}, {count}");
    }
    let about_jumps = found.notes.iter().find(|note| note.contains("closed by the stack pointer"));
    assert_eq!(about_jumps, None);
    Ok(())
}

#[test]
fn without_symbols_and_type_information_nothing_is_guessed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let engine = EngineEnds::build(folder.path(), &["-s", "-fno-rtti"])?;
    let found = found(&engine.library(), &engine.map())?.context("it is recognized by its exports")?;
    assert!(found.probes.iter().all(|probe| !probe.function.contains("slot")), "{:?}", found.probes);
    let said = "the file has no class ends::Stage";
    assert!(found.notes.iter().any(|note| note.contains(said)), "{:?}", found.notes);
    Ok(())
}

/// Number of sections, also of those inside others of their function.
fn sections(run: &Run) -> u64 {
    run.snapshot.stacks.iter().map(|row| row.count).sum()
}

#[test]
fn an_engine_in_another_mount_namespace_is_found() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (engine, folder) = stripped()?;
    // The library is there and nowhere else.
    let place = tempfile::tempdir()?;
    let script = "mount -t tmpfs tmpfs \"$1\" && cp \"$0\"/* \"$1\" && exec \"$1\"/calls returns";
    let command = [Path::new("unshare"), Path::new("--mount"), Path::new("sh"), Path::new("-c")];
    let words = command.into_iter().chain([Path::new(script), folder.path(), place.path()]);
    let run = Profiler::new()?.args(["--engine-level", "op", "--map"]).args([engine.map()]).launch(words)?;
    ensure!(run.ended.code() == Some(0), "{}", run.ended.stderr);
    assert_eq!(fs::read_dir(place.path())?.count(), 0);
    assert_eq!(sections(&run), 20 * 6, "{:?} {:?}", run.snapshot.functions, run.snapshot.notes);
    Ok(())
}

#[test]
fn a_library_that_was_replaced_is_examined_as_it_is_mapped() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (engine, _folder) = stripped()?;
    let mut target = Child::start(Command::new(engine.program()).args(["returns", "when told"]))?;
    target.lines(1)?;
    // Another file by this name, in which everything is elsewhere.
    fs::remove_file(engine.library())?;
    let other = tempfile::tempdir()?;
    fs::copy(EngineEnds::build(other.path(), &["-O0"])?.library(), engine.library())?;
    let pid = target.pid().to_string();
    let profiler = Profiler::new()?.args(["--engine-level", "op", "--pid", &pid, "--map"]);
    let profiler = profiler.args([engine.map()]).attach()?;
    target.send_line("")?;
    target.wait()?.expect_code(0)?;
    let run = profiler.finish()?;
    assert_eq!(sections(&run), 20 * 6, "{:?} {:?}", run.snapshot.functions, run.snapshot.notes);
    assert_eq!(run.snapshot.odd_marks(), [].into());
    Ok(())
}

#[test]
fn two_versions_of_an_engine_in_a_process_are_both_probed() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    let engines = [
        EngineEnds::build(folders[0].path(), &["-s"])?,
        EngineEnds::build(folders[1].path(), &["-O1", "-fno-rtti"])?,
    ];
    let program = EngineEnds::loader(folders[0].path())?;
    let libraries = engines.each_ref().map(EngineEnds::library);
    let run = Profiler::new()?.args(["--map".as_ref(), engines[0].map().as_os_str()]);
    let run = run.launch([&program, &libraries[0], &libraries[1]])?;
    ensure!(run.ended.code() == Some(0), "{}", run.ended.stderr);
    let count = |name: &str| {
        let rows = run.snapshot.functions.iter().filter(|row| row.name == name);
        rows.map(|row| row.count).sum::<u64>()
    };
    for library in &libraries {
        let name = library.to_str().context("the path is text")?;
        assert_eq!(count(name), 1, "{:?}", run.snapshot.functions);
        let engines = &run.snapshot.source.engines;
        assert!(engines.iter().any(|engine| engine.file == name), "{engines:?}");
    }
    assert_eq!(count("ends_run"), 3);
    Ok(())
}
