//! Architecture of the library: which layers depend on which, no cycle among files, how much of it is public, and how long
//! files are.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use syn::{
    Attribute, ImplItem, Item, ItemMod, ItemUse, UseTree, Visibility,
    visit::{self, Visit},
};

/// Layers, each with those that it may depend on. The contract (`nntrace-common`) is available to all.
const FLOORS: [(&str, &[&str]); 14] = [
    ("model", &[]),
    ("caller", &[]),
    ("foreign_map", &[]),
    ("result_folder", &["caller"]),
    ("small_file", &["caller"]),
    ("perfetto_schema", &["model"]),
    ("live", &["caller", "foreign_map", "model", "small_file"]),
    ("replay", &["caller", "model", "perfetto_schema"]),
    ("record", &["caller", "model", "result_folder", "small_file"]),
    ("emit", &["model", "record"]),
    ("report", &["model"]),
    ("export", &["caller", "model", "perfetto_schema", "report"]),
    ("analyze", &["model", "report"]),
    ("tui", &["foreign_map", "model", "report"]),
];

/// Public items that the library has at most. A name that is exported a second time is counted where it is declared, its
/// `pub use` as one. What has to grow the interface says so here: the last were the functions that
/// start the parsing of files without privileges.
const PUBLIC_ITEMS: usize = 928;

/// Lines that a file of Rust has at most.
const LONGEST_FILE: usize = 500;

/// Module by its path: `["live", "kernel"]`.
type Module = Vec<String>;

/// Modules that a file names.
struct Imports<'a> {
    /// Module of the current code.
    here: Module,
    found: BTreeSet<(Module, Module)>,
    modules: &'a BTreeMap<Module, PathBuf>,
}

impl Imports<'_> {
    /// Takes a path that begins with `crate`, `self` or `super`.
    fn path(&mut self, segments: &[String]) {
        let mut target = match segments.first().map(String::as_str) {
            Some("crate") => Module::new(),
            Some("self" | "super") => self.here.clone(),
            _ => return,
        };
        for segment in segments {
            match segment.as_str() {
                "crate" | "self" => {}
                "super" => _ = target.pop(),
                name => target.push(name.to_owned()),
            }
        }
        // The rest of the path is an item of the module.
        while !self.modules.contains_key(&target) {
            if target.pop().is_none() {
                return;
            }
        }
        let here = self.file_of(&self.here);
        if !target.is_empty() && here != target {
            self.found.insert((here, target));
        }
    }

    /// Returns the innermost module with a file of its own that contains this one.
    fn file_of(&self, module: &Module) -> Module {
        let mut module = module.clone();
        while !self.modules.contains_key(&module) && !module.is_empty() {
            module.pop();
        }
        module
    }

    fn tree(&mut self, before: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(before, &path.tree);
                before.pop();
            }
            UseTree::Name(name) => {
                before.push(name.ident.to_string());
                self.path(before);
                before.pop();
            }
            UseTree::Rename(name) => {
                before.push(name.ident.to_string());
                self.path(before);
                before.pop();
            }
            UseTree::Glob(_) => self.path(before),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(before, tree)),
        }
    }
}

impl<'ast> Visit<'ast> for Imports<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        // Tests may use everything.
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.here.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.here.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        // A module's re-exports are not its own uses.
        if matches!(item.vis, Visibility::Inherited) {
            self.tree(&mut Vec::new(), &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.path(&segments);
        visit::visit_path(self, path);
    }
}

/// Names of the items that are declared `pub`; fields and variants are parts of theirs.
#[derive(Default)]
struct PublicItems(Vec<String>);

impl PublicItems {
    fn add(&mut self, visibility: &Visibility, name: &(impl ToString + ?Sized)) {
        if matches!(visibility, Visibility::Public(_)) {
            self.0.push(name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for PublicItems {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Const(item) => self.add(&item.vis, &item.ident),
            Item::Enum(item) => self.add(&item.vis, &item.ident),
            Item::Fn(item) => self.add(&item.vis, &item.sig.ident),
            Item::Mod(item) => self.add(&item.vis, &item.ident),
            Item::Static(item) => self.add(&item.vis, &item.ident),
            Item::Struct(item) => self.add(&item.vis, &item.ident),
            Item::Trait(item) => self.add(&item.vis, &item.ident),
            Item::Type(item) => self.add(&item.vis, &item.ident),
            Item::Union(item) => self.add(&item.vis, &item.ident),
            Item::Use(item) => self.add(&item.vis, "use"),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        match item {
            ImplItem::Const(item) => self.add(&item.vis, &item.ident),
            ImplItem::Fn(item) => self.add(&item.vis, &item.sig.ident),
            _ => {}
        }
        visit::visit_impl_item(self, item);
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let words = attribute.meta.require_list().map(|list| list.tokens.to_string());
        attribute.path().is_ident("cfg") && words.is_ok_and(|words| words.contains("test"))
    })
}

/// Returns the modules of the library that have files of their own.
fn modules(root: &Path) -> Result<BTreeMap<Module, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
            if path.is_dir() {
                // The command is a crate of its own.
                folders.extend((stem != "bin" && stem != "tests").then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "rs") && stem != "tests" {
                let parent = path.parent().unwrap_or(root).strip_prefix(root)?;
                let mut module: Module =
                    parent.iter().map(|part| part.to_string_lossy().into_owned()).collect();
                module.extend((stem != "mod" && stem != "lib").then_some(stem));
                found.insert(module, path);
            }
        }
    }
    Ok(found)
}

fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../nntrace-user/src")
}

fn parsed(path: &Path) -> Result<syn::File> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))
}

/// Returns all imports between files of the library, as pairs of importer and imported.
fn arrows() -> Result<BTreeSet<(Module, Module)>> {
    let modules = modules(&library())?;
    let mut imports = Imports { here: Module::new(), found: BTreeSet::new(), modules: &modules };
    for (module, path) in &modules {
        imports.here.clone_from(module);
        imports.visit_file(&parsed(path)?);
    }
    Ok(imports.found)
}

#[test]
fn floors_know_those_below_only() -> Result<()> {
    let arrows = arrows()?;
    let mut wrong = Vec::new();
    for (from, to) in &arrows {
        let (from_floor, to_floor) = (from.first().map_or("", String::as_str), to[0].as_str());
        if from_floor == to_floor || from_floor.is_empty() {
            continue;
        }
        let (_, known) = FLOORS
            .into_iter()
            .find(|(floor, _)| *floor == from_floor)
            .with_context(|| format!("{from_floor} is no floor of the design"))?;
        if !known.contains(&to_floor) {
            wrong.push(format!("{} -> {}", from.join("::"), to.join("::")));
        }
    }
    assert!(wrong.is_empty(), "arrows that the design does not have:\n{}", wrong.join("\n"));
    // Each layer was read: they all depend on the model.
    for (floor, _) in FLOORS.into_iter().filter(|(floor, known)| !known.is_empty() && *floor != "export") {
        assert!(arrows.iter().any(|(from, to)| from[..1] == [floor] && to[0] != floor), "{floor}");
    }
    Ok(())
}

#[test]
fn files_do_not_import_from_each_other_in_a_circle() -> Result<()> {
    let arrows = arrows()?;
    let mut below: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
    // A module and its submodules are one: `kernel.rs` and `kernel/`.
    for (from, to) in arrows.iter().filter(|(from, to)| !from.starts_with(to) && !to.starts_with(from)) {
        below.entry(from).or_default().insert(to);
        below.entry(to).or_default();
    }
    // A file without remaining dependencies is in no cycle; such files are removed until there is none.
    while let Some(free) = below.iter().find(|(_, known)| known.is_empty()).map(|(module, _)| *module) {
        below.remove(free);
        for known in below.values_mut() {
            known.remove(free);
        }
    }
    // The same from above: the remaining files are in a cycle, or between two.
    loop {
        let known: BTreeSet<&Module> = below.values().flatten().copied().collect();
        let Some(top) = below.keys().find(|module| !known.contains(*module)).copied() else { break };
        below.remove(top);
    }
    let left: Vec<String> = below
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| format!("{} -> {}", from.join("::"), to.join("::"))))
        .collect();
    assert!(left.is_empty(), "circles of imports:\n{}", left.join("\n"));
    Ok(())
}

#[test]
fn the_public_surface_is_narrow() -> Result<()> {
    let root = library();
    let mut count = 0;
    let mut list = String::new();
    for path in modules(&root)?.values() {
        let mut items = PublicItems::default();
        items.visit_file(&parsed(path)?);
        if !items.0.is_empty() {
            count += items.0.len();
            let file = path.strip_prefix(&root)?.display();
            writeln!(list, "{:>4} {file}: {}", items.0.len(), items.0.join(", "))?;
        }
    }
    assert!(count > 0, "nothing was read");
    assert!(count <= PUBLIC_ITEMS, "{count} public items, more than {PUBLIC_ITEMS}:\n{list}");
    Ok(())
}

#[test]
fn no_file_is_too_long() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<PathBuf> = ["nntrace-common", "nntrace-ebpf", "nntrace-user", "tests", "xtask"]
        .map(|name| root.join(name))
        .into();
    let (mut count, mut long) = (0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                // What is built or fetched is nobody's file.
                folders.extend((!path.ends_with("target")).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                count += 1;
                let lines = fs::read_to_string(&path)?.lines().count();
                long.extend((lines > LONGEST_FILE).then(|| format!("{lines} {}", path.display())));
            }
        }
    }
    assert!(count > 500, "{count} files were read");
    assert!(long.is_empty(), "files of more than {LONGEST_FILE} lines:\n{}", long.join("\n"));
    Ok(())
}

/// Files in the page are named from the project's root, from the library, or from the folder of the file before.
#[test]
fn the_page_on_the_data_flow_names_files_that_exist() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = root.join("nntrace-user/docs/data-flow.md");
    let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let mut missing = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let mut folder = root.clone();
        for name in line
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| Path::new(name).extension().is_some_and(|it| it == "rs"))
        {
            let places = [
                root.join(name),
                root.join("nntrace-user/src").join(name),
                root.join("nntrace-user").join(name),
                folder.join(name),
            ];
            match places.into_iter().find(|place| place.is_file()) {
                Some(place) => folder = place.parent().map(Path::to_owned).unwrap_or_default(),
                None => missing.push(name),
            }
        }
    }
    assert_eq!(missing, [""; 0]);
    Ok(())
}
