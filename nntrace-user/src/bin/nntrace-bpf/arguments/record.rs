//! Options of recording a run.

use std::time::Duration;

use nntrace_user::{live::calls::CallSpec, record::Trigger};

use super::{
    Live,
    help_headings::{BOUNDS, CAUSES, MARKS, OUTPUT},
    values::{duration, memory, size},
};

/// Records a run.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, clap::Args)]
pub struct Record {
    /// Run; `-o` names the folder of the recording, which must be new or empty.
    #[command(flatten)]
    pub live: Live,

    /// Record the begin of every section with its text
    ///
    /// A replay can then number iterations (--iteration-root) and show what caused what (.dot files).
    #[arg(long, help_heading = CAUSES, hide_short_help = true)]
    pub causes: bool,

    /// Print the command with the variables that would be recorded, as a shell takes it, and run nothing
    #[arg(long, requires = "command", help_heading = OUTPUT, hide_short_help = true)]
    pub print_only: bool,

    /// Record every call of a function with its arguments and its result
    ///
    /// LIB is a path, the name of a file that a target maps, or nothing for the executable; arguments are types, such as i32,
    /// str, *f64, bytes[16], out:bytes[ret]. Quote it for the shell: 'libc.so.6:open(str,i32)->i32'. `nntrace-bpf calls`
    /// shows the calls. May be given several times.
    #[arg(long = "call", value_name = "LIB:SYMBOL(..)->..", help_heading = MARKS, hide_short_help = true)]
    pub calls: Vec<CallSpec>,

    /// Record this variable of the environment too
    ///
    /// By default those are recorded that change what engines and loaders do, such as `OMP_NUM_THREADS` and `LD_LIBRARY_PATH`.
    /// `*` at the end stands for anything, `all` for every variable, secrets included; may be given several times.
    #[arg(long, value_name = "NAME", help_heading = OUTPUT, hide_short_help = true)]
    pub env: Vec<String>,

    /// Leave out the list of the files that the targets open
    ///
    /// It is files.json in the recording; with --flight there is none. While it grows, every system call on the machine takes a little longer.
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    pub no_files: bool,

    /// Hash opened files up to this size together
    ///
    /// At the end of the run, models and code first; such as 4G, or 0 for none.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1G",
          conflicts_with_all = ["no_files", "flight"], help_heading = OUTPUT, hide_short_help = true)]
    pub hash_files: u64,

    /// Keep the last TIME of the run in memory, and write it when a trigger fires
    ///
    /// Or on SIGUSR2, or on w in the live view: each time a recording of its own, first to the folder of -o, then to
    /// FOLDER-2, FOLDER-3 and so on, at most 100. Else nothing is written.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = BOUNDS)]
    pub flight: Option<Duration>,

    /// Write it when a section takes longer than this, such as `LR_PE > 20ms`
    ///
    /// NAME > DURATION or NAME >= DURATION; the name of a section, in which `*` and `?` stand for anything, or a layer and
    /// phase. Or `lost`: when records are lost. May be given several times. One that fires again within TIME is only counted.
    #[arg(long = "trigger", value_name = "CONDITION", requires = "flight", help_heading = BOUNDS)]
    pub triggers: Vec<Trigger>,

    /// Memory for the time that is kept
    ///
    /// When there is no room for more, the oldest is given up earlier.
    #[arg(long, value_name = "SIZE", value_parser = memory, default_value = "256M", requires = "flight",
          help_heading = BOUNDS, hide_short_help = true)]
    pub flight_memory: u64,

    /// End the recording, and not the run, when it has this size, such as 500M
    #[arg(long, value_name = "SIZE", value_parser = memory, conflicts_with = "flight", help_heading = BOUNDS)]
    pub max_size: Option<u64>,

    /// With --max-size: give up the oldest events instead, so that the newest stay
    #[arg(long, requires = "max_size", help_heading = BOUNDS)]
    pub rotate: bool,
}
