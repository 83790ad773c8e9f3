//! Recordings as a second decoder reads them, which was written from the description of their format alone: what comes of
//! them is the same, byte for byte.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use flate2::Crc;
use nntrace_tests::{
    binaries,
    child::Child,
    live,
    profiler::Profiler,
    recording::{self, Recording},
    wheels,
};
use serde_json::{Value, json};
use tempfile::TempDir;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/recording-v1");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/decoder/recording.py");
const FLOOD: &str = env!("CARGO_BIN_EXE_mark-flood");
const FORMS: &str = env!("CARGO_BIN_EXE_mark-forms");
const RAW: &str = env!("CARGO_BIN_EXE_mark-raw");
const LANES: &str = env!("CARGO_BIN_EXE_mark-lanes");

/// Bytes of the headers of a file and of a block.
const FILE_HEADER: usize = 32;
const BLOCK_HEADER: usize = 64;

/// Calls of interfaces, which have no tag.
const CALLS: [&str; 4] = ["B|1|HIDL::IDevice::prepareModel::client", "B|1|foreign", "E|1", "E|1"];
/// Marks around such calls, one of letters that are no tag, and what adds differently.
const MARKS: [&str; 12] = [
    "B|1|[NN_LA_PE]all#img=1",
    "B|1|HIDL::IPreparedModel::execute::client",
    "B|1|[NN_XX_PE]no letters",
    "B|1|[NN_LD_PCO]",
    "E|1",
    "E|1",
    "E|1",
    "B|1|[SUB][NN_LR_PI]late",
    "B|1|[NN_LU_PE]\u{20ac} utility",
    "E|1",
    "E|1",
    "E|1",
];

/// The second decoder, by the Python that runs it.
struct Decoder(PathBuf);

impl Decoder {
    /// Returns the decoder; `None`, with a message, where what it needs is missing.
    fn find() -> Result<Option<Self>> {
        Ok(wheels::readers()?.map(Self))
    }

    fn run(&self, folder: &Path, options: &[&str]) -> Result<String> {
        Ok(Child::run(Command::new(&self.0).arg(SCRIPT).arg(folder).args(options))?.expect_code(0)?.text())
    }

    /// Checks that it reads the sums and the sections of a recording that the profiler reads; returns these.
    fn check(&self, folder: &Path) -> Result<Findings> {
        let found: Value = serde_json::from_str(&self.run(folder, &[])?)?;
        let expected = sums(&serde_json::from_str(&profiler("replay", "--json", folder)?)?);
        recording::expect_equal(&expected.to_string(), &found.to_string())?;
        let found = sections(&self.run(folder, &["--sections"])?)?;
        let sections = sections(&profiler("print", "--json-lines", folder)?)?;
        recording::expect_equal(&sections.join("\n"), &found.join("\n"))?;
        Ok(Findings { sums: expected, sections })
    }
}

/// Results of both decoders for a recording.
struct Findings {
    sums: Value,
    sections: Vec<String>,
}

impl Findings {
    fn rows(&self, part: &str) -> &[Value] {
        self.sums[part].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the number of sections in all functions.
    fn in_functions(&self) -> u64 {
        self.rows("functions").iter().filter_map(|row| row["count"].as_u64()).sum()
    }
}

fn profiler(subcommand: &str, form: &str, folder: &Path) -> Result<String> {
    let mut profiler = Profiler::new()?.args([subcommand, form]).args([folder]);
    Ok(Child::run(profiler.command())?.expect_code(0)?.text())
}

/// Returns the parts of a snapshot that the decoder makes.
fn sums(snapshot: &Value) -> Value {
    let sums = ["count", "total_ns", "exclusive_ns"];
    let part = |name: &str, keys: &[&str]| rows(&snapshot[name], &[keys, &sums].concat());
    let cpus = ["cpu", "idle", "running", "idle_unknown_ns", "offline_ns", "unknown_ns"];
    let mut cpus = rows(&snapshot["cpus"], &cpus);
    for cpu in &mut cpus {
        cpu["idle"] = rows(&cpu["idle"], &["state", "ns", "hits"]).into();
        cpu["running"] = rows(&cpu["running"], &["khz", "ns", "hits"]).into();
    }
    json!({
        "window": snapshot["window"],
        "phases": part("phases", &["pid", "comm", "layer", "phase"]),
        "stacks": part("stacks", &["pid", "path"]),
        "functions": part("functions", &["pid", "layer", "phase", "name", "max_ns"]),
        "cpus": cpus,
    })
}

/// Returns rows with these keys alone.
fn rows(rows: &Value, keys: &[&str]) -> Vec<Value> {
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default().iter();
    rows.map(|row| keys.iter().map(|&key| (key.to_owned(), row[key].clone())).collect()).collect()
}

/// Returns the sections of lines of JSON as text, sorted: sections that begin at once are in no order.
fn sections(lines: &str) -> Result<Vec<String>> {
    let all = lines.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let keys =
        ["pid", "tid", "begin_ns", "end_ns", "own_ns", "exclusive_ns", "depth", "layer", "phase", "name"];
    let mut sections: Vec<String> = rows(&all.into(), &keys).iter().map(Value::to_string).collect();
    sections.sort_unstable();
    Ok(sections)
}

/// Copies a recording.
fn copy(from: &Path) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    for name in recording::files(from)? {
        fs::copy(from.join(&name), folder.path().join(&name))?;
    }
    Ok(folder)
}

/// Checks that both find the same in a recording of which a byte of a file is changed, at these places and in the middle, and
/// in one with a cut file; returns how often sections were missing.
fn check_damaged(decoder: &Decoder, whole: &Path, places: &[usize]) -> Result<usize> {
    let folder = copy(whole)?;
    let expected = decoder.check(whole)?.sections.len();
    let mut losses = 0;
    for name in recording::files(whole)?.iter().filter(|name| *name != "files.json") {
        let path = folder.path().join(name);
        let bytes = fs::read(&path)?;
        let middle = bytes.len() / 2;
        for &place in places.iter().chain([&middle]) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x10;
            fs::write(&path, &damaged)?;
            let about = || format!("{name}, byte {place}");
            losses +=
                usize::from(decoder.check(folder.path()).with_context(about)?.sections.len() < expected);
        }
        fs::write(&path, &bytes[..middle])?;
        let about = || format!("{name}, cut at {middle}");
        losses += usize::from(decoder.check(folder.path()).with_context(about)?.sections.len() < expected);
        fs::write(&path, &bytes)?;
    }
    Ok(losses)
}

#[test]
fn both_decoders_read_the_recordings_of_old_versions() -> Result<()> {
    let Some(decoder) = Decoder::find()? else { return Ok(()) };
    let folder = Path::new(FIXTURE);
    let found = decoder.check(folder)?;
    let results = fs::read_to_string(folder.with_extension("json"))?;
    recording::expect_equal(&sums(&serde_json::from_str(&results)?).to_string(), &found.sums.to_string())?;
    assert_eq!(found.in_functions(), found.sections.len() as u64);
    // Magic and number of the file, magic, a size and CRC of its first block, and what this has stored.
    let stored = FILE_HEADER + BLOCK_HEADER;
    let losses = check_damaged(&decoder, folder, &[0, 20, FILE_HEADER, FILE_HEADER + 8, stored - 1, stored])?;
    assert!(losses > 4, "{losses}");
    Ok(())
}

#[test]
fn both_decoders_read_recordings_of_runs() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let Some(decoder) = Decoder::find()? else { return Ok(()) };
    let workload = binaries::workload()?;
    let workload = workload.to_str().context("a path that is text")?;
    let network = [workload, "--quiet", "--inferences", "40"];
    let causes = ["--causes", "--level", "sched", "--iteration-root", "classify"];
    for (options, command) in [
        (&[][..], &network[..]),
        (&["--level", "sched", "--detail"], &network),
        (&causes, &network),
        (&["--level", "sched"], &[LANES, "--threads", "3", "--rounds", "300"]),
        (&[], &[FLOOD, "--threads", "2", "--marks", "20000", "--what", "names"]),
        (&[], &[FORMS]),
        (&[], &[&[RAW], &CALLS[..], &MARKS].concat()),
        (&["--ring-size", "4"], &[FLOOD, "--threads", "3", "--marks", "20000"]),
    ] {
        let about = || format!("{options:?} {command:?}");
        let recorded = Recording::of(options, command)?;
        let found = decoder.check(&recorded.path()).with_context(about)?;
        for part in ["phases", "stacks", "functions", "cpus"] {
            ensure!(!found.rows(part).is_empty(), "no {part}: {}", about());
        }
    }
    // A thread that shows calls of interfaces alone does not count.
    let calls = Recording::of(&[], [&[RAW], &CALLS[..]].concat())?;
    assert_eq!(decoder.check(&calls.path())?.sections, [""; 0]);
    let cpus = Recording::of_cpus(&["--duration", "300ms"])?;
    assert!(!decoder.check(&cpus.path())?.rows("cpus").is_empty());
    Ok(())
}

#[test]
fn both_decoders_read_what_damage_leaves() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let Some(decoder) = Decoder::find()? else { return Ok(()) };
    // Files of several blocks.
    let command = [FLOOD, "--threads", "2", "--marks", "40000", "--pause-us", "10"];
    let recorded = Recording::of(&["--interval", "100ms", "--level", "sched"], command)?;
    let losses = check_damaged(&decoder, &recorded.path(), &[FILE_HEADER])?;
    assert!(losses > 2, "{losses}");
    Ok(())
}

/// Returns a stream of the fixture as a later version may write it: of an unknown kind, with entries of unknown kinds before a
/// section, and with a block of unknown content.
fn later_stream(recording: [u8; 8], first: u64) -> Result<Vec<u8>> {
    let mut file = b"NNTREC\r\n".to_vec();
    file.extend([1, 0, 9, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(recording);
    seal(&mut file, 0);
    // Event 25, definition 31, a name.
    let mut content = vec![25, 2, 0xff, 0xff, 31, 1, 0xff, 1];
    content.extend([0xcd; 8]);
    content.extend(b"\x05later");
    // Sites of process 10 and thread 11 in LR_PE, one of that name and one without a text; a section of 200 ns in each.
    for (number, name) in [(0, 0xcd), (1, 0xef)] {
        content.extend([0, 10, 11, 0x16, 2, 2, 1, 0]);
        content.extend([[0x34; 8], [name; 8]].concat());
        content.extend([2 | 1 << 5, number, 0xd8, 0x04, 0xc8, 0x01, 0x64, 0xc8, 0x01]);
    }
    block(&mut file, 9, b"nobody knows", [first - 1; 2], 0)?;
    // A section whose begin would be negative: with it the block's entries end.
    content.extend([2 | 1 << 5, 0, 0, 0xff, 0x7f, 0, 0]);
    block(&mut file, 0, &content, [first, first + 3], 4)?;
    Ok(file)
}

/// Adds a block that is not compressed.
fn block(file: &mut Vec<u8>, content: u8, stored: &[u8], numbers: [u64; 2], events: u32) -> Result<()> {
    let begin = file.len();
    let size = u32::try_from(stored.len())?;
    file.extend(b"NNB\n");
    file.extend([content, 0, 0, 0]);
    file.extend([size, size, events, 0].map(u32::to_le_bytes).concat());
    file.extend([numbers[0], numbers[1], 300, 600].map(u64::to_le_bytes).concat());
    file.extend(crc(stored));
    seal(file, begin);
    file.extend(stored);
    Ok(())
}

/// Adds the CRC of a header.
fn seal(file: &mut Vec<u8>, begin: usize) {
    let sum = crc(&file[begin..]);
    file.extend(sum);
}

fn crc(bytes: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}

#[test]
fn both_decoders_pass_over_what_a_later_version_adds() -> Result<()> {
    let Some(decoder) = Decoder::find()? else { return Ok(()) };
    let folder = copy(Path::new(FIXTURE))?;
    // Its place in the order is that of events of a CPU, whose file is taken away.
    let file = fs::read(folder.path().join("cpu1.nnt"))?;
    fs::remove_file(folder.path().join("cpu1.nnt"))?;
    let recording: [u8; 8] = file[20..28].try_into()?;
    let first = FILE_HEADER + 24;
    let first = u64::from_le_bytes(file[first..first + 8].try_into()?);
    let before = decoder.check(folder.path())?;
    let later = folder.path().join("later.nnt");
    fs::write(&later, later_stream(recording, first)?)?;
    let after = decoder.check(folder.path())?;
    assert_eq!(after.sections.len(), before.sections.len() + 2);
    let added =
        after.rows("functions").iter().find(|row| row["name"] == "later").context("it is not there")?;
    assert_eq!((&added["total_ns"], &added["exclusive_ns"]), (&100.into(), &0.into()));
    assert!(after.rows("functions").iter().any(|row| row["name"] == "?efefefefefefefef"), "{}", after.sums);
    // After the last state it is not read.
    fs::write(&later, later_stream(recording, 1 << 40)?)?;
    assert_eq!(decoder.check(folder.path())?.sections, before.sections);
    // A file of another recording is refused.
    fs::write(&later, later_stream([7; 8], first)?)?;
    for refusal in [decoder.run(folder.path(), &[]), profiler("replay", "--json", folder.path())] {
        let message = refusal.err().context("it was read")?.to_string();
        assert!(message.contains("later.nnt") && message.contains("another recording"), "{message}");
    }
    Ok(())
}
