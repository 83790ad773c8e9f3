//! Pairs of functions that begin and end sections: one is of use only with the other.

use std::mem;

use nntrace_common::nested_functions::FunctionKind;

use super::argument_layout::{Role, SECTION_FUNCTIONS};
use super::function_search::MarkFunction;

/// Returns the kind of a mark function: each pair of functions that begin and end sections is one kind, and all
/// functions that write whole marks are another.
#[must_use]
pub(crate) fn kind(function: &MarkFunction) -> FunctionKind {
    kind_of(function.found.role, &function.found.wanted)
}

/// Returns the kind of a function that is looked for by this name.
#[must_use]
pub(crate) fn kind_of(role: Role, wanted: &str) -> FunctionKind {
    let is = |(_, begin, end): &(FunctionKind, &str, &str)| match role {
        Role::Mark => false,
        Role::Begin => *begin == wanted,
        Role::End => *end == wanted,
    };
    SECTION_FUNCTIONS.into_iter().find(is).map_or(FunctionKind::Mark, |(kind, ..)| kind)
}

/// Removes the begins that have no end beside them in the same file and class, and vice versa; returns them.
pub(crate) fn take_unpaired(functions: &mut Vec<MarkFunction>) -> Vec<MarkFunction> {
    let all = functions.clone();
    let has_partner = |function: &MarkFunction| {
        let is_partner = |other: &MarkFunction| {
            other.found.role != function.found.role
                && other.object == function.object
                && kind(other) == kind(function)
                && scope(other) == scope(function)
        };
        function.found.role == Role::Mark || all.iter().any(is_partner)
    };
    let (paired, lonely) = mem::take(functions).into_iter().partition(has_partner);
    *functions = paired;
    lonely
}

/// Returns the part before the name: the class or namespace.
fn scope(function: &MarkFunction) -> Option<&str> {
    function.found.demangled.find(&function.found.wanted).map(|at| &function.found.demangled[..at])
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::live::target::{Layout, ObjectId, PinnedFile, ProbePoints, symbols::Found};

    fn function(inode: u64, role: Role, wanted: &str, scope: &str) -> MarkFunction {
        MarkFunction {
            object: ObjectId { device: 1, inode },
            path: PinnedFile::at(Path::new("/proc/self/exe")).unwrap(),
            display_path: PathBuf::new(),
            found: Found {
                wanted: wanted.into(),
                symbol: wanted.into(),
                demangled: format!("{scope}{wanted}()"),
                role,
                offset: 0,
                points: ProbePoints { nop: None, plain: 0, is_emulated: false },
                length: 0,
                may_jump: false,
                layout: Layout::Buf,
                layout_guessed: false,
            },
        }
    }

    #[test]
    fn partners_are_of_one_file_one_pair_and_one_class() {
        let mut functions = vec![
            function(1, Role::Begin, "ATrace_beginSection", ""),
            function(1, Role::End, "ATrace_endSection", ""),
            function(1, Role::Begin, "atrace_begin_body", ""),
            function(2, Role::End, "atrace_end_body", ""),
            function(3, Role::Begin, "ATrace_beginSection", "a::"),
            function(3, Role::End, "ATrace_endSection", "b::"),
            function(3, Role::Mark, "tracing_mark_write", ""),
        ];
        let whole = [functions[0].clone(), functions[1].clone(), functions[6].clone()];
        let lonely = take_unpaired(&mut functions);
        assert_eq!(functions, whole);
        assert_eq!(lonely.len(), 4);
        let kinds: Vec<FunctionKind> = lonely.iter().chain(&whole).map(kind).collect();
        let (body, ndk) = (FunctionKind::Body, FunctionKind::Ndk);
        assert_eq!(kinds, [body, body, ndk, ndk, ndk, ndk, FunctionKind::Mark]);
    }
}
