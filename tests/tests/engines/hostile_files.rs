//! Files that a target maps, made or changed to harm who reads them: the run goes on, and what was not read is in a note.

use std::{
    fmt::Write as _,
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nntrace_tests::{
    express::sections,
    live,
    native::{Program, compile},
    profiler::{Profiler, Run},
};

/// Sections of the program that maps files.
const SECTIONS: u64 = 500;
/// Memory of the profiler at most, MiB: that of its tables, and of what it reads of ordinary files.
const MEMORY: u64 = 400;

/// Writes a file with one segment of code and a symbol table that is a hole of this size.
fn write_elf(path: &Path, symbols: u64, names: u64) -> Result<File> {
    const SYMBOLS: u64 = 1 << 20;
    let file = File::create(path)?;
    let machine: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let sections = SYMBOLS + symbols + names;
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    header.extend([3_u16, machine].map(u16::to_le_bytes).concat());
    header.extend(1_u32.to_le_bytes());
    header.extend([0, 64, sections].map(u64::to_le_bytes).concat());
    header.extend(0_u32.to_le_bytes());
    header.extend([64_u16, 56, 1, 64, 3, 0].map(u16::to_le_bytes).concat());
    header.extend([1_u32, 5].map(u32::to_le_bytes).concat());
    header.extend([0_u64, 0, 0, 4096, 4096, 4096].map(u64::to_le_bytes).concat());
    file.write_all_at(&header, 0)?;
    let section = |kind: u32, offset: u64, size: u64, link: u32, entry: u64| {
        let words = [0, kind].map(u32::to_le_bytes).concat();
        let places = [0, 0, offset, size].map(u64::to_le_bytes).concat();
        let links = [link, 0].map(u32::to_le_bytes).concat();
        [words, places, links, [8, entry].map(u64::to_le_bytes).concat()].concat()
    };
    let mut table = section(0, 0, 0, 0, 0);
    table.extend(section(2, SYMBOLS, symbols, 2, 24));
    table.extend(section(3, SYMBOLS + symbols, names, 0, 0));
    file.write_all_at(&table, sections)?;
    Ok(file)
}

/// Profiles the program that maps these files, all of whose sections have to be counted.
fn profile(files: &[PathBuf]) -> Result<Run> {
    let program = Program::build("maps-files.c")?;
    let words = [&[program.path().to_owned()], files].concat();
    let run = Profiler::new()?.launch(words)?;
    assert_eq!(sections(&run.snapshot, "step"), SECTIONS, "{}", run.ended.stderr);
    let peak = u64::try_from(getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss())? / 1024;
    ensure!(peak <= MEMORY, "{peak} MiB");
    Ok(run)
}

#[test]
fn a_file_with_holes_larger_than_the_disk_costs_nothing() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let sizes = [(1 << 40, 1 << 20), (24 << 20, 1 << 40), (960 << 20, 64 << 20), (24, 1 << 42)];
    let mut files = Vec::new();
    for (at, (symbols, names)) in sizes.into_iter().enumerate() {
        let path = folder.path().join(format!("holes{at}.so"));
        write_elf(&path, symbols, names)?;
        files.push(path);
    }
    profile(&files)?;
    Ok(())
}

#[test]
fn a_file_that_is_cut_while_it_is_read_ends_nothing() -> Result<()> {
    const NAMES: u64 = 64 << 20;
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let files: Vec<PathBuf> = (0..100).map(|at| folder.path().join(format!("cut{at}.so"))).collect();
    for file in &files {
        write_elf(file, 24 << 20, NAMES)?;
    }
    let is_over = AtomicBool::new(false);
    let run = thread::scope(|scope| {
        scope.spawn(|| {
            let cut = |file| {
                File::options().write(true).open(file)?.set_len(8192)?;
                write_elf(file, 24 << 20, NAMES)
            };
            while !is_over.load(Ordering::Relaxed) {
                for file in &files {
                    cut(file).unwrap();
                }
            }
        });
        let run = profile(&files);
        is_over.store(true, Ordering::Relaxed);
        run
    })?;
    let is_cut = |note: &String| note.contains("cut short while it was read");
    ensure!(run.snapshot.notes.iter().any(is_cut), "{:?}", run.snapshot.notes);
    Ok(())
}

#[test]
fn a_name_that_stands_for_gigabytes_is_left_out() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let mut name = "_Z18tracing_mark_write1PIiiiE".to_owned();
    for depth in 0..34_u32 {
        let digit = |at: u32| char::from_digit(at, 36).map(|digit| digit.to_ascii_uppercase());
        let before = depth.checked_sub(1).and_then(digit).map(String::from).unwrap_or_default();
        write!(name, "S{before}_IS{before}_S{before}_S{before}_E")?;
    }
    let source = folder.path().join("names.c");
    let code = format!(
        "__asm__(\".text\\n.globl \\\"{name}\\\"\\n.type \\\"{name}\\\", %function\\n\\\"{name}\\\": nop\\n ret\\n\
         .size \\\"{name}\\\", 8\\n\");\nint nothing;\n"
    );
    fs::write(&source, code)?;
    let library = folder.path().join("libnames.so");
    compile(&["cc", "-shared", "-fPIC"], &[&source], &library)?;
    let run = profile(std::slice::from_ref(&library))?;
    let notes = &run.snapshot.notes;
    let note = notes
        .iter()
        .find(|note| note.contains("names are damaged or"))
        .with_context(|| format!("{notes:?}"))?;
    ensure!(note.ends_with("of text: 1"), "{note}");
    let listed = Command::new(nntrace_tests::binaries::profiler()?).arg("engines").arg(&library).output()?;
    ensure!(listed.status.success(), "{listed:?}");
    Ok(())
}
