//! The engine of `tests/native/engine-ends`, whose functions end in every way, and what a profile of it has to show.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use nntrace_common::{diagnostic::DiagnosticKind, layer::Tag};
use nntrace_user::report::snapshot::Snapshot;

use crate::{
    native,
    profiler::{Profiler, Run},
    results::Results as _,
    truth::Bounds,
};

/// File name of the program.
const PROGRAM: &str = "calls";
/// File name of the library.
const LIBRARY: &str = "libengine.so";
/// File name of the map.
const MAP: &str = "engine.toml";
/// How often the program takes a way.
const ROUNDS: u64 = 20;
/// Time between calls in which nothing of the engine runs, where one was left before, ns.
const PAUSES: u64 = ROUNDS * 5_000_000;

/// A way in which functions end: what each round of it has.
#[derive(Debug)]
pub struct Way {
    /// Argument of the program.
    pub name: &'static str,
    /// Tag, name and number of the sections.
    sections: &'static [(&'static str, &'static str, u64)],
    /// Functions that are left without a return, in two rounds.
    unwound: u64,
    /// Sections without an end, in a round.
    open_at_end: u64,
}

/// All ways.
pub const WAYS: [Way; 11] = [
    Way {
        name: "throws",
        sections: &[
            ("LC_PE", "ends_throw", 3),
            ("LR_PE", "ends_throw_through", 1),
            ("LR_PE", "ends_catch", 1),
            ("LR_PE", "ends_run", 2),
        ],
        unwound: 2 * 4,
        open_at_end: 0,
    },
    Way {
        name: "jumps",
        sections: &[("LC_PE", "ends_jump", 2), ("LR_PE", "ends_jump_through", 1), ("LR_PE", "ends_run", 2)],
        unwound: 2 * 3,
        open_at_end: 0,
    },
    // Functions that end by a jump, always or in one of two rounds, are not counted: that is how they end.
    Way {
        name: "hops",
        sections: &[
            ("LR_PE", "ends_hop", 1),
            ("LC_PE", "ends_land", 1),
            ("LR_PE", "ends_hop_away", 1),
            ("LR_PE", "ends_hop_sometimes", 1),
            ("LR_PE", "ends_run", 2),
        ],
        unwound: 0,
        open_at_end: 0,
    },
    Way {
        name: "returns",
        sections: &[
            ("LR_PI", "/models/net", 1),
            ("LC_PE", "ends_recurse", 1),
            ("LC_PE", "ends_at_many_places", 1),
        ],
        unwound: 0,
        open_at_end: 0,
    },
    Way {
        name: "stages",
        sections: &[("LC_PE", "Conv", 2), ("LC_PE", "Pool", 1), ("LR_PE", "ends_run", 1)],
        unwound: 2,
        open_at_end: 0,
    },
    Way {
        name: "deeper",
        sections: &[("LC_PE", "ends_throw", 1), ("LR_PE", "ends_run", 2)],
        unwound: 2,
        open_at_end: 0,
    },
    Way {
        name: "threads",
        sections: &[
            ("LR_PE", "ends_cancelled", 3),
            ("LR_PE", "ends_hop_away", 1),
            ("LR_PE", "ends_run", 3 + 4),
        ],
        unwound: 2 * 3,
        open_at_end: 0,
    },
    // Of two functions on different stacks, one is taken for left when the other one returns, or is entered.
    Way {
        name: "lower",
        sections: &[("LC_PE", "ends_elsewhere", 1), ("LR_PE", "ends_run", 1)],
        unwound: 2,
        open_at_end: 0,
    },
    Way {
        name: "upper",
        sections: &[("LC_PE", "ends_elsewhere", 2), ("LR_PE", "ends_run", 1)],
        unwound: 2,
        open_at_end: 0,
    },
    // More functions than there is room for at once: the latest ones give way, and the thread's own ones count.
    Way {
        name: "abandoned_below",
        sections: &[("LC_PE", "ends_elsewhere", 1), ("LC_PE", "ends_land", 24)],
        unwound: 2 * 24,
        open_at_end: 0,
    },
    // Those on higher stacks may yet go on, for all that is known, until the thread ends: all others are inside of these.
    Way {
        name: "abandoned_above",
        sections: &[("LC_PE", "ends_elsewhere", 0), ("LC_PE", "ends_land", 24)],
        unwound: 2 * (24 - 15),
        open_at_end: 15,
    },
];

/// Built engine, with the program that calls it.
pub struct EngineEnds {
    folder: PathBuf,
}

/// Results of a profiled run.
#[derive(Debug)]
pub struct Profiled {
    /// Last snapshot.
    pub snapshot: Snapshot,
    /// Process id of the program.
    pub pid: u32,
    /// Time of the functions by the program's own clock.
    times: BTreeMap<String, Bounds>,
}

impl EngineEnds {
    /// Builds it in this folder, with more flags for the library.
    ///
    /// # Errors
    /// When there is no compiler, or it refuses.
    pub fn build(folder: &Path, flags: &[&str]) -> Result<Self> {
        let source = |name: &str| native::source("engine-ends").join(name);
        let own = Self { folder: folder.to_owned() };
        let library = [
            "c++",
            "-std=c++11",
            "-O2",
            "-fPIC",
            "-shared",
            "-fvisibility=hidden",
            "-Wl,-soname,libengine.so",
        ];
        native::compile(&[&library, flags].concat(), &[&source("engine.cc")], &own.library())?;
        let search = format!("-L{}", folder.display());
        let program = ["c++", "-std=c++11", "-O2", &search, "-lengine", "-Wl,-rpath,$ORIGIN"];
        native::compile(&program, &[&source("calls.cc"), &source("coroutines.cc")], &own.program())?;
        fs::copy(source(MAP), own.map())?;
        Ok(own)
    }

    /// Builds a program that loads engines by their paths; returns its path.
    ///
    /// # Errors
    /// As of [`EngineEnds::build`].
    pub fn loader(folder: &Path) -> Result<PathBuf> {
        let program = folder.join("loads");
        let source = native::source("engine-ends").join("loads.cc");
        native::compile(&["c++", "-std=c++11", "-O2", "-ldl"], &[&source], &program)?;
        Ok(program)
    }

    /// Takes the one that is built in this folder.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.folder.join(PROGRAM)
    }

    /// Returns the path of the library.
    #[must_use]
    pub fn library(&self) -> PathBuf {
        self.folder.join(LIBRARY)
    }

    /// Returns the path of the map.
    #[must_use]
    pub fn map(&self) -> PathBuf {
        self.folder.join(MAP)
    }

    /// Profiles the program on one of its ways.
    ///
    /// # Errors
    /// When it does not end as it should.
    pub fn profile(&self, way: &str) -> Result<Profiled> {
        let profiler = Profiler::new()?.args(["--engine-level", "op", "--map"]).args([self.map()]);
        let Run { snapshot, ended } = profiler.launch([&self.program(), Path::new(way)])?;
        let text = ended.expect_code(0)?.text();
        let times = serde_json::from_str(&text).with_context(|| text.clone())?;
        let [pid] = snapshot.pids()[..] else {
            anyhow::bail!("processes: {:?}; {:?}", snapshot.pids(), snapshot.notes)
        };
        Ok(Profiled { snapshot, pid, times })
    }

    /// Profiles the program on a way, and checks the result.
    ///
    /// # Errors
    /// With the first difference.
    pub fn check(&self, way: &Way) -> Result<Profiled> {
        let profiled = self.profile(way.name).with_context(|| way.name)?;
        profiled.check(way).with_context(|| {
            format!("{}: {:#?} {:?}", way.name, profiled.snapshot.functions, profiled.snapshot.diagnostics)
        })?;
        Ok(profiled)
    }
}

impl Profiled {
    /// Returns the number of sections by tag and name.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<(String, &str), u64> {
        let rows = self.snapshot.functions.iter().filter(|row| row.pid == self.pid);
        rows.map(|row| ((Tag::new(row.layer, row.phase).to_string(), row.name.as_str()), row.count)).collect()
    }

    fn check(&self, way: &Way) -> Result<()> {
        let wanted: BTreeMap<(String, &str), u64> =
            way.sections.iter().map(|&(tag, name, count)| ((tag.to_owned(), name), ROUNDS * count)).collect();
        let counts = self.counts();
        ensure!(counts == wanted, "sections are {counts:?}, expected {wanted:?}");
        let odd: BTreeMap<&str, u64> = [
            (DiagnosticKind::Unwound, ROUNDS / 2 * way.unwound),
            (DiagnosticKind::OpenAtEnd, ROUNDS * way.open_at_end),
        ]
        .into_iter()
        .filter(|&(_, count)| count > 0)
        .map(|(kind, count)| (kind.name(), count))
        .collect();
        let found = self.snapshot.odd_marks();
        ensure!(found == odd, "diagnostics are {found:?}, expected {odd:?}");
        for (name, bounds) in &self.times {
            let row = self.snapshot.functions.iter().find(|row| row.name == *name);
            let total = row.with_context(|| format!("{name} has no section"))?.total_ns;
            ensure!(
                (bounds.least_ns..=bounds.most_ns).contains(&total),
                "{name} took {total} ns, and {bounds:?} by the program's clock"
            );
        }
        // The program waits between the calls of some, which is in none of their times.
        let all = || self.snapshot.phases.iter().filter(|row| row.pid == self.pid);
        let longest = all().map(|row| row.total_ns).max().unwrap_or_default();
        ensure!(
            way.name != "deeper" || longest < PAUSES,
            "a section went on after its exception: {longest} ns"
        );
        Ok(())
    }
}
