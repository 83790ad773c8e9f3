//! Libraries of engines in Debian's packages for arm64, which the tests read.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use anyhow::{Context as _, Result};

use super::folder;
use crate::debian::Debian;

/// Folders below `arm64`, and the packages that they are from.
const PACKAGES: [(&str, &str); 2] = [("opencv-dnn", "libopencv-dnn406"), ("xnnpack", "libxnnpack0")];

/// Fetches those that are missing.
pub fn fetch() -> Result<()> {
    let arm64 = folder()?.join("arm64");
    let missing = PACKAGES.iter().filter(|(name, package)| !is_there(&arm64.join(name), package));
    let missing: Vec<_> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    let debian = Debian::open()?;
    for (name, package) in missing {
        let place = arm64.join(name);
        fs::create_dir_all(&place).with_context(|| place.display().to_string())?;
        debian.download(&format!("{package}:arm64"))?.files(|path, content| {
            let Some(file) = path.file_name().filter(|file| file.to_string_lossy().contains(".so")) else {
                return Ok(());
            };
            let to = place.join(file);
            let mut copy = File::create(&to).with_context(|| to.display().to_string())?;
            io::copy(content, &mut copy).with_context(|| to.display().to_string())?;
            Ok(())
        })?;
        fs::write(place.join(STAMP), package)?;
    }
    Ok(())
}

/// File that is written last, with the name of the package.
const STAMP: &str = "package.txt";

fn is_there(place: &Path, package: &str) -> bool {
    fs::read_to_string(place.join(STAMP)).is_ok_and(|found| found == package)
}
