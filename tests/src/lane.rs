//! Program that writes marks to lanes as if a profiler listened, and the profiler's side of these lanes.

use std::{
    collections::HashMap,
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nntrace_common::express::{HEADER_BYTES, Head, Kind, LANE_NAME, MAGIC, is_ring_size, offsets};
use nntrace_user::live::clock;
use tempfile::TempDir;

use crate::{
    child::Child,
    native::{compile, source},
    wait,
};

/// Marks by the probe after which a thread offers a lane.
pub const MARKS_BEFORE: usize = 64;

/// A section of `run` in a lane.
pub const WORK: [&str; 2] = ["begin [NN_LR_PE]work", "end"];
/// A section of `run` by the probe.
pub const PROBED_WORK: [&str; 2] = ["probe B|[NN_LR_PE]work", "probe E"];
/// No call of a probed function.
pub const NOTHING: [&str; 0] = [];

/// Way of building the program.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Compiler: `gcc` or `clang`.
    pub compiler: &'static str,
    /// Whether the sources are compiled as C++.
    pub is_cxx: bool,
    /// Flags for compiling.
    pub flags: &'static [&'static str],
    /// More flags for linking.
    pub link_flags: &'static [&'static str],
    /// Whether one of the files is a library.
    pub has_library: bool,
}

impl Way {
    /// Way for tests of what no compiler changes.
    pub const PLAIN: Self =
        Self { compiler: "gcc", is_cxx: false, flags: &["-O2"], link_flags: &[], has_library: false };

    /// Builds the program in a folder; returns its files with marks, itself first.
    ///
    /// # Errors
    /// When a compiler is missing, or refuses.
    pub fn build(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let object = |file: &str, words: &[&str]| {
            let (from, to) = (source(file), folder.join(file).with_extension("o"));
            let path = from.to_str().context("a source's name is text")?;
            compile(&[words, &["-c", path]].concat(), &[], &to).map(|()| to)
        };
        // The compilers must not see that these stand in for others.
        let plain = ["cc", "-std=c99", "-D_GNU_SOURCE", "-O2", "-fPIC"];
        let (hooks, record) = (object("lane-hooks.c", &plain)?, object("lane-record.c", &plain)?);
        let language: &[&str] =
            if self.is_cxx { &["-xc++", "-std=c++11"] } else { &["-xc", "-std=c99", "-D_GNU_SOURCE"] };
        let words = [&[self.driver(), "-Wshadow"], language, self.flags].concat();
        let main = object("lane-commands.c", &words)?;
        let link = [&[self.driver()], self.flags, self.link_flags].concat();
        let program = folder.join("lane-commands");
        if self.has_library {
            let part = object("lane-part.c", &[&words[..], &["-fPIC"]].concat())?;
            let library = folder.join("libpart.so");
            compile(&[&link[..], &["-shared"]].concat(), &[&part, &hooks], &library)?;
            let search = format!("-Wl,-rpath,{}", folder.display());
            compile(&[&link[..], &[&search]].concat(), &[&main, &hooks, &record, &library], &program)?;
            return Ok(vec![program, library]);
        }
        let part = object("lane-part.c", &words)?;
        compile(&link, &[&main, &part, &hooks, &record], &program)?;
        Ok(vec![program])
    }

    fn driver(&self) -> &'static str {
        match (self.compiler, self.is_cxx) {
            ("gcc", true) => "g++",
            ("clang", true) => "clang++",
            (plain, _) => plain,
        }
    }
}

/// Running program: `lane-commands.c`.
pub struct Marker {
    child: Child,
    answers: usize,
    /// Process that answers: the program or a child of it.
    pub pid: u32,
    _folder: TempDir,
}

impl Marker {
    /// Builds and starts it.
    ///
    /// # Errors
    /// When it cannot be built or started.
    pub fn start(way: &Way) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let files = way.build(folder.path())?;
        let child = Child::start(&mut Command::new(&files[0]))?;
        Ok(Self { pid: child.pid(), child, answers: 0, _folder: folder })
    }

    /// Builds and starts it, and accepts a lane of its thread, in which `run`'s site is defined.
    ///
    /// # Errors
    /// When it cannot be built or started, or does not use the lane.
    pub fn with_lane() -> Result<(Self, Lane)> {
        let mut marker = Self::start(&Way::PLAIN)?;
        let mut lane = marker.first_lane()?;
        lane.accept()?;
        let calls = marker.calls("run 1")?;
        ensure!(calls.is_empty(), "{calls:?}");
        let lines = lane.read()?;
        ensure!(lines == ["define [NN_LR_PE]work", WORK[0], WORK[1]], "{lines:?}");
        Ok((marker, lane))
    }

    /// Makes a request; returns the answer.
    ///
    /// # Errors
    /// When there is none.
    pub fn ask(&mut self, request: &str) -> Result<String> {
        self.child.send_line(request)?;
        self.answers += 1;
        self.child.lines(self.answers)?.pop().context("there is one answer at least")
    }

    /// Requests marks; returns the calls of the probed functions, without the process in the payloads.
    ///
    /// # Errors
    /// When there is no answer, or when the program's `errno` has changed.
    pub fn calls(&mut self, request: &str) -> Result<Vec<String>> {
        let answer = self.ask(request)?;
        ensure!(!answer.contains("errno"), "{request}: {answer}");
        let calls = answer.split_terminator(';').map(|call| match call.strip_prefix("probe ") {
            Some(payload) => format!("probe {}", without_process(payload)),
            None => call.to_owned(),
        });
        Ok(calls.collect())
    }

    /// Requests marks that have to be the first of a thread; returns the lane that it offers after them.
    ///
    /// # Errors
    /// When it offers none, or not after [`MARKS_BEFORE`] marks.
    pub fn first_lane(&mut self) -> Result<Lane> {
        self.ask("wanted 1")?;
        let mut calls = self.calls(&format!("run {}", MARKS_BEFORE / 2))?;
        let offer = calls.pop().unwrap_or_default();
        ensure!(calls.len() == MARKS_BEFORE, "{} calls and {offer}", calls.len());
        ensure!(calls.iter().all(|call| call.starts_with("probe ")), "{calls:?}");
        self.offered(&offer)
    }

    /// Opens an offered lane.
    ///
    /// # Errors
    /// When the call is no offer, or the lane is not as it has to be.
    pub fn offered(&self, call: &str) -> Result<Lane> {
        let words: Vec<&str> = call.split(' ').collect();
        let ["offer", file, key] = words[..] else { bail!("no offer: {call:?}") };
        Lane::open(self.pid, file.parse()?, key.parse()?)
    }

    /// Lets a new thread answer, until it is told to exit.
    ///
    /// # Errors
    /// When there is none.
    pub fn child_thread(&mut self) -> Result<()> {
        let thread = self.ask("thread")?;
        ensure!(thread.parse::<u32>().is_ok(), "{thread}");
        Ok(())
    }

    /// Requests a mark again and again until a lane is offered; returns the offer.
    ///
    /// # Errors
    /// When there is none for long.
    pub fn next_offer(&mut self, request: &str) -> Result<String> {
        let is_offer = |call: &String| call.starts_with("offer");
        wait::until("an offer", || Ok(self.calls(request)?.into_iter().find(is_offer)))
    }

    /// Returns how many descriptors of lanes the process has.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn descriptors(&self) -> Result<usize> {
        let entries = fs::read_dir(format!("/proc/{}/fd", self.pid))?;
        let links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        Ok(links.filter(|link| link.to_string_lossy().contains(LANE_NAME)).count())
    }

    /// Returns how many lanes the process has mapped.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn mappings(&self) -> Result<usize> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid))?;
        Ok(maps.lines().filter(|line| line.contains(LANE_NAME)).count())
    }

    /// Ends the program.
    ///
    /// # Errors
    /// When it does not exit well.
    pub fn exit(mut self) -> Result<()> {
        self.child.send_line("exit")?;
        self.child.wait()?.expect_code(0).map(drop)
    }
}

/// Collector's side of a lane.
pub struct Lane {
    file: File,
    /// Its key.
    pub key: u64,
    /// Bytes of its ring.
    pub ring_bytes: usize,
    sites: HashMap<u32, String>,
    last_time: u64,
}

impl Lane {
    fn open(pid: u32, file: i64, key: u64) -> Result<Self> {
        let path = format!("/proc/{pid}/fd/{file}");
        let name = fs::read_link(&path)?;
        ensure!(name == Path::new(&format!("/memfd:{LANE_NAME} (deleted)")), "{}", name.display());
        let file = File::options().read(true).write(true).open(&path)?;
        let seals = SealFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GET_SEALS)?);
        let wanted = SealFlag::F_SEAL_SEAL | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW;
        ensure!(seals.contains(wanted) && !seals.contains(SealFlag::F_SEAL_WRITE), "{seals:?}");
        let mut lane = Self { file, key, ring_bytes: 0, sites: HashMap::new(), last_time: clock::now() };
        ensure!(lane.word(offsets::MAGIC)? == MAGIC && lane.word(offsets::KEY)? == key);
        let ring_bytes = lane.word(offsets::RING_BYTES)?;
        ensure!(is_ring_size(ring_bytes), "{ring_bytes} bytes");
        lane.ring_bytes = usize::try_from(ring_bytes)?;
        ensure!(lane.file.metadata()?.len() == (HEADER_BYTES as u64) + ring_bytes);
        Ok(lane)
    }

    /// Returns the lane that a process offers now, if there is one.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn find(pid: u32) -> Result<Option<Self>> {
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
            let path = entry?.path();
            let file = path.file_name().and_then(|name| name.to_str()?.parse().ok());
            // The process may close it at any time.
            if let Ok(link) = fs::read_link(&path)
                && link.to_string_lossy().contains(LANE_NAME)
                && let Some(file) = file
                && let Ok(bytes) = File::open(&path)
                && let mut key = [0; 8]
                && bytes.read_exact_at(&mut key, offsets::KEY as u64).is_ok()
                && let Ok(lane) = Self::open(pid, file, u64::from_le_bytes(key))
            {
                return Ok(Some(lane));
            }
        }
        Ok(None)
    }

    /// Returns a word of the header.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn word(&self, offset: usize) -> Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, offset as u64)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn set(&self, offset: usize, value: u64) -> Result<()> {
        Ok(self.file.write_all_at(&value.to_le_bytes(), offset as u64)?)
    }

    /// Sets the time until which the lane is read.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn lease(&self, until: u64) -> Result<()> {
        // All that a library may have.
        self.set(offsets::GRANT, 64 << 20)?;
        self.set(offsets::LEASE, until)
    }

    /// Leases it for longer than any test.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn accept(&self) -> Result<()> {
        self.lease(u64::MAX)
    }

    /// Returns how many bytes are written and not read.
    ///
    /// # Errors
    /// When they cannot be read, or are more than there is room for.
    pub fn used(&self) -> Result<usize> {
        let used = self.word(offsets::HEAD)?.wrapping_sub(self.word(offsets::TAIL)?);
        ensure!(used <= self.ring_bytes as u64, "{used} bytes in {}", self.ring_bytes);
        Ok(usize::try_from(used)?)
    }

    /// Reads all records; a line each, without the process in the payloads.
    ///
    /// # Errors
    /// When a record is not as it has to be, or earlier than the one before.
    pub fn read(&mut self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        let mut left = self.used()?;
        let mut tail = self.word(offsets::TAIL)?;
        while left > 0 {
            let at = usize::try_from(tail)? % self.ring_bytes;
            let words = [self.word(HEADER_BYTES + at)?, self.word(HEADER_BYTES + at + 8)?];
            let head = Head::read(words, at, self.ring_bytes, left as u64)
                .with_context(|| format!("at {at}: {words:x?} after {lines:?}"))?;
            let mut text = vec![0; head.text];
            self.file.read_exact_at(&mut text, (HEADER_BYTES + at + 16) as u64)?;
            lines.push(self.line(head, String::from_utf8(text)?)?);
            left -= head.length;
            tail += head.length as u64;
        }
        self.set(offsets::TAIL, tail)?;
        Ok(lines)
    }

    fn line(&mut self, head: Head, text: String) -> Result<String> {
        if !matches!(head.kind, Kind::Define | Kind::Skip) {
            ensure!(
                (self.last_time..=clock::now()).contains(&head.time),
                "{head:?} after {}",
                self.last_time
            );
            self.last_time = head.time;
        }
        Ok(match head.kind {
            Kind::End => "end".to_owned(),
            Kind::Site => {
                format!("begin {}", self.sites.get(&head.site).with_context(|| format!("{head:?}"))?)
            }
            Kind::Text => format!("text {}", without_process(&text)),
            Kind::Define => {
                let line = format!("define {text}");
                ensure!(self.sites.insert(head.site, text).is_none(), "defined twice: {head:?}");
                line
            }
            Kind::Skip => "skip".to_owned(),
        })
    }
}

/// Returns a payload without its second part, the process.
fn without_process(payload: &str) -> String {
    let mut parts = payload.splitn(3, '|');
    let (kind, _process, rest) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    rest.map_or_else(|| kind.to_owned(), |rest| format!("{kind}|{rest}"))
}
