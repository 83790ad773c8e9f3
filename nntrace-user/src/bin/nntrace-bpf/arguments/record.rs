//! Options of recording a run.

use nntrace_user::live::calls::CallSpec;

use super::{
    Live,
    help_headings::{CAUSES, MARKS, OUTPUT},
    values::size,
};

/// Records a run.
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

    /// Record every call of a function with its arguments and its result
    ///
    /// LIB is a path, the name of a file that a target maps, or nothing for the executable; arguments are types, such as i32,
    /// str, *f64, bytes[16], out:bytes[ret]. Quote it for the shell: 'libc.so.6:open(str,i32)->i32'. `nntrace-bpf calls`
    /// shows the calls. May be given several times.
    #[arg(long = "call", value_name = "LIB:SYMBOL(..)->..", help_heading = MARKS, hide_short_help = true)]
    pub calls: Vec<CallSpec>,

    /// Record this variable of the environment too
    ///
    /// By itself those are recorded that change what engines and loaders do, such as `OMP_NUM_THREADS` and `LD_LIBRARY_PATH`.
    /// `*` at the end stands for anything, `all` for every variable, secrets included; may be given several times.
    #[arg(long, value_name = "NAME", help_heading = OUTPUT, hide_short_help = true)]
    pub env: Vec<String>,

    /// Leave out the list of the files that the targets open
    ///
    /// It is files.json in the recording. While it grows, every system call on the machine takes a little longer.
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    pub no_files: bool,

    /// Hash opened files up to this size together
    ///
    /// At the end of the run, models and code first; such as 4G, or 0 for none.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1G", conflicts_with = "no_files",
          help_heading = OUTPUT, hide_short_help = true)]
    pub hash_files: u64,
}
