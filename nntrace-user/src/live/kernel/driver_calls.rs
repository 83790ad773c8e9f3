//! The programs on the calls of drivers: `ioctl` on devices.

use aya::maps::HashMap;
use nntrace_common::{
    driver_calls::{DRIVER_CALL, DRIVER_CALL_LABEL, DriverDevice},
    engine::{Action, EngineProbe, NameRecipe},
    mark::Prefix,
};

use super::{
    Kernel, KernelError, error::map_error, object::Object, open_files::OpenFiles, tracepoint_links::Links,
};

/// Programs, with the raw tracepoint of each. The end comes first: a section without one would stay open.
const PROGRAMS: [(&str, &str); 2] = [("driver_call_returned", "sys_exit"), ("driver_call", "sys_enter")];

/// The programs and their attachments.
#[derive(Default)]
pub(super) struct DriverCallPrograms {
    links: Links,
    is_attached: bool,
}

impl DriverCallPrograms {
    fn attach(&mut self, object: &mut Object, files: &OpenFiles) -> Result<(), KernelError> {
        if self.is_attached {
            return Ok(());
        }
        if !files.are_known() {
            let (point, reason) = ("ioctl".to_owned(), OpenFiles::UNKNOWN.to_owned());
            return Err(KernelError::Attach { point, reason });
        }
        let mut probes = object.array("ENGINE_PROBES")?;
        probes.set(DRIVER_CALL, probe(), 0).map_err(KernelError::writing)?;
        for (program, point) in PROGRAMS {
            self.links.attach(object, program, point)?;
        }
        self.is_attached = true;
        Ok(())
    }

    pub(super) fn detach(&mut self, object: &mut Object) {
        self.links.detach(object);
        self.is_attached = false;
    }
}

/// Sections of the calls. Each has a name of its own.
fn probe() -> EngineProbe {
    EngineProbe {
        name: 0,
        label: DRIVER_CALL_LABEL,
        prefix: Prefix::None,
        action: Action::Section,
        ends_unseen: 0,
        pushed: 0,
        recipe: NameRecipe::default(),
        begun_by: 0,
        object: 0,
        entry: 0,
    }
}

impl Kernel {
    /// Takes the targets' calls on this device, by the kernel's number of it, as sections, from now on until
    /// [`Kernel::detach_driver_calls`].
    ///
    /// # Errors
    /// When there is no room for another device, the kernel does not tell where it keeps open files, or refuses.
    pub(in crate::live) fn follow_driver(
        &mut self,
        number: u32,
        device: DriverDevice,
    ) -> Result<(), KernelError> {
        let map = self.object.map_mut("DRIVER_DEVICES").ok_or(KernelError::Missing("map DRIVER_DEVICES"))?;
        let mut devices: HashMap<_, u32, DriverDevice> =
            map.try_into().map_err(map_error("use the table of devices"))?;
        devices.insert(number, device, 0).map_err(map_error("add to the table of devices"))?;
        let Self { driver_calls, object, files, .. } = self;
        driver_calls.attach(object, files)
    }

    /// Takes no more calls of drivers: system calls cost what they did before.
    pub(in crate::live) fn detach_driver_calls(&mut self) {
        self.driver_calls.detach(&mut self.object);
    }
}
