//! Names of interface calls that known drivers and runtimes make. The programs get them beforehand, so that even
//! their first marks count; other names are added when they are first met.

/// Methods, with their versions.
const METHODS: [(&str, &[&str]); 3] = [
    (
        "IDevice",
        &[
            "allocate",
            "getCapabilities",
            "getCapabilities_1_1",
            "getCapabilities_1_2",
            "getCapabilities_1_3",
            "getNumberOfCacheFilesNeeded",
            "getStatus",
            "getSupportedExtensions",
            "getSupportedOperations",
            "getSupportedOperations_1_1",
            "getSupportedOperations_1_2",
            "getSupportedOperations_1_3",
            "getType",
            "getVersionString",
            "prepareModel",
            "prepareModelFromCache",
            "prepareModelFromCache_1_3",
            "prepareModel_1_1",
            "prepareModel_1_2",
            "prepareModel_1_3",
        ],
    ),
    (
        "IPreparedModel",
        &[
            "configureExecutionBurst",
            "execute",
            "executeFenced",
            "executeSynchronously",
            "executeSynchronously_1_3",
            "execute_1_2",
            "execute_1_3",
        ],
    ),
    ("IExecutionCallback", &["notify", "notify_1_2", "notify_1_3"]),
];

/// Returns all these names.
pub(crate) fn well_known() -> impl Iterator<Item = String> {
    ["HIDL", "AIDL::ndk"].into_iter().flat_map(|stubs| {
        METHODS.into_iter().flat_map(move |(interface, methods)| {
            methods.iter().flat_map(move |method| {
                ["client", "server", "passthrough"]
                    .into_iter()
                    .map(move |side| format!("{stubs}::{interface}::{method}::{side}"))
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_name_is_there_once_and_is_an_interface_call() {
        let names: Vec<String> = well_known().collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        assert!(names.iter().all(|name| nntrace_common::hidl_calls::is_interface_call(name.as_bytes())));
        assert!(names.contains(&"HIDL::IPreparedModel::execute_1_2::server".to_owned()));
    }
}
