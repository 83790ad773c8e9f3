//! Calls of drivers: `ioctl` on the device of an accelerator, as a section of the driver layer.
//!
//! Any NPU or GPU is driven by such calls, whatever library is above it. Their names are those of the device and the
//! request: `renderD128 0x40106440`.

use crate::{
    engine::MAX_PROBES,
    layer::{Layer, Phase, Tag},
    mark::{BUFFER_BYTES, Label},
    verifier_bounds::masked,
};

/// Number of the probe that describes the sections of such calls: none of an engine has it.
pub const DRIVER_CALL: u32 = MAX_PROBES as u32;

/// Layer and phase of such sections: the driver layer, which executes.
pub const DRIVER_CALL_LABEL: Label = Label::tagged(Tag::new(Layer::Driver, Phase::Execution));

/// Devices at most.
pub const MAX_DEVICES: usize = 256;

/// Bytes of a device's name at most.
pub const DEVICE_NAME_BYTES: usize = 32;

/// Digits of a request, which has 32 bits.
const DIGITS: usize = 8;

/// Power of two above the length of any name.
const ROOM: usize = 64;

/// Device whose calls are sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DriverDevice {
    /// Bytes of the name in use.
    pub len: u32,
    /// Name, the last part of its path, followed by zeros.
    pub name: [u8; DEVICE_NAME_BYTES],
}

impl DriverDevice {
    /// Creates a device with a name, which is cut where it is too long.
    #[must_use]
    pub fn named(name: &[u8]) -> Self {
        let mut device = Self::default();
        let len = name.len().min(DEVICE_NAME_BYTES);
        device.name[..len].copy_from_slice(&name[..len]);
        device.len = len as u32;
        device
    }

    /// Writes the name of a call into a buffer of zeros; returns its length.
    #[inline(always)]
    pub fn write_call_name(&self, request: u32, text: &mut [u8; BUFFER_BYTES]) -> u32 {
        const { assert!(DEVICE_NAME_BYTES + 3 + DIGITS < ROOM && ROOM <= BUFFER_BYTES) };
        let mut at = 0;
        while at < DEVICE_NAME_BYTES {
            text[at] = self.name[at];
            at += 1;
        }
        let len = masked(self.len as usize, ROOM);
        text[masked(len, ROOM)] = b' ';
        text[masked(len + 1, ROOM)] = b'0';
        text[masked(len + 2, ROOM)] = b'x';
        let mut digit = 0;
        while digit < DIGITS {
            let nibble = (request >> (4 * (DIGITS - 1 - digit)) & 0xf) as u8;
            text[masked(len + 3 + digit, ROOM)] =
                if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
            digit += 1;
        }
        (len + 3 + DIGITS) as u32
    }
}

/// Returns the number of a device as the kernel has it inside (`MKDEV` of `include/linux/kdev_t.h`), which is not the
/// form of system calls.
#[must_use]
pub const fn device_number(major: u32, minor: u32) -> u32 {
    major << 20 | minor
}

/// Returns the device whose driver a section calls, by its name; `None` for the name of anything else.
#[must_use]
pub fn device_of(name: &str) -> Option<&str> {
    let (device, request) = name.rsplit_once(" 0x")?;
    let is_request = request.len() == DIGITS && request.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_request && !device.is_empty()).then_some(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(device: &[u8], request: u32) -> String {
        let mut text = [0; BUFFER_BYTES];
        let len = DriverDevice::named(device).write_call_name(request, &mut text) as usize;
        assert!(text[len..].iter().all(|&byte| byte == 0));
        String::from_utf8(text[..len].to_vec()).unwrap()
    }

    #[test]
    fn a_call_is_named_by_device_and_request() {
        assert_eq!(name(b"renderD128", 0x4010_6440), "renderD128 0x40106440");
        assert_eq!(name(b"rknpu", 0xf), "rknpu 0x0000000f");
        let long = [b'n'; 40];
        assert_eq!(name(&long, u32::MAX), format!("{} 0xffffffff", "n".repeat(DEVICE_NAME_BYTES)));
    }

    #[test]
    fn numbers_of_devices_are_the_kernels() {
        // /dev/dri/renderD128 is 226:128.
        assert_eq!(device_number(226, 128), 0xe20_0080);
    }
}
