//! Programs that are attached to many places of a file, each with a cookie: by one link where the kernel can (Linux 6.6),
//! else by a perf event for each (Linux 5.15).

use std::{io, path::Path};

use aya::programs::uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeLinkId, UProbeScope};
use nntrace_common::time_count::TimeCount;

use super::{
    error::{KernelError, attach_error},
    multi_probes::{MultiLink, MultiProgram},
    object::Object,
};
use crate::live::target::{ObjectId, PinnedFile};

/// Place in a file that a program is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Offset of the instruction in the file.
    pub(super) offset: u64,
    /// Number that the program gets there.
    pub(super) cookie: u64,
}

/// Programs in the form that this kernel supports.
pub(super) enum Form {
    /// One link for all places of a file.
    Multi(Vec<MultiProgram>),
    /// A perf event for each place.
    Single,
}

/// Programs, and the places that they are attached to.
pub(super) struct PlacePrograms {
    names: &'static [&'static str],
    /// Names of programs for kernels that lack what the others need.
    plain: &'static [&'static str],
    /// Form, once they are loaded.
    pub(super) form: Option<Form>,
    /// Links for many places of a file, with the file of each.
    multi_links: Vec<(ObjectId, MultiLink)>,
    single_links: Vec<(ObjectId, &'static str, UProbeLinkId)>,
}

impl PlacePrograms {
    /// Creates the state of these programs, without any that is loaded; where one of `names` does not load, those in `plain`
    /// take their place.
    pub(super) const fn new(names: &'static [&'static str], plain: &'static [&'static str]) -> Self {
        Self { names, plain, form: None, multi_links: Vec::new(), single_links: Vec::new() }
    }

    /// Whether programs are attached.
    pub(super) fn are_attached(&self) -> bool {
        !self.multi_links.is_empty() || !self.single_links.is_empty()
    }

    /// Whether each place is a probe of its own, once the programs are loaded.
    pub(super) fn are_single(&self) -> bool {
        matches!(self.form, Some(Form::Single))
    }

    /// Detaches all probes, those that were attached last first.
    pub(super) fn detach(&mut self, object: &mut Object) {
        while let Some(link) = self.multi_links.pop() {
            drop(link);
        }
        for (_, program, link) in std::mem::take(&mut self.single_links).into_iter().rev() {
            // A link that is already gone needs no detaching.
            let _ = object.uprobe(program).map(|program| program.detach(link));
        }
    }

    /// Detaches the probes on a file.
    pub(super) fn detach_file(&mut self, object: &mut Object, file: ObjectId) {
        let multi: Vec<_> = self.multi_links.extract_if(.., |(of, _)| *of == file).collect();
        multi.into_iter().rev().for_each(drop);
        let single: Vec<_> = self.single_links.extract_if(.., |(of, ..)| *of == file).collect();
        for (_, program, link) in single.into_iter().rev() {
            // As above.
            let _ = object.uprobe(program).map(|program| program.detach(link));
        }
    }

    /// Returns runs and time of the programs.
    pub(super) fn cost(&self, object: &Object) -> TimeCount {
        let mut sum = object.cost(self.names.iter().copied());
        if let Some(Form::Multi(programs)) = &self.form {
            programs.iter().filter_map(|program| program.cost().ok()).for_each(|cost| sum += cost);
        }
        sum
    }

    /// Loads the programs in the form that the kernel supports, if that is not done yet.
    fn load(&mut self, object: &mut Object) -> Result<&Form, KernelError> {
        if self.form.is_none() {
            let loaded = object.load_multi(self.names);
            if let Err(error) = &loaded {
                log::info!("no program for many places: {error}");
            }
            let is_known = |programs: &Vec<MultiProgram>| programs.iter().all(MultiProgram::can_be_attached);
            let multi = loaded.ok().filter(is_known);
            if multi.is_none() {
                log::info!("each place is a probe of its own");
                if self.names != self.plain
                    && self.names.iter().any(|name| object.load_function(name).is_err())
                {
                    self.names = self.plain;
                }
            }
            self.form = Some(multi.map_or(Form::Single, Form::Multi));
        }
        self.form.as_ref().ok_or(KernelError::Missing("program for places of a file"))
    }

    /// Attaches one of the programs to places of a file; those that the kernel refuses are returned with its reason. With
    /// `at_return` it runs when the function returns that begins there.
    ///
    /// # Errors
    /// When the programs do not load.
    pub(super) fn attach(
        &mut self,
        object: &mut Object,
        which: usize,
        file: &PinnedFile,
        places: &[Place],
        at_return: bool,
    ) -> Result<Vec<(Place, String)>, KernelError> {
        let mut refused = Vec::new();
        if places.is_empty() {
            return Ok(refused);
        }
        match self.load(object)? {
            Form::Multi(programs) => {
                let mut links = Vec::new();
                attach_all(&programs[which], file, places, at_return, &mut links, &mut refused);
                self.multi_links.extend(links.into_iter().map(|link| (file.id(), link)));
            }
            Form::Single => {
                let name = self.names[which];
                for place in places {
                    let point = UProbeAttachPoint {
                        location: UProbeAttachLocation::AbsoluteOffset(place.offset),
                        cookie: Some(place.cookie),
                    };
                    let program = object.load_function(name).map_err(attach_error(name))?;
                    match program.attach(point, &**file, UProbeScope::AllProcesses) {
                        Ok(link) => self.single_links.push((file.id(), name, link)),
                        Err(error) => refused.push((*place, crate::live::privilege::causes(&error))),
                    }
                }
            }
        }
        Ok(refused)
    }
}

/// Attaches a program to all places at once; if the kernel refuses that, to halves of them, until it is known which it
/// refuses.
fn attach_all(
    program: &MultiProgram,
    path: &Path,
    places: &[Place],
    at_return: bool,
    links: &mut Vec<MultiLink>,
    refused: &mut Vec<(Place, String)>,
) {
    let (offsets, cookies): (Vec<u64>, Vec<u64>) =
        places.iter().map(|place| (place.offset, place.cookie)).unzip();
    match program.attach(path, &offsets, &cookies, at_return) {
        Ok(link) => links.push(link),
        // Nothing that depends on the place.
        Err(error) if places.len() > 1 && !is_general(&error) => {
            let (left, right) = places.split_at(places.len() / 2);
            attach_all(program, path, left, at_return, links, refused);
            attach_all(program, path, right, at_return, links, refused);
        }
        Err(error) => refused.extend(places.iter().map(|place| (*place, error.to_string()))),
    }
}

/// Whether an error has nothing to do with the places: rights, memory, or a file that is gone.
fn is_general(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::OutOfMemory | io::ErrorKind::NotFound
    )
}
