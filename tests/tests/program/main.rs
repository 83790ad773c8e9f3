//! The program itself: its command line, who may run it, which files it writes, and what it takes.

mod arguments;
mod blocked_output;
mod doctor;
mod file_examiner;
mod memory;
mod ordinary_user;
mod result_files;
mod results_under_sudo;
mod surroundings;
