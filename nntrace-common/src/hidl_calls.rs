//! Names of interface calls: HIDL and AIDL stubs write them around every call, without a tag.
//!
//! Source: the mark contract, section 1, and the table of the reference notes, with the contract's two repairs: a
//! burst is configured in compilation, and the server of an AIDL device makes its process a driver too. The rules
//! look for parts of a name, so they run in user space only; the kernel programs get their result as a [`Meaning`] by
//! the hash of the name.

use crate::layer::{Layer, Phase, Tag};
use crate::mark::Label;

/// Meaning of a name: a value of the kernel's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Meaning {
    /// Layer and phase; foreign when it has none.
    pub label: Label,
    /// 1 when the name shows that its process is a driver.
    pub driver: u8,
    /// 1 when its begins matter beyond their thread, and are reported one by one.
    pub report_begin: u8,
}

impl Meaning {
    /// No meaning.
    pub const NONE: Self = Self { label: Label::FOREIGN, driver: 0, report_begin: 0 };
}

/// Function whose calls count executions.
pub const EXECUTION_CREATE: &[u8] = b"ANeuralNetworksExecution_create";

/// Role of a marked function in executions that run on while nobody waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// No role.
    Ordinary,
    /// `ANeuralNetworksExecution_create`: executions are counted by it.
    Create,
    /// `ANeuralNetworksExecution_startCompute[WithDependencies]`: an execution runs from its end on.
    Start,
    /// `ANeuralNetworksEvent_wait`: the application waits for an execution.
    Wait,
    /// `IPreparedModel::execute::server` of any version: an execution begins in the driver.
    DriverStart,
    /// `IExecutionCallback::notify::client` of any version: the driver is done.
    DriverDone,
}

impl Role {
    /// Returns the role of the function with this name.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        match name {
            EXECUTION_CREATE => Self::Create,
            b"ANeuralNetworksExecution_startCompute"
            | b"ANeuralNetworksExecution_startComputeWithDependencies" => Self::Start,
            b"ANeuralNetworksEvent_wait" => Self::Wait,
            _ if !is_interface_call(name) => Self::Ordinary,
            _ if is_call(name, b"::IPreparedModel::execute", b"::server") => Self::DriverStart,
            _ if is_call(name, b"::IExecutionCallback::notify", b"::client") => Self::DriverDone,
            _ => Self::Ordinary,
        }
    }
}

/// Whether a name is that of an interface call: it starts with `HIDL` or `AIDL`, as the generated stubs write it.
#[must_use]
pub fn is_interface_call(name: &[u8]) -> bool {
    name.starts_with(b"HIDL") || name.starts_with(b"AIDL")
}

/// Side of an interface call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The process that calls.
    Client,
    /// The process that is called.
    Server,
}

/// Returns the method that an interface call's name is of, which both sides have in common, and the side; `None` for a
/// name without a side.
#[must_use]
pub fn method(name: &[u8]) -> Option<(&[u8], Side)> {
    if !is_interface_call(name) {
        return None;
    }
    let of = |end: &[u8], side| name.strip_suffix(end).map(|method| (method, side));
    of(b"::client", Side::Client).or_else(|| of(b"::server", Side::Server))
}

/// Whether a method is that of a callback, which no table counts on either side.
#[must_use]
pub fn is_callback(method: &[u8]) -> bool {
    contains(method, b"Callback::notify")
}

/// Returns the meaning of an interface call's name.
#[must_use]
pub fn meaning(name: &[u8]) -> Meaning {
    let label = label(name);
    let role = Role::of(name);
    Meaning {
        label,
        driver: u8::from(is_device(name) && contains(name, b"::server")),
        report_begin: u8::from(
            role == Role::DriverStart || method(name).is_some_and(|(method, _)| is_callback(method)),
        ),
    }
}

/// Returns the layer and phase: foreign if it is not counted, unknown for a call without a side.
fn label(name: &[u8]) -> Label {
    let has = |part: &[u8]| contains(name, part);
    let asks = has(b"getCapabilities") || has(b"getSupportedOperations");
    let layer = if has(b"::client") || has(b"::server") {
        if has(b"notify") {
            // Counted on the side that waits, or that works.
            return Label::FOREIGN;
        }
        if has(b"::client") { Layer::Ipc } else { Layer::Driver }
    } else if has(b"::passthrough") {
        Layer::Ipc
    } else if asks {
        Layer::Driver
    } else if has(b"HIDL") {
        return Label::UNKNOWN;
    } else {
        return Label::FOREIGN;
    };
    let phase = if has(b"IAllocator") {
        Phase::Unspecified
    } else if has(b"getCapabilities") {
        Phase::Initialization
    } else if asks
        || has(b"prepareModel")
        || has(b"IPreparedModelCallback")
        || has(b"configureExecutionBurst")
    {
        Phase::Compilation
    } else if has(b"execute") || has(b"IExecutionCallback") {
        Phase::Execution
    } else {
        Phase::Initialization
    };
    Label::tagged(Tag::new(layer, phase))
}

/// Whether a name is that of a call of an NN device.
fn is_device(name: &[u8]) -> bool {
    name.starts_with(b"HIDL::IDevice") || (name.starts_with(b"AIDL::") && contains(name, b"::IDevice::"))
}

/// Whether a name is that of a method in any version (`execute`, `execute_1_2`), on this side.
fn is_call(name: &[u8], method: &[u8], side: &[u8]) -> bool {
    let Some(at) = find(name, method) else { return false };
    let rest = &name[at + method.len()..];
    let version = rest.iter().take_while(|&&byte| byte == b'_' || byte.is_ascii_digit()).count();
    &rest[version..] == side
}

fn contains(name: &[u8], part: &[u8]) -> bool {
    find(name, part).is_some()
}

fn find(name: &[u8], part: &[u8]) -> Option<usize> {
    name.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(name: &str) -> String {
        match meaning(name.as_bytes()).label {
            Label::FOREIGN => "foreign".into(),
            Label::UNKNOWN => "unknown".into(),
            label => label.tag().unwrap().to_string(),
        }
    }

    #[test]
    fn sides_and_methods_give_layers_and_phases() {
        for (name, expected) in [
            ("HIDL::IDevice::getCapabilities_1_1::client", "LI_PI"),
            ("HIDL::IDevice::getSupportedOperations::server", "LD_PC"),
            ("HIDL::IDevice::prepareModelFromCache::passthrough", "LI_PC"),
            ("HIDL::IPreparedModel::executeFenced::server", "LD_PE"),
            ("HIDL::IPreparedModel::configureExecutionBurst::client", "LI_PC"),
            ("HIDL::IAllocator::allocate::client", "LI_PU"),
            ("HIDL::IServiceManager::getTransport::client", "LI_PI"),
            ("HIDL::IExecutionCallback::notify_1_2::client", "foreign"),
            ("HIDL::IDevice::getCapabilities", "LD_PI"),
            ("HIDL::IDevice::prepareModel", "unknown"),
            ("AIDL::ndk::IPreparedModel::executeSynchronously::server", "LD_PE"),
            ("AIDL::cpp::IFoo::method::cppClient", "foreign"),
        ] {
            assert_eq!(tag(name), expected, "{name}");
        }
    }

    #[test]
    fn the_server_of_a_device_is_a_driver() {
        for (name, driver) in [
            ("HIDL::IDevice::getStatus::server", 1),
            ("AIDL::ndk::IDevice::prepareModel::server", 1),
            ("HIDL::IDevice::getStatus::client", 0),
            ("HIDL::IPreparedModel::execute::server", 0),
        ] {
            assert_eq!(meaning(name.as_bytes()).driver, driver, "{name}");
        }
    }

    #[test]
    fn both_sides_of_a_call_have_its_method() {
        let of = |name: &'static str| method(name.as_bytes());
        let execute: &[u8] = b"HIDL::IPreparedModel::execute_1_2";
        assert_eq!(of("HIDL::IPreparedModel::execute_1_2::client"), Some((execute, Side::Client)));
        assert_eq!(of("HIDL::IPreparedModel::execute_1_2::server"), Some((execute, Side::Server)));
        assert_eq!(of("HIDL::IDevice::getStatus::passthrough"), None);
        assert_eq!(of("f::client"), None);
        for (name, reports) in [
            ("HIDL::IExecutionCallback::notify_1_2::client", 1),
            ("HIDL::IPreparedModelCallback::notify::server", 1),
            ("HIDL::IPreparedModel::execute::server", 1),
            ("HIDL::IPreparedModel::execute::client", 0),
        ] {
            assert_eq!(meaning(name.as_bytes()).report_begin, reports, "{name}");
        }
    }

    #[test]
    fn only_calls_that_return_before_they_are_done_start_an_execution() {
        for (name, role) in [
            ("HIDL::IPreparedModel::execute::server", Role::DriverStart),
            ("HIDL::IPreparedModel::execute_1_3::server", Role::DriverStart),
            ("HIDL::IPreparedModel::executeSynchronously::server", Role::Ordinary),
            ("HIDL::IPreparedModel::execute::client", Role::Ordinary),
            ("HIDL::IExecutionCallback::notify_1_2::client", Role::DriverDone),
            ("HIDL::IPreparedModelCallback::notify::client", Role::Ordinary),
            ("ANeuralNetworksExecution_startComputeWithDependencies", Role::Start),
            ("ANeuralNetworksExecution_startComputeX", Role::Ordinary),
        ] {
            assert_eq!(Role::of(name.as_bytes()), role, "{name}");
        }
    }
}
