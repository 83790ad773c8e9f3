//! The engine maps of a run: those that are compiled in, and the user's.

use std::{cell::RefCell, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::engine_map::{self, EngineMap, MapError};
use crate::model::near_names::did_you_mean;

/// Maps that are compiled in: path in the sources, text.
const COMPILED_IN: [(&str, &str); 14] = [
    ("engines/onnxruntime.toml", include_str!("../../../engines/onnxruntime.toml")),
    ("engines/onnxruntime-genai.toml", include_str!("../../../engines/onnxruntime-genai.toml")),
    ("engines/litert.toml", include_str!("../../../engines/litert.toml")),
    ("engines/xnnpack.toml", include_str!("../../../engines/xnnpack.toml")),
    ("engines/ncnn.toml", include_str!("../../../engines/ncnn.toml")),
    ("engines/openvino.toml", include_str!("../../../engines/openvino.toml")),
    ("engines/mnn.toml", include_str!("../../../engines/mnn.toml")),
    ("engines/llama.toml", include_str!("../../../engines/llama.toml")),
    ("engines/tract.toml", include_str!("../../../engines/tract.toml")),
    ("engines/executorch.toml", include_str!("../../../engines/executorch.toml")),
    ("engines/armnn.toml", include_str!("../../../engines/armnn.toml")),
    ("engines/opencv-dnn.toml", include_str!("../../../engines/opencv-dnn.toml")),
    ("engines/rknn.toml", include_str!("../../../engines/rknn.toml")),
    ("engines/torch.toml", include_str!("../../../engines/torch.toml")),
];

/// Engines that a message names at most.
const FEW: usize = 3;

/// Engines that a run looks for.
#[derive(Clone, Debug)]
pub(in crate::live) struct Catalog {
    maps: Arc<Vec<EngineMap>>,
    /// Names of engines that are left to ITT in part.
    left_to_itt: Vec<String>,
    /// Changes since what is compiled in, in order.
    changes: Vec<Change>,
}

/// Change of a catalog that held what is compiled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Change {
    /// The engines of a map file, by its path and text, were added.
    Add(String, String),
    /// The engines of these names were kept.
    Keep(Vec<String>),
    /// Parts that engines also report through ITT were left out.
    LeaveToItt,
}

/// A catalog is sent as its changes.
impl Serialize for Catalog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.changes.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Catalog {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        thread_local! {
            /// The one that came before: it is the same for all files of a run, unless it has changed just now.
            static LAST: RefCell<Option<Catalog>> = const { RefCell::new(None) };
        }
        let changes = Vec::<Change>::deserialize(deserializer)?;
        LAST.with_borrow_mut(|last| match last {
            Some(last) if last.changes == changes => Ok(last.clone()),
            _ => {
                let catalog = Self::changed_by(changes).map_err(de::Error::custom)?;
                Ok(last.insert(catalog).clone())
            }
        })
    }
}

/// Name of an engine that no map has.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no engine is named {name:?}{}; there are {}, and --map FILE adds others", self.suggestion(), known.join(", "))]
pub(in crate::live) struct UnknownEngine {
    name: String,
    known: Vec<String>,
}

impl UnknownEngine {
    fn suggestion(&self) -> String {
        did_you_mean(&self.name, self.known.iter().map(String::as_str))
    }
}

impl Catalog {
    /// Returns the maps that are compiled in.
    pub(in crate::live) fn compiled_in() -> Self {
        let maps = COMPILED_IN.iter().flat_map(|(path, text)| engine_map::parse(path, text).0);
        Self { maps: Arc::new(maps.collect()), left_to_itt: Vec::new(), changes: Vec::new() }
    }

    fn changed_by(changes: Vec<Change>) -> Result<Self, UnknownEngine> {
        let mut catalog = Self::compiled_in();
        for change in changes {
            match change {
                // Errors were reported when the file was read.
                Change::Add(path, text) => drop(catalog.add(&path, &text)),
                Change::Keep(names) => catalog.keep(&names)?,
                Change::LeaveToItt => catalog.leave_to_itt(),
            }
        }
        Ok(catalog)
    }

    /// Adds the engines of a map file, in the place of those that have the same names; returns what is wrong with it.
    pub(in crate::live) fn add(&mut self, path: &str, text: &str) -> Vec<MapError> {
        let (maps, errors) = engine_map::parse(path, text);
        let known = Arc::make_mut(&mut self.maps);
        known.retain(|known| maps.iter().all(|map| map.name != known.name));
        known.extend(maps);
        self.changes.push(Change::Add(path.to_owned(), text.to_owned()));
        errors
    }

    /// Keeps the engines of these names.
    ///
    /// # Errors
    /// When there is none of a name; nothing is changed then.
    pub(in crate::live) fn keep(&mut self, names: &[String]) -> Result<(), UnknownEngine> {
        if let Some(name) = names.iter().find(|&name| self.maps.iter().all(|map| map.name != *name)) {
            return Err(UnknownEngine { name: name.clone(), known: self.names() });
        }
        Arc::make_mut(&mut self.maps).retain(|map| names.contains(&map.name));
        self.changes.push(Change::Keep(names.to_vec()));
        Ok(())
    }

    /// Leaves out what engines show by ITT as well.
    pub(in crate::live) fn leave_to_itt(&mut self) {
        let left = Arc::make_mut(&mut self.maps).extract_if(.., |map| map.shows_itt);
        self.left_to_itt.extend(left.map(|map| map.name));
        // This is called for each process that uses ITT.
        if self.changes.last() != Some(&Change::LeaveToItt) {
            self.changes.push(Change::LeaveToItt);
        }
    }

    /// Whether parts of an engine are left to ITT.
    pub(in crate::live) fn is_left_to_itt(&self, engine: &str) -> bool {
        self.left_to_itt.iter().any(|left| left == engine)
    }

    /// Returns the names of the engines, each once.
    pub(in crate::live) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for map in self.maps.iter() {
            if !names.contains(&map.name) {
                names.push(map.name.clone());
            }
        }
        names
    }

    /// Returns in words which engines are looked for: their names, or `a known engine` of more than a few; `None` of none.
    pub(in crate::live) fn wanted(&self) -> Option<String> {
        match &self.names()[..] {
            [] => None,
            few if few.len() <= FEW => Some(few.join(", ")),
            _ => Some("a known engine".to_owned()),
        }
    }

    /// Whether the maps of an engine name operators.
    pub(in crate::live) fn has_operators(&self, engine: &str) -> bool {
        self.maps.iter().any(|map| map.name == engine && map.has_operators())
    }

    /// Returns the maps, an engine's parts in their order.
    pub(in crate::live) fn maps(&self) -> &[EngineMap] {
        &self.maps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_itt_is_a_part_of_an_engine() {
        let mut catalog = Catalog::compiled_in();
        let (names, parts) = (catalog.names(), catalog.maps().len());
        catalog.leave_to_itt();
        catalog.leave_to_itt();
        assert_eq!(catalog.names(), names);
        assert_eq!(catalog.maps().len(), parts - 1, "the plugin of OpenVINO");
    }

    #[test]
    fn compiled_in_maps_have_no_errors() {
        for (path, text) in COMPILED_IN {
            let (maps, errors) = engine_map::parse(path, text);
            assert_eq!(errors, [], "{path}");
            let file = path.rsplit('/').next().and_then(|name| name.strip_suffix(".toml"));
            assert!(maps.iter().all(|map| Some(map.name.as_str()) == file), "{path}");
        }
    }

    #[test]
    fn each_map_of_the_folder_is_compiled_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/engines");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| format!("engines/{}", entry.unwrap().file_name().to_string_lossy()))
            .collect();
        let mut compiled: Vec<_> = COMPILED_IN.iter().map(|(path, _)| (*path).to_owned()).collect();
        files.sort();
        compiled.sort();
        assert_eq!(files, compiled);
    }

    const MINE: &str = r#"
        [[engine]]
        name = "ncnn"
        match = { export = "mine" }
        [[engine.probe]]
        at = { export = "mine" }
        mark = "LR_PE"
    "#;

    #[test]
    fn a_map_replaces_the_engine_of_its_name() {
        let mut catalog = Catalog::compiled_in();
        let before = catalog.names();
        assert!(catalog.maps().iter().filter(|map| map.name == "ncnn").count() > 1);
        assert_eq!(catalog.add("mine.toml", MINE), []);
        let own: Vec<_> = catalog.maps().iter().filter(|map| map.name == "ncnn").collect();
        assert_eq!((own.len(), own[0].line.to_string().as_str()), (1, "mine.toml:2"));
        assert_eq!(catalog.names().len(), before.len());
    }

    #[test]
    fn what_is_sent_is_the_same_catalog() {
        let mut catalog = Catalog::compiled_in();
        catalog.add("mine.toml", MINE);
        for names in [&["ncnn", "openvino"][..], &["openvino"], &[]] {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            catalog.keep(&names).unwrap();
            catalog.leave_to_itt();
            let sent = serde_json::to_string(&catalog).unwrap();
            for _ in 0..2 {
                let received: Catalog = serde_json::from_str(&sent).unwrap();
                assert_eq!(format!("{received:?}"), format!("{catalog:?}"));
            }
        }
        assert!(serde_json::from_str::<Catalog>(r#"[{"Keep":["unknown"]}]"#).is_err());
    }

    #[test]
    fn a_wrong_map_replaces_nothing() {
        let mut catalog = Catalog::compiled_in();
        let before = catalog.maps().len();
        assert_eq!(catalog.add("mine.toml", "engine = 1").len(), 1);
        assert_eq!(catalog.maps().len(), before);
    }

    #[test]
    fn engines_are_chosen_by_name() {
        let mut catalog = Catalog::compiled_in();
        let error = catalog.keep(&["ncnn".into(), "nccn".into()]).unwrap_err().to_string();
        assert!(
            error.starts_with(
                r#"no engine is named "nccn" (did you mean ncnn?); there are onnxruntime, onnxruntime-genai, litert"#
            ),
            "{error}"
        );
        assert_eq!(catalog.wanted().as_deref(), Some("a known engine"));
        catalog.keep(&["ncnn".into(), "mnn".into()]).unwrap();
        assert_eq!(catalog.names(), ["ncnn", "mnn"]);
        assert_eq!(catalog.wanted().as_deref(), Some("ncnn, mnn"));
        catalog.keep(&[]).unwrap();
        assert_eq!(catalog.wanted(), None);
        assert!(catalog.maps().is_empty());
    }
}
