//! Description of a probe as the kernel programs take it.

use nntrace_common::{
    engine::{self, Action},
    mark::{self, Label, Prefix},
};

use crate::live::{
    engines::probe::{End, EngineProbe, Kind, Level, NameForm, NameRecipe},
    kernel::engines::ReturnPlaces,
};

/// Probe as the kernel programs take it.
pub(super) struct Description {
    pub probe: engine::EngineProbe,
    pub returns: ReturnPlaces,
    /// Names that the programs do not read themselves, by hash.
    pub names: Vec<(u64, String)>,
    /// Hashes of the names of numbers.
    pub values: Vec<(u32, u64)>,
    /// Remark on something that is not as the map wants it.
    pub remark: Option<String>,
}

/// Whether the text that names a probe's sections has to change with the object it is read from: it stands in one, and many
/// objects pass the probes of the entry.
pub(super) fn has_own_names(probe: &EngineProbe) -> bool {
    let in_object =
        |name: &NameRecipe| name.length > 0 && !matches!(name.form, NameForm::Enum | NameForm::Tokens);
    probe.level == Level::Op && probe.name.as_ref().is_some_and(in_object)
}

/// Describes a probe; `begun_by` is the number of the probe that begins the bracket which it ends.
///
/// # Errors
/// When it cannot be described, with the reason.
pub(super) fn describe(probe: &EngineProbe, begun_by: Option<u32>) -> Result<Description, String> {
    let (action, object) = match probe.kind {
        Kind::Section => (Action::Section, 0),
        Kind::BracketBegin => (Action::BracketBegin, 0),
        Kind::BracketEnd => (Action::BracketEnd, 0),
        Kind::AsyncBegin { argument } => (Action::AsyncBegin, argument),
        Kind::AsyncEnd { argument } => (Action::AsyncEnd, argument),
    };
    let begun_by = match (action, begun_by) {
        (Action::BracketEnd, Some(number)) => number,
        (Action::BracketEnd, None) => {
            return Err("no function that begins what it ends is probed".to_owned());
        }
        _ => 0,
    };
    let (name, text) = named(&probe.fallback_name);
    let mut names = vec![(name, text)];
    let mut values = Vec::new();
    let mut remark = None;
    let recipe = match probe.name.as_ref().map(recipe) {
        Some(Ok(recipe)) => recipe,
        Some(Err(reason)) => {
            remark = Some(reason);
            engine::NameRecipe::default()
        }
        None => engine::NameRecipe::default(),
    };
    if let Some(NameRecipe { values: texts, .. }) = &probe.name {
        for (value, text) in (0..).zip(texts).filter(|(_, text)| !text.is_empty()) {
            let (hash, text) = named(text);
            values.push((value, hash));
            names.push((hash, text));
        }
    }
    let returns = match &probe.end {
        End::Returns(offsets) | End::SomeReturns(offsets) => ReturnPlaces::Instructions(offsets.clone()),
        End::ReturnProbe => ReturnPlaces::AfterReturn,
        End::StackPointer | End::None => ReturnPlaces::Unseen,
    };
    let prefix = match (probe.prefix, action) {
        (Prefix::None, Action::AsyncBegin | Action::AsyncEnd) => Prefix::Part,
        (Prefix::None, _) if probe.on_workers => Prefix::Handed,
        (prefix, _) => prefix,
    };
    let probe = engine::EngineProbe {
        name,
        label: Label::tagged(probe.tag),
        prefix,
        action,
        ends_unseen: u8::from(matches!(probe.end, End::StackPointer | End::SomeReturns(_))),
        pushed: probe.entry_sp_offset,
        recipe,
        begun_by,
        object: u32::from(object),
        entry: 0,
    };
    Ok(Description { probe, returns, names, values, remark })
}

/// Returns the hash of a name, and the name as it is hashed: `#` begins attributes in marks, and a name has none.
pub(super) fn named(name: &str) -> (u64, String) {
    let mut text = name.replace(['#', '\n', '\0'], ".");
    let mut end = text.len().min(mark::MARK_BYTES - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    (mark::name_hash(text.as_bytes(), 0), text)
}

/// Returns the way to a name as the programs take it.
fn recipe(recipe: &NameRecipe) -> Result<engine::NameRecipe, String> {
    let mut chain: Vec<i32> = recipe.chain.into_iter().take(recipe.length.into()).collect();
    let form = match recipe.form {
        NameForm::CString => engine::NameForm::CString,
        // Its first word is a pointer to the text, wherever that is.
        NameForm::StdString => {
            if chain.is_empty() {
                chain.push(0);
            }
            engine::NameForm::CString
        }
        NameForm::Inline => engine::NameForm::Inline,
        NameForm::LibcxxString => engine::NameForm::LibcxxString,
        NameForm::Enum => engine::NameForm::Enum,
        NameForm::Tokens => engine::NameForm::Tokens,
    };
    let mut offsets = [0; engine::MAX_STEPS];
    for (to, from) in offsets.iter_mut().zip(&chain) {
        *to = u16::try_from(*from)
            .map_err(|_| format!("its names are not read: the offset {from} is beyond 0 to {}", u16::MAX))?;
    }
    let steps = u8::try_from(chain.len()).unwrap_or(0);
    let NameRecipe { argument, element, other, .. } = *recipe;
    Ok(engine::NameRecipe { argument, form: form as u8, steps, element, offsets, other, reserved: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(form: NameForm, chain: &[i32]) -> NameRecipe {
        let mut all = [0; 4];
        all[..chain.len()].copy_from_slice(chain);
        NameRecipe {
            argument: 1,
            chain: all,
            length: chain.len() as u8,
            form,
            values: Vec::new(),
            other: 0,
            element: 0,
        }
    }

    #[test]
    fn a_string_of_libstdcxx_is_the_text_at_its_first_word() {
        let described = |form, chain: &[i32]| {
            recipe(&of(form, chain)).map(|recipe| (recipe.form, recipe.steps, recipe.offsets))
        };
        let cstring = engine::NameForm::CString as u8;
        assert_eq!(described(NameForm::CString, &[]), Ok((cstring, 0, [0; 4])));
        assert_eq!(described(NameForm::StdString, &[]), Ok((cstring, 1, [0; 4])));
        assert_eq!(described(NameForm::StdString, &[8, 264]), Ok((cstring, 2, [8, 264, 0, 0])));
        assert!(described(NameForm::Inline, &[-8]).is_err());
    }

    #[test]
    fn names_are_hashed_as_they_are_kept() {
        for name in ["Conv", "run()::{lambda()#1}", "a\nb", &"ü".repeat(200)] {
            let (hash, text) = named(name);
            assert_eq!(mark::name(text.as_bytes(), 0), text.as_bytes(), "{name}");
            assert_eq!(hash, mark::name_hash(text.as_bytes(), 0));
        }
    }
}
