//! User that a launched command runs as: under `sudo nntrace-bpf -- command`, the user who called sudo.

use std::ffi::{CString, OsString};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::unistd::{Gid, Uid, User, getgrouplist};
use thiserror::Error;

/// Variables in which sudo describes its caller, removed for a command that no longer runs under sudo.
const SUDO_VARIABLES: [&str; 5] = ["SUDO_COMMAND", "SUDO_GID", "SUDO_HOME", "SUDO_UID", "SUDO_USER"];

/// User to run a command as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAs {
    /// User id.
    pub uid: Uid,
    /// Main group.
    pub gid: Gid,
    /// All groups.
    pub groups: Vec<Gid>,
    /// Entry in the user database.
    account: Option<Account>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Account {
    name: OsString,
    home: OsString,
    shell: OsString,
}

impl Account {
    fn of(user: &User) -> Self {
        Self {
            name: user.name.clone().into(),
            home: user.dir.clone().into(),
            shell: user.shell.clone().into(),
        }
    }
}

/// Variable, and its value for a user.
type AccountVariable = (&'static str, fn(&Account) -> &OsString);

/// Variables that sudo sets to root's values.
const ACCOUNT_VARIABLES: [AccountVariable; 4] = [
    ("HOME", |account| &account.home),
    ("USER", |account| &account.name),
    ("LOGNAME", |account| &account.name),
    ("SHELL", |account| &account.shell),
];

/// Reason why the user to run a command as is unclear.
#[derive(Debug, Error)]
pub enum RunAsError {
    /// A variable of sudo is not a number.
    #[error("{variable}={} is no user or group number: unset it to run the command as root, or call sudo again", .value.display())]
    BadNumber {
        /// Name of the variable.
        variable: &'static str,
        /// Value of the variable.
        value: OsString,
    },
    /// The user database cannot be read.
    #[error("cannot look up user {uid} who called sudo: {source}; `getent passwd {uid}` must work")]
    Lookup {
        /// User id.
        uid: Uid,
        /// Cause.
        source: nix::Error,
    },
}

impl RunAs {
    /// Returns the user who called sudo, from `SUDO_UID` and `SUDO_GID`; `None` if we are not root, or not by sudo,
    /// or if root called it.
    ///
    /// # Errors
    /// When these variables are not numbers, or the user database fails. A user who is not in it is no error.
    pub fn sudo_caller() -> Result<Option<Self>, RunAsError> {
        if !Uid::effective().is_root() {
            return Ok(None);
        }
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, RunAsError> {
        let number = |name: &'static str| {
            variable(name)
                .map(|value| {
                    value
                        .to_str()
                        .and_then(|text| text.parse().ok())
                        .ok_or(RunAsError::BadNumber { variable: name, value })
                })
                .transpose()
        };
        let Some(uid) = number("SUDO_UID")?.map(Uid::from_raw).filter(|uid| !uid.is_root()) else {
            return Ok(None);
        };
        let gid = number("SUDO_GID")?.map(Gid::from_raw);
        Self::user(uid, gid).map(Some)
    }

    /// Returns a user with the groups from the user database and the given main group, if any.
    ///
    /// # Errors
    /// When the user database fails. A user who is not in it has only the main group, by default the one with the
    /// user's number.
    pub(crate) fn user(uid: Uid, gid: Option<Gid>) -> Result<Self, RunAsError> {
        let failed = |source| RunAsError::Lookup { uid, source };
        let Some(user) = User::from_uid(uid).map_err(failed)? else {
            let gid = gid.unwrap_or(Gid::from_raw(uid.as_raw()));
            return Ok(Self { uid, gid, groups: vec![gid], account: None });
        };
        let gid = gid.unwrap_or(user.gid);
        let name = CString::new(user.name.as_str()).map_err(|_| failed(nix::Error::EINVAL))?;
        let groups = getgrouplist(&name, gid).map_err(failed)?;
        Ok(Self { uid, gid, groups, account: Some(Account::of(&user)) })
    }

    /// Returns the name for display.
    #[must_use]
    pub(crate) fn name(&self) -> String {
        match &self.account {
            Some(account) => account.name.to_string_lossy().into_owned(),
            None => format!("user {}", self.uid),
        }
    }

    /// Checks that the user may read a file, by its mode and those of the directories on the way to it. The path is
    /// absolute.
    ///
    /// # Errors
    /// When the user may not, with the file or directory that is the reason; when that cannot be examined.
    pub(crate) fn may_read(&self, path: &Path) -> io::Result<()> {
        const READ: u32 = 4;
        const PASS: u32 = 1;
        let file = std::iter::once((path, READ));
        for (path, right) in file.chain(path.ancestors().skip(1).map(|folder| (folder, PASS))) {
            if !self.has_right(&std::fs::metadata(path)?, right) {
                let text = format!("the mode of {} does not permit it", path.display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
            }
        }
        Ok(())
    }

    /// Whether the user has a right, a bit of those of others, on a file.
    fn has_right(&self, file: &Metadata, right: u32) -> bool {
        let shift = if file.uid() == self.uid.as_raw() {
            6
        } else if self.gid.as_raw() == file.gid()
            || self.groups.iter().any(|group| group.as_raw() == file.gid())
        {
            3
        } else {
            0
        };
        self.uid.is_root() || file.mode() >> shift & right != 0
    }

    /// Returns the changes of the environment: variables with a new value, or without one to remove them.
    ///
    /// Variables that sudo has set to root's values (`HOME`, `USER`, `LOGNAME`, `SHELL`) are set back. Those that the
    /// caller kept or set, as by `sudo -E` or `sudo HOME=/x`, are left alone, and so is `PATH`: the command was
    /// looked up in ours.
    pub(crate) fn environment(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&'static str, Option<OsString>)> {
        let mut changes: Vec<_> = SUDO_VARIABLES.map(|name| (name, None)).into();
        let Some(account) = &self.account else {
            return changes;
        };
        let root = User::from_uid(Uid::from_raw(0)).ok().flatten().as_ref().map(Account::of);
        for (name, field) in ACCOUNT_VARIABLES {
            let is_roots = |value| root.as_ref().is_some_and(|root| value == *field(root));
            if variable(name).is_none_or(is_roots) {
                changes.push((name, Some(field(account).clone())));
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<OsString> {
        |name| pairs.iter().find(|(known, _)| *known == name).map(|&(_, value)| value.into())
    }

    #[test]
    fn who_called_sudo() {
        assert_eq!(RunAs::from_variables(of(&[])).unwrap(), None);
        assert_eq!(RunAs::from_variables(of(&[("SUDO_UID", "0"), ("SUDO_GID", "0")])).unwrap(), None);
        let stranger =
            RunAs::from_variables(of(&[("SUDO_UID", "3999999"), ("SUDO_GID", "3999998")])).unwrap().unwrap();
        assert_eq!((stranger.uid.as_raw(), stranger.gid.as_raw()), (3_999_999, 3_999_998));
        assert_eq!(stranger.groups, [stranger.gid]);
        assert_eq!(stranger.name(), "user 3999999");
        let error = RunAs::from_variables(of(&[("SUDO_UID", "me")])).unwrap_err().to_string();
        assert!(error.starts_with("SUDO_UID=me is no user or group number"), "{error}");
    }

    #[test]
    fn a_file_is_read_by_whom_its_mode_and_those_of_its_folders_permit() {
        use std::os::unix::fs::PermissionsExt as _;

        let user = |uid, gid| RunAs {
            uid: Uid::from_raw(uid),
            gid: Gid::from_raw(gid),
            groups: vec![],
            account: None,
        };
        let dir = tempfile::tempdir().unwrap();
        let (folder, file) = (dir.path().join("folder"), dir.path().join("folder/file"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&file, "").unwrap();
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            std::fs::metadata(path).unwrap()
        };
        set(dir.path(), 0o755);
        let own = set(&folder, 0o755);
        let (owner, group) = (user(own.uid(), 3_999_998), user(3_999_999, own.gid()));
        let stranger = user(3_999_999, 3_999_998);
        for (folder_mode, file_mode, expected) in [
            (0o755, 0o644, [true, true, true]),
            (0o750, 0o644, [true, true, false]),
            (0o755, 0o640, [true, true, false]),
            (0o755, 0o604, [true, false, true]),
            (0o744, 0o644, [true, false, false]),
        ] {
            set(&folder, folder_mode);
            set(&file, file_mode);
            let reads = [&owner, &group, &stranger].map(|user| user.may_read(&file).is_ok());
            assert_eq!(reads, expected, "{folder_mode:o} {file_mode:o}");
        }
        let text = stranger.may_read(&file).unwrap_err().to_string();
        assert_eq!(text, format!("the mode of {} does not permit it", folder.display()));
        assert!(user(0, 0).may_read(&file).is_ok());
        assert!(user(0, 0).may_read(&dir.path().join("none")).is_err());
    }

    #[test]
    fn what_sudo_set_is_set_back() {
        let user = RunAs {
            uid: Uid::from_raw(1234),
            gid: Gid::from_raw(1234),
            groups: vec![],
            account: Some(Account { name: "ann".into(), home: "/home/ann".into(), shell: "/bin/zsh".into() }),
        };
        let root = User::from_uid(Uid::from_raw(0)).unwrap().unwrap();
        let root_home = root.dir.into_os_string();
        let changes = user.environment(|name| match name {
            "HOME" => Some(root_home.clone()),
            "USER" => Some("kept".into()),
            "LOGNAME" => Some("root".into()),
            _ => None,
        });
        let change =
            |name: &str| changes.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        assert_eq!(change("HOME"), Some(Some("/home/ann".into())));
        assert_eq!(change("USER"), None, "the caller's own value stays");
        assert_eq!(change("LOGNAME"), Some(Some("ann".into())));
        assert_eq!(change("SHELL"), Some(Some("/bin/zsh".into())));
        assert_eq!(change("SUDO_UID"), Some(None));
        assert_eq!(change("PATH"), None);
    }
}
