//! Search for mark functions in all files that a target maps, and the message when there are none.

use std::fmt::{self, Write as _};
use std::path::PathBuf;

use super::argument_layout::SymbolSpec;
use super::elf_error::ElfErrorReason;
use super::mapped_files::{Object, Objects};
use super::object_id::ObjectId;
use super::pinned_file::PinnedFile;
use super::symbols::{Found, Near, NearReason, choose, search_file, similar_in_file};

/// Files listed in that message at most.
const MOST_LISTED: usize = 20;

/// Function to probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkFunction {
    /// File that contains it.
    pub object: ObjectId,
    /// That file, to open and to probe.
    pub path: PinnedFile,
    /// Path of the file in the target's view.
    pub display_path: PathBuf,
    /// Function in the file.
    pub found: Found,
}

/// Function that offers lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaneFunction {
    /// File that contains it.
    pub object: ObjectId,
    /// That file, to open and to probe.
    pub path: PinnedFile,
    /// Path of the file in the target's view.
    pub display_path: PathBuf,
    /// Offset of its first instruction in the file.
    pub offset: u64,
    /// Offset of its semaphore in the file.
    pub semaphore: u64,
}

/// File that was searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Searched {
    /// Path in the target's view.
    pub path: PathBuf,
    /// Number of functions that it names.
    pub named_functions: usize,
    /// Whether it was stripped, and names only its exports.
    pub stripped: bool,
}

/// Function that may be the one meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NearMatch {
    /// Path of its file in the target's view.
    pub path: PathBuf,
    /// The function.
    pub function: Near,
}

/// File that could not be searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// Path in the target's view.
    pub path: PathBuf,
    /// Reason and remedy.
    pub reason: String,
}

/// Results of a search, with a message for the user in [`SearchReport::nothing_found`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SearchReport {
    /// Names looked for.
    pub wanted: Vec<String>,
    /// Functions to probe.
    pub functions: Vec<MarkFunction>,
    /// Functions that offer lanes.
    pub lanes: Vec<LaneFunction>,
    /// Files searched.
    pub searched: Vec<Searched>,
    /// Functions similar to the ones looked for, in files that have none.
    pub near: Vec<NearMatch>,
    /// Files that could not be searched.
    pub failed: Vec<Failed>,
    /// Remarks on what was not found although it may be there.
    pub notes: Vec<String>,
}

impl SearchReport {
    /// Searches the files that a process maps.
    #[must_use]
    pub(crate) fn of(objects: &Objects, specs: &[SymbolSpec]) -> Self {
        let mut report =
            Self { wanted: specs.iter().filter_map(SymbolSpec::wanted).collect(), ..Self::default() };
        for unopened in &objects.failed {
            let path = unopened.display_path.clone();
            report.failed.push(Failed { path, reason: unopened.reason.to_string() });
        }
        for object in &objects.objects {
            report.add(object, specs);
        }
        if report.functions.is_empty() {
            for object in &objects.objects {
                report.add_similar(object, specs);
            }
        }
        report
    }

    /// Searches one more file.
    pub(crate) fn add(&mut self, object: &Object, specs: &[SymbolSpec]) {
        let path = object.display_path.clone();
        let searched = object.pin().map_err(|error| ElfErrorReason::from(error).in_file(&object.path));
        match searched.and_then(|pinned| Ok((search_file(&pinned, specs)?, pinned))) {
            Err(error) => {
                if matches!(error.reason, ElfErrorReason::Cut | ElfErrorReason::NotExamined(_)) {
                    self.notes.push(format!("{}: {}", path.display(), error.reason));
                }
                self.failed.push(Failed { path, reason: error.reason.to_string() });
            }
            Ok((file, pinned)) => {
                self.notes.extend(file.left_out().iter().map(|note| format!("{}: {note}", path.display())));
                self.functions
                    .extend(file.functions.into_iter().map(|found| in_object(object, &pinned, found)));
                self.lanes.extend(file.lanes.into_iter().map(|point| LaneFunction {
                    object: object.id(),
                    path: pinned.clone(),
                    display_path: object.display_path.clone(),
                    offset: point.offset,
                    semaphore: point.semaphore,
                }));
                let near = |function| NearMatch { path: path.clone(), function };
                self.near.extend(file.near.into_iter().map(near));
                let (named_functions, stripped) = (file.named_functions, file.stripped);
                self.searched.push(Searched { path, named_functions, stripped });
            }
        }
    }

    /// Adds similar functions. A file that cannot be read is already listed.
    fn add_similar(&mut self, object: &Object, specs: &[SymbolSpec]) {
        let path = &object.display_path;
        let similar = object.pin().ok().and_then(|pinned| similar_in_file(&pinned, specs).ok());
        let mut similar = similar.unwrap_or_default();
        // Those that have the very name come first among the five.
        let known = self.near.extract_if(.., |near| near.path == *path).map(|near| near.function);
        similar.extend(known.collect::<Vec<_>>());
        choose(&mut similar);
        self.near.extend(similar.into_iter().map(|function| NearMatch { path: path.clone(), function }));
    }

    /// Merges another search, as of another process of the target. Files in both are kept once.
    pub(crate) fn merge(&mut self, other: Self) {
        fn extend<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
            for item in more {
                if !all.contains(&item) {
                    all.push(item);
                }
            }
        }
        extend(&mut self.wanted, other.wanted);
        extend(&mut self.functions, other.functions);
        extend(&mut self.lanes, other.lanes);
        extend(&mut self.searched, other.searched);
        extend(&mut self.near, other.near);
        extend(&mut self.failed, other.failed);
    }

    /// Returns the reason why there is nothing to probe in `target`, and the remedies, in several lines; `engines` are those
    /// that were looked for as well.
    #[must_use]
    pub(crate) fn nothing_found(&self, target: &str, engines: Option<&str>) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_nothing_found(&mut text, target, engines);
        text
    }

    fn write_nothing_found(&self, out: &mut String, target: &str, engines: Option<&str>) -> fmt::Result {
        let wanted = self.wanted.join(" or ");
        match engines {
            Some(engines) => writeln!(out, "neither {engines} nor a function named {wanted} in {target}")?,
            None => writeln!(out, "no function named {wanted} in {target}")?,
        }
        writeln!(out, "\nlooked into {}:", count(self.searched.len(), "file"))?;
        for file in self.searched.iter().take(MOST_LISTED) {
            writeln!(out, "  {}: {}", file.path.display(), file.outcome())?;
        }
        if let Some(more) = self.searched.len().checked_sub(MOST_LISTED).filter(|&more| more > 0) {
            writeln!(out, "  and {more} more")?;
        }
        if !self.failed.is_empty() {
            writeln!(out, "\ncould not look into:")?;
        }
        for file in &self.failed {
            writeln!(out, "  {}: {}", file.path.display(), file.reason)?;
        }
        if !self.near.is_empty() {
            writeln!(out, "\nfunctions like it:")?;
        }
        for NearMatch { path, function } in &self.near {
            writeln!(out, "  {} in {}: {}", function.demangled, path.display(), function.why)?;
        }
        self.write_next_steps(out, engines.is_some())
    }

    fn write_next_steps(&self, out: &mut String, for_engines: bool) -> fmt::Result {
        let example = self.near.first().map_or("my_mark_write", |near| near.function.plain_name());
        writeln!(out, "\nwhat to do:")?;
        if for_engines {
            writeln!(
                out,
                "  it runs an engine: `nntrace-bpf engines FILE` says what is recognized in a file; --map FILE adds one"
            )?;
        }
        writeln!(
            out,
            "  the function has another name: --symbol {example}=buf (or =buf,len  =this,buf  =this,buf,len)"
        )?;
        writeln!(
            out,
            "  it is in a library that is loaded later: it is found then; --lib PATH finds it now"
        )?;
        writeln!(out, "  it writes to trace_marker itself: --marks syscall")?;
        if self.searched.iter().any(|file| file.stripped) {
            writeln!(
                out,
                "  it is in a stripped file: build that one without strip or -s, or export the function"
            )?;
            writeln!(out, "    (-rdynamic for an executable; default visibility in a library)")?;
        }
        Ok(())
    }
}

impl Searched {
    fn outcome(&self) -> String {
        match (self.named_functions, self.stripped) {
            (0, _) => "stripped, names no functions".to_owned(),
            (named, true) => format!("stripped, exports {}", count(named, "function")),
            (named, false) => count(named, "function"),
        }
    }
}

impl Near {
    /// Returns the name in the form for `--symbol`.
    fn plain_name(&self) -> &str {
        self.demangled.split('(').next().filter(|name| !name.is_empty()).unwrap_or(&self.demangled)
    }
}

impl fmt::Display for NearReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Arguments => "has the name, but other arguments than text, or text and length",
            Self::NoFunction => "has the name, but is not marked as a function of this file",
            Self::Name => "a like name",
        })
    }
}

fn in_object(object: &Object, pinned: &PinnedFile, found: Found) -> MarkFunction {
    MarkFunction {
        object: object.id(),
        path: pinned.clone(),
        display_path: object.display_path.clone(),
        found,
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
