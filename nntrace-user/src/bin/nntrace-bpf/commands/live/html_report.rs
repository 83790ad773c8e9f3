//! Parts of a report in HTML that no other result of a live run needs.

use nntrace_user::{
    export::html::{self, Sections, SharedSections},
    live::session::Session,
};

use crate::{
    arguments::{Live, OutputKind},
    commands::record::host_name,
    output::{files::ReportFacts, shell_words::shell_words},
};

/// Collection of these parts, while the run goes on.
pub struct HtmlReport {
    title: String,
    host_name: String,
    sections: SharedSections,
}

impl HtmlReport {
    /// Begins to collect, if a report is to be written.
    pub fn begin(cli: &Live, session: &mut Session) -> Self {
        let command: Vec<String> =
            cli.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let title = if command.is_empty() { cli.target() } else { shell_words(&command) };
        let sections = SharedSections::new(Sections::new(cli.results.swimlane()).into());
        if cli.results.wants(OutputKind::Html) {
            session.observe_by(html::observer(&sections));
        }
        Self { title, host_name: host_name(), sections }
    }

    /// Ends the collection; returns the sections.
    pub fn take_sections(&self) -> Sections {
        self.sections.take()
    }

    /// Returns what a report with these sections shows besides results.
    pub fn facts<'a>(&'a self, sections: &'a Sections) -> ReportFacts<'a> {
        ReportFacts { title: &self.title, host_name: Some(&self.host_name), sections, threads: &[] }
    }
}
