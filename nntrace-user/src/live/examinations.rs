//! All examinations of files, which processes without privileges do for this one.

use std::{env, io, path::Path};

use serde_json::Value;

use super::{
    calls::{Named, Soname},
    engines::{
        CandidateSearch,
        examination::{Engines, ExportedFunction},
    },
    target::{
        EntryOffset, Export, Interpreter, MarkFunctions, Obstacle, PointsAt, SimilarFunctions,
        examiner::{self, ARGUMENT, Examination, Prepared, prepared},
    },
};

/// Prepares the one of these examinations that has the name.
macro_rules! prepare_by_name {
    ($name:ident, $question:ident: $($examination:ident),+) => {
        match $name {
            $(<$examination as Examination>::NAME => prepared::<$examination>($question),)+
            _ => None,
        }
    };
}

fn prepare(name: &str, question: Value) -> Option<Prepared> {
    prepare_by_name!(
        name, question: CandidateSearch, Engines, EntryOffset, Export, ExportedFunction, Interpreter, MarkFunctions, Named, Obstacle, PointsAt,
        SimilarFunctions, Soname
    )
}

/// Has programs and libraries parsed by processes without privileges from now on. Their server runs this program, whose `main`
/// calls [`serve_if_asked`] first.
///
/// # Errors
/// When that does not start, or cannot give up its rights.
pub fn examine_files_apart() -> io::Result<Examiners> {
    let failed = |error| {
        let text = "the server that has programs and libraries parsed without privileges does not start from /proc/self/exe, which has \
                    to be this program";
        io::Error::other(format!("{text}: {error}"))
    };
    examiner::start(Path::new("/proc/self/exe")).map(|()| Examiners(())).map_err(failed)
}

/// Processes that parse files; dropping this ends them.
#[must_use = "files are parsed by other processes until this is dropped"]
pub struct Examiners(());

impl Drop for Examiners {
    fn drop(&mut self) {
        examiner::end();
    }
}

/// Has files parsed for the process at the other end of the standard input, until that ends, if this process was started for
/// that by [`examine_files_apart`]; `None` if it was not. All rights are given up before.
///
/// # Errors
/// When rights cannot be given up, or a message is damaged.
#[must_use]
pub fn serve_if_asked() -> Option<io::Result<()>> {
    let mut arguments = env::args_os().skip(1);
    let is_asked = arguments.next().is_some_and(|first| first == ARGUMENT) && arguments.next().is_none();
    is_asked.then(|| examiner::serve(prepare))
}
