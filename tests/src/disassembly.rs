//! Instructions of a library as `objdump` disassembles it, from the begin of its code on.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

/// Returns the program that disassembles files for a machine, as ELF files number it.
///
/// # Errors
/// When the machine is none of ours.
pub fn objdump(machine: u16) -> Result<&'static str> {
    match machine {
        62 if cfg!(target_arch = "x86_64") => Ok("objdump"),
        62 => Ok("x86_64-linux-gnu-objdump"),
        183 if cfg!(target_arch = "aarch64") => Ok("objdump"),
        183 => Ok("aarch64-linux-gnu-objdump"),
        other => anyhow::bail!("no disassembler is known for the machine {other}"),
    }
}

/// Returns the instructions at these addresses, without those at which none begins.
///
/// # Errors
/// When the file cannot be disassembled.
pub fn instructions(path: &Path, addresses: &[u64]) -> Result<BTreeMap<u64, String>> {
    let data = std::fs::read(path).with_context(|| path.display().to_string())?;
    let machine = data.get(18..20).context("a header")?;
    let objdump = objdump(u16::from_le_bytes([machine[0], machine[1]]))?;
    let mut wanted: Vec<u64> = addresses.to_vec();
    wanted.sort_unstable();
    let mut command = Command::new(objdump);
    command.args(["--disassemble", "--no-show-raw-insn", "--wide"]).arg(path).stdout(Stdio::piped());
    let mut child =
        command.spawn().with_context(|| format!("{objdump}: run `cargo xtask test`, which installs it"))?;
    let mut lines = BufReader::with_capacity(1 << 20, child.stdout.take().context("it has an output")?);
    let (mut found, mut line) = (BTreeMap::new(), Vec::new());
    while lines.read_until(b'\n', &mut line)? > 0 {
        if let Some(address) = address(&line)
            && wanted.binary_search(&address).is_ok()
        {
            let text = String::from_utf8_lossy(&line);
            let instruction = text.split_once(":\t").map(|(_, instruction)| instruction.trim().to_owned());
            found.insert(address, instruction.unwrap_or_default());
        }
        line.clear();
    }
    ensure!(child.wait()?.success(), "{objdump} refuses {}", path.display());
    Ok(found)
}

/// The address that a line begins with: `  4010: ret`.
fn address(line: &[u8]) -> Option<u64> {
    let mut address = 0;
    for (number, &byte) in line.trim_ascii_start().iter().enumerate() {
        address = match (byte, char::from(byte).to_digit(16)) {
            (_, Some(digit)) => address << 4 | u64::from(digit),
            (b':', None) if number > 0 => return Some(address),
            _ => return None,
        };
    }
    None
}
