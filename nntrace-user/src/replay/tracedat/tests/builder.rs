//! Builder of files of both versions, for any host.

use std::{fmt::Write as _, io::Write as _};

use flate2::{Compression as Level, write::ZlibEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::super::{bytes::Endian, pages::Lost};

/// Addresses of functions in the kernel.
pub(crate) const MARK: u64 = 0x8020;
const KALLSYMS: &str = "0000000000008000 T _stext\n0000000000008020 t tracing_mark_write\n0000000000008040 T \
                        trace_vbprintk\n0000000000009000 t other\t[module]\n";
/// Address of another function.
pub(crate) const OTHER: u64 = 0x8040;

/// Contents of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Text, written by code at this address.
    Print(u64, String),
    Idle(u32, u32),
    Frequency(u32, u32),
    Switch,
    Suspend(u64),
    Nothing,
}

/// A host, and the format of its trace.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub version: u8,
    pub endian: Endian,
    /// Bytes of the kernel's `long`.
    pub long: usize,
    pub page_size: usize,
    /// `none`, `zstd` or `zlib`.
    pub compression: &'static str,
}

impl Shape {
    pub(crate) fn u16(&self, value: u16) -> [u8; 2] {
        if self.endian == Endian::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub(crate) fn u32(&self, value: u32) -> [u8; 4] {
        if self.endian == Endian::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub(crate) fn u64(&self, value: u64) -> [u8; 8] {
        if self.endian == Endian::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    fn word(&self, value: u64) -> Vec<u8> {
        if self.long == 8 { self.u64(value).to_vec() } else { self.u32(value as u32).to_vec() }
    }

    /// Returns the data of a record.
    pub(crate) fn data(&self, tid: u32, what: &What) -> Vec<u8> {
        let head = |id: u16| [&self.u16(id)[..], &[0, 0], &self.u32(tid)].concat();
        match what {
            What::Print(address, text) => {
                [head(5), self.word(*address), text.as_bytes().to_vec(), vec![0]].concat()
            }
            What::Idle(state, cpu) => [head(20), self.u32(*state).to_vec(), self.u32(*cpu).to_vec()].concat(),
            What::Frequency(khz, cpu) => {
                [head(21), self.u32(*khz).to_vec(), self.u32(*cpu).to_vec()].concat()
            }
            What::Switch => {
                let comm = b"worker\0\0\0\0\0\0\0\0\0\0";
                let place = 4 << 16 | 32;
                [&head(22), &comm[..], &self.u32(77), &self.u32(u32::MAX), b"four", &self.u32(place)].concat()
            }
            What::Suspend(address) => [head(23), self.word(*address), self.u32(3).to_vec()].concat(),
            What::Nothing => head(24),
        }
    }

    fn layout(&self) -> String {
        let (long, data) = (self.long, 8 + self.long);
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t \
             commit;\toffset:8;\tsize:{long};\tsigned:1;\n\tfield: int \
             overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char \
             data;\toffset:{data};\tsize:{};\tsigned:0;\n",
            self.page_size - data
        )
    }

    fn format(name: &str, id: u16, fields: &[(&str, usize, usize, bool)]) -> String {
        let common = [
            ("unsigned short common_type", 0, 2, false),
            ("unsigned char common_flags", 2, 1, false),
            ("unsigned char common_preempt_count", 3, 1, false),
            ("int common_pid", 4, 4, true),
        ];
        let mut text = format!("name: {name}\nID: {id}\nformat:\n");
        for (number, (declaration, offset, size, signed)) in common.iter().chain(fields).enumerate() {
            let end = if number == 3 { "\n\n" } else { "\n" };
            let signed = u8::from(*signed);
            let _ =
                write!(text, "\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};{end}");
        }
        text + "\nprint fmt: \"field:nothing;\", REC->nothing\n"
    }

    fn sized(&self, text: &str) -> Vec<u8> {
        [&self.u64(text.len() as u64)[..], text.as_bytes()].concat()
    }

    fn headers(&self) -> Vec<u8> {
        let (page, event) = (self.sized(&self.layout()), self.sized("# compressed entry header\n"));
        [&b"header_page\0"[..], &page, b"header_event\0", &event].concat()
    }

    fn own_formats(&self) -> Vec<u8> {
        let (ip, buf) = (("unsigned long ip", 8, self.long, false), ("char buf[]", 8 + self.long, 0, false));
        let print = Self::format("print", 5, &[ip, buf]);
        let old = Self::format("raw_data", 6, &[("unsigned int id", 8, 4, false)]);
        [&self.u32(2)[..], &self.sized(&print), &self.sized(&old)].concat()
    }

    fn formats(&self) -> Vec<u8> {
        let two = [("u32 state", 8, 4, false), ("u32 cpu_id", 12, 4, false)];
        let power = [
            Self::format("cpu_idle", 20, &two),
            Self::format("cpu_frequency", 21, &two),
            Self::format(
                "suspend_resume",
                23,
                &[("const char * action", 8, self.long, false), ("int val", 8 + self.long, 4, true)],
            ),
            Self::format("something", 24, &[]),
        ];
        let sched = Self::format(
            "sched_switch",
            22,
            &[
                ("char prev_comm[16]", 8, 16, false),
                ("pid_t prev_pid", 24, 4, true),
                ("long prev_state", 28, 4, true),
                ("unsigned char next[2]", 32, 2, false),
                ("__data_loc char[] where", 36, 4, false),
                ("char far", 400, 1, false),
            ],
        );
        let mut all = self.u32(2).to_vec();
        all.extend([b"power\0", &self.u32(power.len() as u32)[..]].concat());
        for format in &power {
            all.extend(self.sized(format));
        }
        all.extend([b"sched\0", &self.u32(1)[..], &self.sized(&sched)].concat());
        all
    }

    fn symbols(&self) -> Vec<u8> {
        [&self.u32(KALLSYMS.len() as u32)[..], KALLSYMS.as_bytes()].concat()
    }

    fn texts(&self) -> Vec<u8> {
        let text = "0x1234 : \"CPU_OFF\"\n0x99 : \"%s\\n\"\n";
        [&self.u32(text.len() as u32)[..], text.as_bytes()].concat()
    }

    fn comms(&self) -> Vec<u8> {
        self.sized("7 worker one\n8 other\n9  blank\nnothing\n\n")
    }

    fn pack(&self, data: &[u8]) -> Vec<u8> {
        match self.compression {
            "zstd" => compress_to_vec(data, CompressionLevel::Fastest),
            "zlib" => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Level::default());
                encoder.write_all(data).unwrap();
                encoder.finish().unwrap()
            }
            _ => data.to_vec(),
        }
    }

    fn is_packed(&self) -> bool {
        self.compression != "none"
    }

    /// Returns chunks of two pages.
    pub(crate) fn chunks(&self, pages: &[Vec<u8>]) -> Vec<u8> {
        let chunks: Vec<_> = pages.chunks(2).map(<[Vec<u8>]>::concat).collect();
        let mut data = self.u32(chunks.len() as u32).to_vec();
        for chunk in chunks {
            let packed = self.pack(&chunk);
            data.extend([self.u32(packed.len() as u32), self.u32(chunk.len() as u32)].concat());
            data.extend(packed);
        }
        data
    }

    fn section(&self, id: u16, data: &[u8]) -> Vec<u8> {
        let data = if self.is_packed() && id != 0 {
            let packed = self.pack(data);
            [&self.u32(packed.len() as u32)[..], &self.u32(data.len() as u32), &packed].concat()
        } else {
            data.to_vec()
        };
        let flags = u16::from(self.is_packed() && id != 0);
        let head = [self.u16(id), self.u16(flags)].concat();
        [&head[..], &self.u32(0), &self.u64(data.len() as u64), &data].concat()
    }

    fn option(&self, id: u16, data: &[u8]) -> Vec<u8> {
        [&self.u16(id)[..], &self.u32(data.len() as u32), data].concat()
    }

    fn initial(&self) -> Vec<u8> {
        let head = [0x17, 0x08, 0x44, b't', b'r', b'a', b'c', b'i', b'n', b'g', b'0' + self.version, 0];
        let endian = u8::from(self.endian == Endian::Big);
        [&head[..], &[endian, self.long as u8], &self.u32(self.page_size as u32)].concat()
    }

    /// Builds a file: options with any number, and the sub-buffers of the CPUs of each buffer, the main one first.
    pub(crate) fn file(&self, options: &[(u16, Vec<u8>)], buffers: &[(&str, &[Vec<Vec<u8>>])]) -> Vec<u8> {
        if self.version == 6 { self.file_6(options, buffers) } else { self.file_7(options, buffers) }
    }

    fn file_6(&self, options: &[(u16, Vec<u8>)], buffers: &[(&str, &[Vec<Vec<u8>>])]) -> Vec<u8> {
        let mut file = self.initial();
        for part in [
            self.headers(),
            self.own_formats(),
            self.formats(),
            self.symbols(),
            self.texts(),
            self.comms(),
            self.u32(buffers[0].1.len() as u32).to_vec(),
            b"options  \0".to_vec(),
        ] {
            file.extend(part);
        }
        for (id, data) in options {
            file.extend(self.option(*id, data));
        }
        // The description of a buffer has the same size wherever its data is.
        let tables: usize = buffers[1..].iter().map(|(name, _)| 6 + 8 + name.len() + 1).sum();
        let mut table = file.len() + tables + 2;
        let mut behind = Vec::new();
        let mut named = Vec::new();
        let mut places = Vec::new();
        for (name, cpus) in buffers {
            named.push((*name, table as u64));
            table += 10 + 16 * cpus.len();
        }
        let mut offset = table.next_multiple_of(self.page_size);
        for (_, cpus) in buffers {
            places.extend_from_slice(b"flyrecord\0");
            for pages in *cpus {
                let data = pages.concat();
                places.extend([self.u64(offset as u64), self.u64(data.len() as u64)].concat());
                offset += data.len();
                behind.extend(data);
            }
        }
        for (name, offset) in &named[1..] {
            file.extend(self.option(3, &[&self.u64(*offset)[..], name.as_bytes(), &[0]].concat()));
        }
        file.extend(self.u16(0));
        file.extend(places);
        file.resize(file.len().next_multiple_of(self.page_size), 0);
        file.extend(behind);
        file
    }

    fn file_7(&self, options: &[(u16, Vec<u8>)], buffers: &[(&str, &[Vec<Vec<u8>>])]) -> Vec<u8> {
        let mut file = self.initial();
        file.extend([self.compression.as_bytes(), b"\x001.5\0"].concat());
        let pointer = file.len();
        file.extend(self.u64(0));
        let mut list = Vec::new();
        for (id, data) in [
            (16, self.headers()),
            (17, self.own_formats()),
            (18, self.formats()),
            (19, self.symbols()),
            (20, self.texts()),
            (21, self.comms()),
        ] {
            list.extend(self.option(id, &self.u64(file.len() as u64)));
            file.extend(self.section(id, &data));
        }
        for (id, data) in options {
            list.extend(self.option(*id, data));
        }
        // Like trace-cmd: consecutive lists of options, one for each buffer.
        let mut pointer = pointer;
        for (name, cpus) in buffers {
            self.finish_options(&mut file, &mut list, pointer);
            pointer = file.len() - 8;
            let section = file.len();
            file.extend([self.u16(3), self.u16(u16::from(self.is_packed()))].concat());
            file.extend([0; 12]);
            let mut places = Vec::new();
            for (cpu, pages) in (0_u32..).zip(*cpus) {
                if pages.is_empty() {
                    places.extend([&self.u32(cpu)[..], &self.u64(file.len() as u64), &self.u64(0)].concat());
                    continue;
                }
                let data = if self.is_packed() { self.chunks(pages) } else { pages.concat() };
                let size = data.len() - if self.is_packed() { 4 } else { 0 };
                places.extend(
                    [&self.u32(cpu)[..], &self.u64(file.len() as u64), &self.u64(size as u64)].concat(),
                );
                file.extend(data);
            }
            let head = [&self.u64(section as u64)[..], name.as_bytes(), b"\0local\0"].concat();
            let sizes = [self.u32(self.page_size as u32), self.u32(cpus.len() as u32)].concat();
            list.extend(self.option(3, &[head, sizes, places].concat()));
        }
        self.finish_options(&mut file, &mut list, pointer);
        file
    }

    /// Writes a list of options, and its offset to the end of the previous one.
    fn finish_options(&self, file: &mut Vec<u8>, list: &mut Vec<u8>, pointer: usize) {
        let offset = file.len() as u64;
        file[pointer..pointer + 8].copy_from_slice(&self.u64(offset));
        list.extend(self.option(0, &self.u64(0)));
        file.extend(self.section(0, list));
        list.clear();
    }
}

/// Writer of a CPU's sub-buffers.
pub(crate) struct Pages<'a> {
    shape: &'a Shape,
    done: Vec<Vec<u8>>,
    page: Vec<u8>,
    time: u64,
    flags: u64,
    lost: Option<u64>,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(shape: &'a Shape) -> Self {
        Self { shape, done: Vec::new(), page: Vec::new(), time: 0, flags: 0, lost: None }
    }

    fn head(&self) -> usize {
        8 + self.shape.long
    }

    /// Begins a sub-buffer, before which events may have been lost.
    pub(crate) fn begin(&mut self, time: u64, lost: Option<Lost>) {
        self.end();
        self.page = vec![0; self.head()];
        self.page[..8].copy_from_slice(&self.shape.u64(time));
        self.time = time;
        self.lost = lost.flatten();
        self.flags = match lost {
            None => 0,
            Some(None) => 1 << 31,
            Some(Some(_)) => 3 << 30,
        };
    }

    fn end(&mut self) {
        if self.page.is_empty() {
            return;
        }
        let mut page = std::mem::take(&mut self.page);
        let length = (page.len() - self.head()) as u64;
        let commit = self.shape.word(length | self.flags);
        page[8..8 + commit.len()].copy_from_slice(&commit);
        page.extend(self.lost.map(|lost| self.shape.word(lost)).unwrap_or_default());
        assert!(page.len() <= self.shape.page_size);
        // Earlier contents of the page stay after the end.
        page.resize(self.shape.page_size, 0xaa);
        self.done.push(page);
    }

    /// Whether `size` more bytes fit.
    pub(crate) fn fits(&self, size: usize) -> bool {
        !self.page.is_empty() && self.page.len() + size + 2 * 8 + 8 <= self.shape.page_size
    }

    /// Writes the first word of a record.
    pub(crate) fn word(&mut self, kind: u32, delta: u32) {
        let word = match self.shape.endian {
            Endian::Little => kind | delta << 5,
            Endian::Big => kind << 27 | delta,
        };
        self.page.extend(self.shape.u32(word));
    }

    pub(crate) fn number(&mut self, value: u32) {
        self.page.extend(self.shape.u32(value));
    }

    /// Advances the time to `time`, as far as the record cannot represent that itself.
    pub(crate) fn extend(&mut self, time: u64) -> u32 {
        let delta = time - self.time;
        self.time = time;
        if delta < 1 << 27 {
            return delta as u32;
        }
        self.word(30, (delta & 0x07ff_ffff) as u32);
        self.number((delta >> 27) as u32);
        0
    }

    /// Writes a whole time stamp, without its upper bits.
    pub(crate) fn stamp(&mut self, time: u64) {
        self.time = time;
        self.word(31, (time & 0x07ff_ffff) as u32);
        self.number((time << 5 >> 32) as u32);
    }

    /// Writes a record; a long one has its length in a separate word, which any may have.
    pub(crate) fn record(&mut self, time: u64, data: &[u8], is_long: bool) {
        let delta = self.extend(time);
        let size = data.len().next_multiple_of(4);
        if is_long || size > 28 * 4 {
            self.word(0, delta);
            self.number(size as u32 + 4);
        } else {
            self.word(size as u32 / 4, delta);
        }
        self.page.extend(data);
        self.page.resize(self.page.len() + size - data.len(), 0);
    }

    /// Writes a discarded record.
    pub(crate) fn discard(&mut self, time: u64, size: usize) {
        let delta = self.extend(time);
        self.word(29, delta);
        self.number(size as u32 + 4);
        self.page.resize(self.page.len() + size, 0x55);
    }

    /// Pads the rest of the sub-buffer.
    pub(crate) fn pad(&mut self) {
        self.word(29, 0);
        self.page.extend([0x77; 12]);
    }

    pub(crate) fn finish(mut self) -> Vec<Vec<u8>> {
        self.end();
        self.done
    }
}
