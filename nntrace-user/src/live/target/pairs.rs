//! Functions that begin and end sections belong together: one is of use only with the other.

use std::mem;

use super::layout::{Role, SECTION_FUNCTIONS};
use super::search::MarkFunction;

/// Which functions a mark function is one of: those that begin and end sections are one kind for each pair, and all
/// that write whole marks are another. Only functions of different kinds call one another for one mark.
#[must_use]
pub fn kind(function: &MarkFunction) -> usize {
    let is = |(begin, end): &(&str, &str)| match function.role {
        Role::Mark => false,
        Role::Begin => *begin == function.wanted,
        Role::End => *end == function.wanted,
    };
    SECTION_FUNCTIONS.iter().position(is).unwrap_or(SECTION_FUNCTIONS.len())
}

/// Takes out the begins that have no end beside them in the same file and class, and the other way round; returns them.
pub fn take_lonely(functions: &mut Vec<MarkFunction>) -> Vec<MarkFunction> {
    let all = functions.clone();
    let has_partner = |function: &MarkFunction| {
        let is_partner = |other: &MarkFunction| {
            other.role != function.role
                && other.object == function.object
                && kind(other) == kind(function)
                && scope(other) == scope(function)
        };
        function.role == Role::Mark || all.iter().any(is_partner)
    };
    let (paired, lonely) = mem::take(functions).into_iter().partition(has_partner);
    *functions = paired;
    lonely
}

/// What stands before the name: the class or namespace.
fn scope(function: &MarkFunction) -> Option<&str> {
    function.demangled.find(&function.wanted).map(|at| &function.demangled[..at])
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::live::target::{Layout, ObjectId};

    fn function(inode: u64, role: Role, wanted: &str, scope: &str) -> MarkFunction {
        MarkFunction {
            object: ObjectId { device: 1, inode },
            path: PathBuf::new(),
            display_path: PathBuf::new(),
            wanted: wanted.into(),
            symbol: wanted.into(),
            demangled: format!("{scope}{wanted}()"),
            role,
            offset: 0,
            layout: Layout::Buf,
            layout_guessed: false,
            nop_length: 0,
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
        let lonely = take_lonely(&mut functions);
        assert_eq!(functions, whole);
        assert_eq!(lonely.len(), 4);
        assert_eq!(lonely.iter().map(kind).collect::<Vec<_>>(), [0, 0, 1, 1]);
        assert_ne!(kind(&whole[2]), kind(&whole[0]));
    }
}
