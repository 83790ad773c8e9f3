use super::*;
use crate::live::target::mapped_files::{OpenError, Unopened};

fn searched(path: &str, named_functions: usize, stripped: bool) -> Searched {
    Searched { path: PathBuf::from(path), named_functions, stripped }
}

#[test]
fn the_text_for_nothing_found() {
    let near = Near { demangled: "nn::my_trace_mark(char const*)".to_owned(), why: NearReason::Name };
    let report = SearchReport {
        wanted: vec!["tracing_mark_write".to_owned()],
        searched: vec![
            searched("/opt/app", 0, true),
            searched("/opt/lib.so", 812, false),
            searched("/opt/slim.so", 1, true),
        ],
        near: vec![NearMatch { path: PathBuf::from("/opt/lib.so"), function: near }],
        failed: vec![Failed { path: PathBuf::from("/opt/x"), reason: OpenError::NotAFile.to_string() }],
        ..SearchReport::default()
    };
    assert_eq!(
        report.nothing_found("process 42 (app)", None),
        "\
no function named tracing_mark_write in process 42 (app)

looked into 3 files:
  /opt/app: stripped, names no functions
  /opt/lib.so: 812 functions
  /opt/slim.so: stripped, exports 1 function

could not look into:
  /opt/x: not a regular file: give the path of an executable or of a shared library

functions like it:
  nn::my_trace_mark(char const*) in /opt/lib.so: a like name

what to do:
  the function has another name: --symbol nn::my_trace_mark=buf (or =buf,len  =this,buf  =this,buf,len)
  it is in a library that is loaded later: it is found then; --lib PATH finds it now
  it writes to trace_marker itself: --marks syscall
  it is in a stripped file: build that one without strip or -s, or export the function
    (-rdynamic for an executable; default visibility in a library)
"
    );
}

#[test]
fn a_long_list_is_cut() {
    let report = SearchReport { searched: vec![searched("/a", 1, false); 23], ..SearchReport::default() };
    let text = report.nothing_found("it", Some("ncnn, mnn"));
    assert!(text.starts_with("neither ncnn, mnn nor a function named  in it\n"), "{text}");
    assert!(text.contains("what to do:\n  it runs an engine: `nntrace-bpf engines FILE`"), "{text}");
    assert!(text.contains("  and 3 more\n") && !text.contains("stripped"));
    assert_eq!(text.matches("/a: 1 function\n").count(), MOST_LISTED);
}

#[test]
fn a_search_goes_on_after_a_bad_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bad"), "no ELF").unwrap();
    let exe = std::env::current_exe().unwrap();
    let objects = Objects {
        objects: vec![Object::at(&dir.path().join("bad")).unwrap(), Object::at(&exe).unwrap()],
        failed: vec![Unopened { display_path: PathBuf::from("/gone"), reason: OpenError::NotPermitted }],
    };
    let specs = [SymbolSpec::named("main")];
    let report = SearchReport::of(&objects, &specs);
    assert_eq!(report.failed.len(), 2);
    assert!(report.failed[1].reason.starts_with("not an ELF file"));
    assert_eq!(report.searched.len(), 1);
    let found = report.functions.iter().find(|function| function.found.symbol == "main").unwrap();
    assert_eq!(
        (found.path.name(), found.object, found.found.wanted.as_str()),
        (&*exe, objects.objects[1].id(), "main")
    );
    let mut twice = report.clone();
    twice.merge(report.clone());
    assert_eq!(twice, report);
}
