//! The mark functions in all files that a target maps, and what to say when there are none.

use std::fmt::{self, Write as _};
use std::path::PathBuf;

use super::layout::{Layout, Role, SymbolSpec};
use super::objects::{Object, ObjectId, Objects};
use super::points::ProbePoints;
use super::symbols::{Found, Near, NearReason, choose, search_file, similar_in_file};

/// Files listed in the text for a search that found nothing.
const MOST_LISTED: usize = 20;

/// A function to probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkFunction {
    /// The file it is in.
    pub object: ObjectId,
    /// Where we open that file.
    pub path: PathBuf,
    /// What the target calls it.
    pub display_path: PathBuf,
    /// The name it was looked for by.
    pub wanted: String,
    /// Its symbol, without a version.
    pub symbol: String,
    /// Its name as people write it.
    pub demangled: String,
    /// What it does.
    pub role: Role,
    /// Its first instruction, as an offset in the file.
    pub offset: u64,
    /// Where it can be probed.
    pub points: ProbePoints,
    /// Its length in bytes; 0 where the file does not tell.
    pub length: u64,
    /// Whether it may end by a jump to another mark function.
    pub may_jump: bool,
    /// Where it takes its text.
    pub layout: Layout,
    /// Whether the layout is only the likely one: `--symbol` may have to say it.
    pub layout_guessed: bool,
}

/// A file that was looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Searched {
    /// What the target calls it.
    pub path: PathBuf,
    /// How many functions it names.
    pub named_functions: usize,
    /// Whether it was stripped, and names only what it exports.
    pub stripped: bool,
}

/// A function that may be the one meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NearMatch {
    /// What the target calls the file it is in.
    pub path: PathBuf,
    /// The function.
    pub function: Near,
}

/// A file that could not be looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// What the target calls it.
    pub path: PathBuf,
    /// Why, and what to do.
    pub reason: String,
}

/// All that a search found. [`SearchReport::nothing_found`] tells it to the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SearchReport {
    /// The names looked for.
    pub wanted: Vec<String>,
    /// The functions to probe.
    pub functions: Vec<MarkFunction>,
    /// Every file that was looked into.
    pub searched: Vec<Searched>,
    /// Functions that look like the ones looked for, of files that hold none.
    pub near: Vec<NearMatch>,
    /// Files that could not be looked into.
    pub failed: Vec<Failed>,
}

impl SearchReport {
    /// Looks for functions in the files that a process maps.
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

    /// Looks into one more file.
    pub(crate) fn add(&mut self, object: &Object, specs: &[SymbolSpec]) {
        let path = object.display_path.clone();
        match search_file(&object.path, specs) {
            Err(error) => self.failed.push(Failed { path, reason: error.reason.to_string() }),
            Ok(file) => {
                self.functions.extend(file.functions.into_iter().map(|found| in_object(object, found)));
                let near = |function| NearMatch { path: path.clone(), function };
                self.near.extend(file.near.into_iter().map(near));
                let (named_functions, stripped) = (file.named_functions, file.stripped);
                self.searched.push(Searched { path, named_functions, stripped });
            }
        }
    }

    /// Adds what is like the functions looked for. A file that cannot be read is listed already.
    fn add_similar(&mut self, object: &Object, specs: &[SymbolSpec]) {
        let path = &object.display_path;
        let mut similar = similar_in_file(&object.path, specs).unwrap_or_default();
        // Those that hold the very name come first, and take their places among the five.
        let known = self.near.extract_if(.., |near| near.path == *path).map(|near| near.function);
        similar.extend(known.collect::<Vec<_>>());
        choose(&mut similar);
        self.near.extend(similar.into_iter().map(|function| NearMatch { path: path.clone(), function }));
    }

    /// Takes in what another search found, as for another process of the target. Files met before stay once.
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
        extend(&mut self.searched, other.searched);
        extend(&mut self.near, other.near);
        extend(&mut self.failed, other.failed);
    }

    /// Why there is nothing to probe in `target`, and what to do: a text of several lines.
    #[must_use]
    pub(crate) fn nothing_found(&self, target: &str) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = self.write_nothing_found(&mut text, target);
        text
    }

    fn write_nothing_found(&self, out: &mut String, target: &str) -> fmt::Result {
        writeln!(out, "no function named {} in {target}", self.wanted.join(" or "))?;
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
        self.write_next_steps(out)
    }

    fn write_next_steps(&self, out: &mut String) -> fmt::Result {
        let example = self.near.first().map_or("my_mark_write", |near| near.function.plain_name());
        writeln!(out, "\nwhat to do:")?;
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
    /// The name that `--symbol` takes.
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

fn in_object(object: &Object, found: Found) -> MarkFunction {
    MarkFunction {
        object: object.id,
        path: object.path.clone(),
        display_path: object.display_path.clone(),
        wanted: found.wanted,
        symbol: found.symbol,
        demangled: found.demangled,
        role: found.role,
        offset: found.offset,
        points: found.points,
        length: found.length,
        may_jump: found.may_jump,
        layout: found.layout,
        layout_guessed: found.layout_guessed,
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
