use super::*;

fn identity(class: u8, order: u8, machine: u16) -> Vec<u8> {
    let mut bytes = vec![0x7f, b'E', b'L', b'F', class, order, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0];
    bytes.extend(if order == 1 { machine.to_le_bytes() } else { machine.to_be_bytes() });
    bytes.resize(64, 0);
    bytes
}

fn refusal(bytes: &[u8]) -> String {
    Elf::parse(bytes).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn other_kinds_and_machines_are_told_apart() {
    assert!(refusal(b"").starts_with("not an ELF file"));
    assert!(refusal(&[0; 64]).starts_with("not an ELF file"));
    assert!(refusal(&identity(1, 1, elf::EM_ARM.0)).starts_with("a 32-bit file (arm)"));
    assert!(refusal(&identity(2, 2, elf::EM_AARCH64.0)).starts_with("its bytes are in the other order"));
    let other = if MACHINE == elf::EM_AARCH64 { elf::EM_X86_64 } else { elf::EM_AARCH64 };
    let text = refusal(&identity(2, 1, other.0));
    assert!(text.starts_with(&format!(
        "it is for {}, this machine runs {}",
        machine_name(other),
        machine_name(MACHINE)
    )));
    let text = refusal(&identity(2, 1, 0x1234));
    assert!(text.starts_with("it is for machine 4660"), "{text}");
}

#[test]
fn our_own_entry_point() {
    let exe = std::env::current_exe().unwrap();
    let offset = entry_offset(&exe).unwrap();
    assert!(offset > 64 && offset < std::fs::metadata(&exe).unwrap().len());
}

#[test]
fn no_entry_point() {
    let dir = tempfile::tempdir().unwrap();
    let (source, library) = (dir.path().join("l.c"), dir.path().join("l.so"));
    std::fs::write(&source, "int f(void) { return 1; }").unwrap();
    let built = std::process::Command::new("cc")
        .args(["-shared", "-nostdlib", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source)
        .status();
    assert!(built.unwrap().success());
    let error = entry_offset(&library).unwrap_err();
    assert!(matches!(error.reason, ElfErrorReason::NoEntry), "{error}");
    assert!(error.to_string().starts_with(&library.display().to_string()));
}
