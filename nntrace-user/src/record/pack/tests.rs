use std::os::unix::fs::symlink;

use nix::{sys::stat::Mode, unistd::mkfifo};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::record::{
    format::{FileHeader, RUN_FILE, Stream},
    unpack::unpack,
};

const OPTIONS: PackOptions = PackOptions { with_files: true, max_file: 1 << 20, with_secrets: false };

/// Folder with a recording, `run`, and files that its run used.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let run = place.path("run");
        fs::create_dir(&run).unwrap();
        fs::write(run.join(RUN_FILE), FileHeader::new(Stream::Run, 5).bytes()).unwrap();
        fs::write(run.join("cpu0.nnt"), FileHeader::new(Stream::Cpu(0), 5).bytes()).unwrap();
        fs::write(run.join("notes.txt"), "not of the recording").unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file that the run used; returns its path.
    fn file(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn list(&self, files: &Value) {
        let text = json!({"version": 1, "files": files, "not_listed": 0, "lost": 0}).to_string();
        fs::write(self.path("run").join(FILE_LIST), text).unwrap();
    }

    fn pack(&self, options: PackOptions) -> Packed {
        self.pack_of("run", "x.nnpack", options).unwrap()
    }

    /// Packs a folder to a file.
    fn pack_of(&self, folder: &str, file: &str, options: PackOptions) -> Result<Packed, PackError> {
        pack(&self.path(folder), &mut File::create(self.path(file)).unwrap(), &options)
    }

    /// Packs, unpacks, and returns the rows of the map.
    fn map(&self, options: PackOptions) -> (Packed, Vec<Value>) {
        let packed = self.pack(options);
        let out = self.path("out");
        let _ = fs::remove_dir_all(&out);
        unpack(&self.path("x.nnpack"), &out, u64::MAX).unwrap();
        let map: Value = serde_json::from_slice(&fs::read(out.join(FILE_MAP)).unwrap()).unwrap();
        (packed, map["files"].as_array().unwrap().clone())
    }

    /// Returns the reason for which a file is left out.
    fn reason(&self, row: &Value, options: PackOptions) -> Option<String> {
        self.list(&json!([row]));
        let (_, map) = self.map(options);
        map[0]["reason"].as_str().map(str::to_owned)
    }
}

#[test]
fn the_executable_is_entry_0_and_equal_contents_are_there_once() {
    let place = Place::new();
    let (app, lib, same) =
        (place.file("app", "program"), place.file("a b/lib.so.1", "library"), place.file("copy", "library"));
    place.list(&json!([
        {"path": lib, "first_ns": 5, "opened_by": "mapped"},
        {"path": same, "first_ns": 7, "opened_by": "openat"},
        {"path": app, "first_ns": 1, "opened_by": "execve"},
        {"path": place.file("model.tflite", "TFL3"), "first_ns": 9, "opened_by": "openat"},
    ]));
    let (packed, map) = place.map(OPTIONS);
    assert_eq!((packed.files, packed.notes.len()), (3, 0), "{:?}", packed.notes);
    let names: Vec<_> = map.iter().map(|row| row["packed"].as_str().unwrap()).collect();
    assert_eq!(names, ["files/0_app", "files/1_lib.so.1", "files/1_lib.so.1", "files/2_model.tflite"]);
    assert_eq!(map[0]["path"], app);
    assert_eq!(map[1]["size"], 7);
    let out = place.path("out");
    assert_eq!(fs::read(out.join("files/1_lib.so.1")).unwrap(), b"library");
    let mut top: Vec<_> =
        fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    top.sort();
    assert_eq!(top, ["cpu0.nnt", "files", FILE_LIST, FILE_MAP, RUN_FILE]);
    assert_eq!(fs::read(out.join(RUN_FILE)).unwrap(), fs::read(place.path("run").join(RUN_FILE)).unwrap());
}

#[test]
fn the_same_is_packed_to_the_same_bytes() {
    let place = Place::new();
    let gone = place.path("gone").display().to_string();
    place.list(&json!([
        {"path": place.file("app", "program"), "first_ns": 1, "opened_by": "execve"},
        {"path": gone, "first_ns": 2},
        {"path": place.file("b", &"text ".repeat(500_000)), "first_ns": 3},
    ]));
    let options = PackOptions { max_file: 16 << 20, ..OPTIONS };
    place.pack(options);
    let first = fs::read(place.path("x.nnpack")).unwrap();
    place.pack(options);
    assert!(fs::read(place.path("x.nnpack")).unwrap() == first);
    // So is what was unpacked, when nothing else is there any more.
    place.map(options);
    fs::remove_dir_all(place.path("run")).unwrap();
    for name in ["app", "b"] {
        fs::write(place.path(name), "another file").unwrap();
    }
    let packed = place.pack_of("out", "y.nnpack", options).unwrap();
    assert_eq!(packed.notes, [""; 0]);
    assert!(fs::read(place.path("y.nnpack")).unwrap() == first);
}

#[test]
fn what_is_no_file_of_the_run_is_left_out() {
    let place = Place::new();
    mkfifo(&place.path("pipe"), Mode::S_IRWXU).unwrap();
    symlink("/proc/self/status", place.path("link")).unwrap();
    for (path, reason) in [
        ("/dev/null".to_owned(), "it is a device, or a file of the kernel"),
        ("/proc/self/status".to_owned(), "it is a device, or a file of the kernel"),
        ("/sys/kernel/mm".to_owned(), "it is a device, or a file of the kernel"),
        (place.path("link").display().to_string(), "it is a device, or a file of the kernel"),
        (place.path("pipe").display().to_string(), "it is no regular file"),
        (place.path("run").display().to_string(), "it is no regular file"),
        (place.path("gone").display().to_string(), "it is gone"),
        (place.file("large", &"x".repeat(2_000)), "it has 2000 bytes, more than the 1999 of --max-file"),
    ] {
        let found = place.reason(&json!({"path": path}), PackOptions { max_file: 1_999, ..OPTIONS });
        assert_eq!(found.as_deref(), Some(reason), "{path}");
    }
    let path = place.file("opened", "x");
    let reason = place.reason(&json!({"path": path, "errno": "EACCES"}), OPTIONS);
    assert_eq!(reason.as_deref(), Some("it could not be opened: EACCES"));
    assert_eq!(place.reason(&json!({"path": path}), OPTIONS), None);
}

#[test]
fn what_may_be_secret_is_left_out_unless_it_is_wanted() {
    let place = Place::new();
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n";
    symlink(place.path(".ssh/config"), place.path("plain")).unwrap();
    for path in [
        place.file("app/.env", "A=1"),
        place.file("board.pem", "x"),
        place.file("innocent.txt", key),
        place.file(".ssh/config", "x"),
        place.path("plain").display().to_string(),
    ] {
        place.list(&json!([{"path": path}]));
        let (packed, map) = place.map(OPTIONS);
        assert_eq!(map[0]["packed"], Value::Null, "{path}");
        assert!(map[0]["reason"].as_str().unwrap().contains("secret"), "{path}");
        assert!(packed.notes.len() == 1 && packed.notes[0].contains(&path), "{:?}", packed.notes);
        let (packed, map) = place.map(PackOptions { with_secrets: true, ..OPTIONS });
        assert!(map[0]["packed"].is_string(), "{path}");
        assert!(packed.notes.len() == 1 && packed.notes[0].contains("is in the pack"), "{:?}", packed.notes);
    }
}

#[test]
fn a_list_that_lies_about_kinds_packs_no_secret() {
    let place = Place::new();
    let (shadow, library) = (place.file("shadow", "root:$6$abc"), place.file("libsecret.so", "\x7fELF\0"));
    for kind in ["elf", "onnx", "gguf", "tflite"] {
        place.list(&json!([{"path": shadow, "kind": kind}, {"path": library, "kind": "none"}]));
        let (packed, map) = place.map(OPTIONS);
        assert_eq!((&map[0]["packed"], packed.files), (&Value::Null, 1), "{kind}");
        assert!(
            map[0]["reason"].as_str().unwrap().contains("secret") && map[1]["packed"].is_string(),
            "{kind}"
        );
    }
}

#[test]
fn files_that_have_changed_are_noted() {
    let place = Place::new();
    let path = place.file("model", "weights");
    let sha256 = hex(Sha256::new_with_prefix("weights"));
    let mtime: i64 = {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = fs::metadata(&path).unwrap();
        metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec()
    };
    for (recorded, changed) in [
        (json!({}), Value::Null),
        (json!({"size": 7}), json!(false)),
        (json!({"size": 8}), json!(true)),
        (json!({"size": 7, "mtime_ns": mtime}), json!(false)),
        (json!({"size": 7, "mtime_ns": mtime - 1}), json!(true)),
        (json!({"size": 7, "mtime_ns": mtime - 1, "sha256": sha256}), json!(false)),
        (json!({"size": 7, "mtime_ns": mtime, "sha256": "00"}), json!(true)),
    ] {
        let mut row = recorded.clone();
        row["path"] = json!(path);
        place.list(&json!([row]));
        let (packed, map) = place.map(OPTIONS);
        assert_eq!(map[0]["changed"], changed, "{recorded}");
        let noted = packed.notes.iter().any(|note| note.contains("has changed since the recording"));
        assert_eq!(noted, changed == json!(true), "{recorded}: {:?}", packed.notes);
    }
}

#[test]
fn a_copy_that_was_changed_after_unpacking_is_noted() {
    let place = Place::new();
    place.list(&json!([{"path": place.file("model", "weights")}]));
    place.map(OPTIONS);
    fs::write(place.path("out/files/1_model"), "others").unwrap();
    let packed = place.pack_of("out", "y.nnpack", OPTIONS).unwrap();
    assert!(packed.notes[0].contains("has changed since the recording"), "{:?}", packed.notes);
}

#[test]
fn a_list_that_is_damaged_is_no_reason_to_have_no_pack() {
    let place = Place::new();
    for damaged in ["{", "[]", "{\"files\": 5}"] {
        fs::write(place.path("run").join(FILE_LIST), damaged).unwrap();
        let error = place.pack_of("run", "x.nnpack", OPTIONS).unwrap_err().to_string();
        assert!(error.contains("--no-files"), "{error}");
    }
    let packed = place.pack(PackOptions { with_files: false, ..OPTIONS });
    assert_eq!((packed.files, packed.notes.len()), (0, 0));
    unpack(&place.path("x.nnpack"), &place.path("out"), u64::MAX).unwrap();
    assert!(!place.path("out").join(FILE_MAP).exists());
}

#[test]
fn files_that_were_not_listed_are_counted() {
    let place = Place::new();
    let text = json!({"files": [], "not_listed": 3, "lost": 2}).to_string();
    fs::write(place.path("run").join(FILE_LIST), text).unwrap();
    let packed = place.pack(OPTIONS);
    assert!(
        packed.notes[0].starts_with("5 files that were opened are not in files.json"),
        "{:?}",
        packed.notes
    );
}

#[test]
fn other_folders_are_no_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let error = pack(folder.path(), &mut io::sink(), &OPTIONS).unwrap_err();
    assert!(matches!(error, PackError::NoRecording(_)), "{error:?}");
}

#[test]
fn a_link_in_a_recording_is_not_followed() {
    let place = Place::new();
    symlink(place.file("mine", "private"), place.path("run").join("cpu1.nnt")).unwrap();
    let error = place.pack_of("run", "x.nnpack", OPTIONS).unwrap_err();
    assert!(error.to_string().contains("cpu1.nnt: it is no regular file"), "{error}");
}

#[test]
fn a_file_that_changes_meanwhile_is_noticed() {
    let place = Place::new();
    let path = PathBuf::from(place.file("model", "weights"));
    let item = |size, text: &str| Item {
        entry: Entry { name: "files/1_model".into(), size, sha256: hex(Sha256::new_with_prefix(text)) },
        content: Content::File(path.clone()),
    };
    assert!(item(7, "weights").append(&mut Vec::new()).is_ok());
    for (size, text) in [(7, "WEIGHTS"), (8, "weights!"), (6, "weigh!")] {
        let error = item(size, text).append(&mut Vec::new()).unwrap_err();
        assert!(matches!(error, PackError::Changed(_)), "{error:?}");
    }
}
