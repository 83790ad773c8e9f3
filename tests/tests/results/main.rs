//! What people and other programs see: tables, screens, reports, exports and comparisons.

mod bench;
mod causes;
mod diff;
mod diff_recordings;
mod explain;
mod exports;
mod fleet;
mod hand_overs;
mod hostile_text;
mod html_report;
mod parquet;
mod perfetto;
mod profiles;
mod terminal;
mod what_if;
mod why;
mod why_line;
