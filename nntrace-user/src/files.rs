//! Files of results, besides what is shown.

use std::{fs::File, io::Write as _, path::PathBuf};

use anyhow::{Context as _, Result};
use nntrace_user::{
    export::dot,
    model::{Marks, steps::Lanes},
    report::{
        power::{self, PowerTable},
        snapshot::Snapshot,
        timeline,
    },
};

use crate::{
    cli::{OutputKind, Results, Table},
    output,
};

/// Files of results, open from the start: so that a mistake costs nothing.
pub struct Files {
    files: Vec<(OutputKind, PathBuf, File)>,
    tables: Vec<PowerTable>,
}

impl Files {
    /// Creates what the command line asks for.
    pub fn open(results: &Results) -> Result<Self> {
        let files = results.outputs.iter().map(|wanted| {
            Ok((wanted.kind, wanted.path.clone(), output::create(&wanted.path, results.force)?))
        });
        let table = results.table.and_then(Table::of_power);
        Ok(Self {
            files: files.collect::<Result<_>>()?,
            tables: table.map_or_else(|| PowerTable::ALL.to_vec(), |table| vec![table]),
        })
    }

    /// Writes the last results.
    pub fn write(self, snapshot: &Snapshot, lanes: Option<&Lanes>, marks: &Marks) -> Result<()> {
        for (kind, path, mut file) in self.files {
            let bytes = match (kind, lanes) {
                (OutputKind::Json, _) => output::json(snapshot)?,
                (OutputKind::Csv, _) => power::csv(snapshot, &self.tables)?.into_bytes(),
                (OutputKind::Svg, Some(lanes)) => timeline::svg(snapshot, lanes).into_bytes(),
                (OutputKind::Dot, _) => dot::render(marks).into_bytes(),
                // A picture without a lane, as it is with power events that never came.
                (OutputKind::Svg, None) => timeline::svg(snapshot, &Lanes::default()).into_bytes(),
            };
            file.write_all(&bytes)
                .and_then(|()| file.flush())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}
