//! Tables and their columns, as `docs/parquet.md` describes them.

use std::sync::Arc;

use parquet::{
    basic::{Encoding, LogicalType, Repetition, TimeUnit, Type as Physical},
    errors::Result,
    schema::types::{Type, TypePtr},
};

/// Version of the tables. Within it, columns are only added, and only after the others.
pub(crate) const VERSION: u32 = 1;

/// Table in a file of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schema {
    /// Name of the table; that of the file without its ending.
    pub(super) name: &'static str,
    /// Columns after those that each table has, `board` and `run`.
    pub(super) columns: &'static [Column],
}

/// Column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Name.
    pub(super) name: &'static str,
    /// Kind of its values.
    pub(super) kind: Kind,
    /// Whether it may be null.
    pub(super) is_optional: bool,
}

/// Kind of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Time or duration, ns, or a count.
    Long,
    /// Hash or a number that some program chose.
    Word,
    /// Number of a thread, a CPU, a state.
    Number,
    /// Time in the world, ns since 1970.
    Instant,
    /// Text of which there are few.
    Name,
    /// Text of which there may be as many as rows.
    Text,
    /// Truth value.
    Flag,
}

/// Columns that each table begins with.
pub(super) const LABEL: [Column; 2] = [needed("board", Kind::Name), needed("run", Kind::Name)];

/// Sections.
pub(super) const SPANS: Schema = Schema {
    name: "spans",
    columns: &[
        needed("pid", Kind::Number),
        needed("tid", Kind::Number),
        needed("layer", Kind::Name),
        needed("phase", Kind::Name),
        needed("name", Kind::Name),
        optional("attributes", Kind::Text),
        needed("begin_ns", Kind::Long),
        needed("end_ns", Kind::Long),
        needed("own_ns", Kind::Long),
        needed("exclusive_ns", Kind::Long),
        needed("depth", Kind::Number),
        needed("class", Kind::Name),
        needed("path", Kind::Word),
        needed("provisional", Kind::Flag),
        needed("in_itself", Kind::Flag),
    ],
};

/// States of CPUs over time.
pub(super) const CPU_INTERVALS: Schema = Schema {
    name: "cpu_intervals",
    columns: &[
        needed("cpu", Kind::Number),
        optional("cluster", Kind::Name),
        needed("begin_ns", Kind::Long),
        needed("end_ns", Kind::Long),
        needed("state", Kind::Name),
        optional("idle_state", Kind::Number),
        optional("idle_name", Kind::Name),
        optional("khz", Kind::Number),
        needed("ns", Kind::Long),
    ],
};

/// States of clusters over time.
pub(super) const CLUSTER_INTERVALS: Schema = Schema {
    name: "cluster_intervals",
    columns: &[
        needed("cluster", Kind::Name),
        needed("begin_ns", Kind::Long),
        needed("end_ns", Kind::Long),
        needed("state", Kind::Name),
        optional("idle_state", Kind::Number),
        optional("idle_name", Kind::Name),
        optional("khz", Kind::Number),
        needed("ns", Kind::Long),
    ],
};

/// Iterations.
pub(super) const ITERATIONS: Schema = Schema {
    name: "iterations",
    columns: &[
        needed("pid", Kind::Number),
        needed("name", Kind::Name),
        needed("iteration", Kind::Word),
        optional("parent_name", Kind::Name),
        optional("parent_iteration", Kind::Word),
        optional("begin_ns", Kind::Long),
        optional("end_ns", Kind::Long),
        needed("count", Kind::Long),
        needed("open", Kind::Long),
        needed("total_ns", Kind::Long),
        needed("exclusive_ns", Kind::Long),
        needed("wall_ns", Kind::Long),
        needed("missing_ns", Kind::Long),
    ],
};

/// Hand-overs.
pub(super) const HAND_OVERS: Schema = Schema {
    name: "handovers",
    columns: &[
        needed("evidence", Kind::Name),
        optional("handle", Kind::Word),
        optional("scope", Kind::Name),
        optional("sent_ns", Kind::Long),
        optional("sender_pid", Kind::Number),
        optional("sender_tid", Kind::Number),
        optional("received_ns", Kind::Long),
        optional("receiver_pid", Kind::Number),
        optional("receiver_tid", Kind::Number),
        optional("latency_ns", Kind::Long),
        optional("first_received_ns", Kind::Long),
        optional("started_ns", Kind::Long),
        optional("ended_ns", Kind::Long),
        optional("finished_ns", Kind::Long),
        optional("from_layer", Kind::Name),
        optional("layer", Kind::Name),
        optional("phase", Kind::Name),
        optional("name", Kind::Name),
        optional("iteration_pid", Kind::Number),
        optional("iteration_name", Kind::Name),
        optional("iteration", Kind::Word),
    ],
};

/// Exact totals.
pub(super) const TOTALS: Schema = Schema {
    name: "totals",
    columns: &[
        needed("kind", Kind::Name),
        needed("pid", Kind::Number),
        optional("process", Kind::Name),
        optional("role", Kind::Name),
        optional("layer", Kind::Name),
        optional("phase", Kind::Name),
        optional("name", Kind::Name),
        optional("path", Kind::Word),
        optional("stack", Kind::Name),
        needed("count", Kind::Long),
        needed("total_ns", Kind::Long),
        needed("exclusive_ns", Kind::Long),
    ],
};

/// Measured energy of power rails.
pub(super) const RAILS: Schema = Schema {
    name: "rails",
    columns: &[
        needed("source", Kind::Name),
        needed("chip", Kind::Name),
        needed("name", Kind::Name),
        needed("kind", Kind::Name),
        needed("energy_nj", Kind::Long),
        needed("begin_ns", Kind::Long),
        needed("end_ns", Kind::Long),
        needed("known_ns", Kind::Long),
        needed("readings", Kind::Long),
        needed("wraps", Kind::Long),
        needed("gaps", Kind::Long),
        needed("failed", Kind::Long),
        optional("failure", Kind::Text),
    ],
};

/// Facts about the run, in one row.
pub(super) const RUN: Schema = Schema {
    name: "run",
    columns: &[
        needed("schema_version", Kind::Number),
        needed("tool_version", Kind::Name),
        optional("recorder_version", Kind::Name),
        needed("source", Kind::Name),
        needed("files", Kind::Text),
        needed("marks_seen", Kind::Name),
        needed("kernel", Kind::Name),
        needed("machine", Kind::Name),
        needed("cpus", Kind::Number),
        needed("clock", Kind::Name),
        needed("begin_ns", Kind::Long),
        needed("end_ns", Kind::Long),
        optional("clock_monotonic_ns", Kind::Long),
        optional("clock_boottime_ns", Kind::Long),
        optional("clock_realtime_ns", Kind::Long),
        optional("began_at", Kind::Instant),
        optional("command", Kind::Text),
        optional("arguments", Kind::Text),
        optional("environment", Kind::Text),
        optional("exit_status", Kind::Number),
        needed("marks", Kind::Long),
        needed("power_events", Kind::Long),
        needed("records_dropped", Kind::Long),
        needed("incomplete", Kind::Text),
        needed("left_out", Kind::Text),
        optional("interval_resolution_ns", Kind::Long),
        needed("handovers_sent", Kind::Long),
        needed("handovers_received", Kind::Long),
        needed("handovers_unmatched", Kind::Long),
        needed("notes", Kind::Text),
    ],
};

/// All tables.
#[cfg(test)]
pub(super) const ALL: [Schema; 8] =
    [SPANS, CPU_INTERVALS, CLUSTER_INTERVALS, ITERATIONS, HAND_OVERS, TOTALS, RAILS, RUN];

const fn needed(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, is_optional: false }
}

const fn optional(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, is_optional: true }
}

impl Schema {
    /// Returns all columns.
    pub(super) fn columns(&self) -> impl Iterator<Item = &Column> {
        LABEL.iter().chain(self.columns)
    }

    /// Returns the schema in Parquet's own terms.
    ///
    /// # Errors
    /// When it has no such schema.
    pub(super) fn parquet(&self) -> Result<TypePtr> {
        let fields = self.columns().map(|column| column.parquet().map(Arc::new)).collect::<Result<_>>()?;
        Type::group_type_builder(self.name).with_fields(fields).build().map(Arc::new)
    }
}

impl Column {
    fn parquet(&self) -> Result<Type> {
        let repetition = if self.is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(self.name, self.kind.physical())
            .with_repetition(repetition)
            .with_logical_type(self.kind.logical())
            .build()
    }
}

impl Kind {
    /// Returns the type of what is stored.
    pub(super) const fn physical(self) -> Physical {
        match self {
            Self::Long | Self::Word | Self::Instant => Physical::INT64,
            Self::Number => Physical::INT32,
            Self::Name | Self::Text => Physical::BYTE_ARRAY,
            Self::Flag => Physical::BOOLEAN,
        }
    }

    fn logical(self) -> Option<LogicalType> {
        match self {
            Self::Long | Self::Flag => None,
            Self::Word => Some(LogicalType::integer(64, false)),
            Self::Number => Some(LogicalType::integer(32, false)),
            Self::Instant => Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
            Self::Name | Self::Text => Some(LogicalType::String),
        }
    }

    /// Returns the encoding of what is in no dictionary: differences for what grows from row to row.
    pub(super) const fn encoding(self) -> Encoding {
        match self {
            Self::Long => Encoding::DELTA_BINARY_PACKED,
            Self::Word | Self::Number | Self::Instant | Self::Name | Self::Text | Self::Flag => {
                Encoding::PLAIN
            }
        }
    }

    /// Whether equal values are stored once.
    pub(super) const fn has_dictionary(self) -> bool {
        matches!(self, Self::Number | Self::Name | Self::Word)
    }

    /// Whether integers have a sign; those without may have any of their bits set.
    pub(super) const fn is_signed(self) -> bool {
        matches!(self, Self::Long | Self::Instant)
    }

    /// Returns the type as DuckDB names it.
    #[cfg(test)]
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Long => "BIGINT",
            Self::Word => "UBIGINT",
            Self::Number => "UINTEGER",
            Self::Instant => "TIMESTAMPTZ_NS",
            Self::Name | Self::Text => "VARCHAR",
            Self::Flag => "BOOLEAN",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page has a heading for each table, and below it a row for each column: name, type, meaning.
    #[test]
    fn the_documentation_has_every_column() {
        let page = include_str!("../../../docs/parquet.md");
        for schema in ALL {
            let heading = format!("### {}.parquet\n", schema.name);
            let section = page.split_once(&heading).unwrap_or_else(|| panic!("no {heading}")).1;
            let section = section.split("\n#").next().unwrap();
            let rows: Vec<(&str, &str)> = section
                .lines()
                .filter_map(|line| {
                    let mut cells = line.strip_prefix("| `")?.split(" | ");
                    Some((cells.next()?.trim_end_matches('`'), cells.next()?))
                })
                .collect();
            let type_of = |column: &Column| {
                let null = if column.is_optional { ", may be null" } else { "" };
                format!("{}{null}", column.kind.name())
            };
            let types: Vec<String> = schema.columns.iter().map(type_of).collect();
            let expected: Vec<(&str, &str)> = schema
                .columns
                .iter()
                .zip(&types)
                .map(|(column, kind)| (column.name, kind.as_str()))
                .collect();
            assert_eq!(rows, expected, "{}", schema.name);
        }
    }
}
