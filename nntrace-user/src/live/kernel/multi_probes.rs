//! Programs that one link attaches to many places of a file at once: uprobe multi links (Linux 6.6).
//!
//! aya can neither load such programs nor link them. It does the rest: the object is parsed and relocated by aya-obj,
//! onto the maps that aya has created.
//!
//! Source: `bpf_uprobe_multi_link_attach` in `kernel/trace/bpf_trace.c`, the union `bpf_attr` in `include/uapi/linux/bpf.h`.

use std::{
    collections::{HashMap, HashSet},
    ffi::CString,
    io,
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use aya::{Ebpf, maps::Map};
use aya_obj::{
    Function, Object, ProgramSection,
    generated::{
        BPF_F_SLEEPABLE, BPF_F_UPROBE_MULTI_RETURN, bpf_attach_type::BPF_TRACE_UPROBE_MULTI, bpf_attr,
        bpf_cmd, bpf_prog_info, bpf_prog_type::BPF_PROG_TYPE_KPROBE,
    },
};
use nix::libc;
use nntrace_common::time_count::TimeCount;

use super::error::{KernelError, refused};

/// Bytes for the verifier's reasons.
const LOG_BYTES: usize = 1 << 20;

/// Descriptors of maps, by name.
pub(super) struct MapDescriptors(HashMap<String, OwnedFd>);

impl MapDescriptors {
    /// Duplicates the descriptors of all maps.
    pub(super) fn of(ebpf: &Ebpf) -> io::Result<Self> {
        let maps = ebpf.maps().filter_map(|(name, map)| {
            let (Map::Array(data)
            | Map::ArrayOfMaps(data)
            | Map::HashMap(data)
            | Map::LruHashMap(data)
            | Map::PerCpuArray(data)
            | Map::PerCpuHashMap(data)
            | Map::PerfEventArray(data)
            | Map::RingBuf(data)) = map
            else {
                return None;
            };
            Some(data.fd().as_fd().try_clone_to_owned().map(|fd| (name.to_owned(), fd)))
        });
        maps.collect::<io::Result<_>>().map(Self)
    }
}

/// Loaded program for many places.
pub(super) struct MultiProgram(OwnedFd);

/// Attachment of a program to places of one file, until it is dropped.
#[must_use = "dropping it detaches the program"]
pub(super) struct MultiLink {
    _link: OwnedFd,
}

/// Loads programs of the object for many places, onto maps that exist.
///
/// # Errors
/// When the object is damaged, or the kernel refuses a program: before Linux 6.6 it knows no such programs.
pub(super) fn load(
    data: &[u8],
    maps: &MapDescriptors,
    programs: &[&str],
) -> Result<Vec<MultiProgram>, KernelError> {
    let mut object = Object::parse(data).map_err(|error| refused(&error))?;
    let btf = load_btf(&mut object)?;
    relocate(&mut object, maps)?;
    programs
        .iter()
        .map(|&name| {
            let program = object.programs.get(name).ok_or_else(|| KernelError::Attach {
                point: name.to_owned(),
                reason: "there is no such program".to_owned(),
            })?;
            let function = &object.functions[&program.function_key()];
            let is_sleepable = matches!(program.section, ProgramSection::UProbe { sleepable: true });
            load_program(name, function, is_sleepable, &object.license, btf.as_ref())
        })
        .collect()
}

fn relocate(object: &mut Object, maps: &MapDescriptors) -> Result<(), KernelError> {
    let sections: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
    let described = object.maps.clone();
    let known = described
        .iter()
        .filter_map(|(name, map)| maps.0.get(name).map(|fd| (name.as_str(), fd.as_raw_fd(), map)));
    object.relocate_maps(known, &sections).map_err(|error| refused(&error))?;
    object.relocate_calls(&sections).map_err(|error| refused(&error))?;
    object.sanitize_functions(aya::features());
    Ok(())
}

/// Loads the object's types, which tell the verifier which functions it may check by themselves.
fn load_btf(object: &mut Object) -> Result<Option<OwnedFd>, KernelError> {
    let Some(features) = aya::features().btf() else { return Ok(None) };
    let Some(btf) = object.fixup_and_sanitize_btf(features).map_err(|error| refused(&error))? else {
        return Ok(None);
    };
    let bytes = btf.to_bytes();
    let mut attributes = no_attributes();
    // SAFETY: the part of the union that the command reads.
    let load = unsafe { &mut attributes.__bindgen_anon_7 };
    load.btf = bytes.as_ptr() as u64;
    load.btf_size = size(bytes.len());
    call(bpf_cmd::BPF_BTF_LOAD, &attributes).map(Some).map_err(|error| refused(&error))
}

fn load_program(
    name: &str,
    function: &Function,
    is_sleepable: bool,
    license: &CString,
    btf: Option<&OwnedFd>,
) -> Result<MultiProgram, KernelError> {
    // They outlive the call.
    let (functions, lines) = (function.func_info.func_info_bytes(), function.line_info.line_info_bytes());
    let mut attributes = no_attributes();
    // SAFETY: the part of the union that the command reads.
    let load = unsafe { &mut attributes.__bindgen_anon_3 };
    load.prog_type = BPF_PROG_TYPE_KPROBE as u32;
    load.expected_attach_type = BPF_TRACE_UPROBE_MULTI as u32;
    load.prog_flags = if is_sleepable { BPF_F_SLEEPABLE } else { 0 };
    load.insns = function.instructions.as_ptr() as u64;
    load.insn_cnt = size(function.instructions.len());
    load.license = license.as_ptr() as u64;
    let room = load.prog_name.len() - 1;
    for (to, from) in load.prog_name[..room].iter_mut().zip(name.bytes()) {
        // Signed or not, by architecture.
        *to = libc::c_char::from_ne_bytes([from]);
    }
    if let Some(btf) = btf {
        load.prog_btf_fd = btf.as_raw_fd().cast_unsigned();
        load.func_info = functions.as_ptr() as u64;
        load.func_info_cnt = size(function.func_info.func_info.len());
        load.func_info_rec_size = size(function.func_info_rec_size);
        load.line_info = lines.as_ptr() as u64;
        load.line_info_cnt = size(function.line_info.line_info.len());
        load.line_info_rec_size = size(function.line_info_rec_size);
    }
    match call(bpf_cmd::BPF_PROG_LOAD, &attributes) {
        Ok(program) => Ok(MultiProgram(program)),
        Err(error) => {
            // Once more, for the verifier's reasons, which cost time.
            let mut log = vec![0_u8; LOG_BYTES];
            // SAFETY: the part of the union that the command reads.
            let load = unsafe { &mut attributes.__bindgen_anon_3 };
            load.log_level = 1;
            load.log_buf = log.as_mut_ptr() as u64;
            load.log_size = size(log.len());
            let refused = call(bpf_cmd::BPF_PROG_LOAD, &attributes);
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            let log = String::from_utf8_lossy(&log[..end]);
            let reason = log.lines().rev().find(|line| !line.starts_with("processed")).unwrap_or_default();
            match refused {
                Ok(program) => Ok(MultiProgram(program)),
                Err(_) => {
                    Err(KernelError::Attach { point: name.to_owned(), reason: format!("{error}: {reason}") })
                }
            }
        }
    }
}

impl MultiProgram {
    /// Whether this kernel attaches such programs. Those before Linux 6.6 load them all the same, as they do not look at
    /// what they are meant for.
    pub(super) fn can_be_attached(&self) -> bool {
        // A folder has no code, which only a kernel finds that knows these links.
        let refusal = self.attach(Path::new("/"), &[0], &[0], false).err();
        refusal.and_then(|error| error.raw_os_error()) == Some(libc::EBADF)
    }

    /// Attaches the program to places of a file, in every process: an offset, and the cookie that the program gets
    /// there.
    ///
    /// # Errors
    /// When the kernel refuses any of the places; then it attaches none.
    pub(super) fn attach(
        &self,
        path: &Path,
        offsets: &[u64],
        cookies: &[u64],
        at_return: bool,
    ) -> io::Result<MultiLink> {
        debug_assert_eq!(offsets.len(), cookies.len());
        let path = CString::new(path.as_os_str().as_bytes())?;
        let mut attributes = no_attributes();
        // SAFETY: the part of the union that the command reads.
        let create = unsafe { &mut attributes.link_create };
        create.__bindgen_anon_1.prog_fd = self.0.as_raw_fd().cast_unsigned();
        create.attach_type = BPF_TRACE_UPROBE_MULTI as u32;
        // SAFETY: the part of the union that this type of link reads.
        let multi = unsafe { &mut create.__bindgen_anon_3.uprobe_multi };
        multi.path = path.as_ptr() as u64;
        multi.offsets = offsets.as_ptr() as u64;
        multi.cookies = cookies.as_ptr() as u64;
        multi.cnt = size(offsets.len());
        multi.flags = if at_return { BPF_F_UPROBE_MULTI_RETURN } else { 0 };
        call(bpf_cmd::BPF_LINK_CREATE, &attributes).map(|link| MultiLink { _link: link })
    }

    /// Returns runs and time (ns) from the kernel's statistics.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn cost(&self) -> io::Result<TimeCount> {
        // SAFETY: numbers, each of which may be 0.
        let mut info: bpf_prog_info = unsafe { std::mem::zeroed() };
        let mut attributes = no_attributes();
        attributes.info.bpf_fd = self.0.as_raw_fd().cast_unsigned();
        attributes.info.info = (&raw mut info) as u64;
        attributes.info.info_len = size(size_of::<bpf_prog_info>());
        command(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD, &attributes)?;
        Ok(TimeCount::new(info.run_time_ns, info.run_cnt))
    }
}

/// Returns attributes without any that is set.
fn no_attributes() -> bpf_attr {
    // SAFETY: numbers, each of which may be 0.
    unsafe { std::mem::zeroed() }
}

/// Calls `bpf(2)` for a command that returns a descriptor.
fn call(which: bpf_cmd, attributes: &bpf_attr) -> io::Result<OwnedFd> {
    let descriptor = command(which, attributes)?;
    // SAFETY: the kernel has just made the descriptor, for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Calls `bpf(2)`.
fn command(which: bpf_cmd, attributes: &bpf_attr) -> io::Result<RawFd> {
    let (attributes, size) = (std::ptr::from_ref(attributes), size_of::<bpf_attr>());
    // SAFETY: the pointers among the attributes are valid for the call, and the kernel checks everything else.
    let result = unsafe { libc::syscall(libc::SYS_bpf, which as libc::c_int, attributes, size) };
    RawFd::try_from(result).ok().filter(|&result| result >= 0).ok_or_else(io::Error::last_os_error)
}

/// Puts a descriptor into an array of such.
///
/// # Errors
/// When the kernel refuses.
pub(super) fn set_descriptor(array: BorrowedFd<'_>, place: u32, descriptor: u32) -> io::Result<()> {
    let mut attributes = no_attributes();
    // SAFETY: the part of the union that the command reads.
    let update = unsafe { &mut attributes.__bindgen_anon_2 };
    update.map_fd = array.as_raw_fd().cast_unsigned();
    update.key = (&raw const place) as u64;
    update.__bindgen_anon_1.value = (&raw const descriptor) as u64;
    command(bpf_cmd::BPF_MAP_UPDATE_ELEM, &attributes).map(drop)
}

/// Number of elements as the kernel takes it.
fn size(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
