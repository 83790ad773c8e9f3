//! Commands that provide what a capability lacks.

use std::env;

use nix::unistd::Uid;

use crate::live::{privilege, tracefs};

/// Returns the path of this program, as a word of a command.
pub(super) fn program() -> String {
    env::current_exe().map_or_else(|_| "nntrace-bpf".into(), |path| path.display().to_string())
}

/// Returns the command that does the same as root; none where this is root, or nothing that it starts gets the privileges.
pub(super) fn as_root() -> Vec<String> {
    if Uid::effective().is_root() || !privilege::out_of_reach().is_empty() {
        return Vec::new();
    }
    vec![format!("sudo {} doctor", program())]
}

/// Returns the commands for missing privileges.
pub(super) fn privileges() -> Vec<String> {
    let mut commands = as_root();
    if !commands.is_empty() {
        commands.push(privilege::setcap_command());
    }
    commands
}

/// Returns the commands for tracefs that this user cannot read.
pub(super) fn tracefs() -> Vec<String> {
    if tracefs::mounted().is_some() { privileges() } else { vec![tracefs::MOUNT.into()] }
}
