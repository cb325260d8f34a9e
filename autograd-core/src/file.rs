//! Files that are replaced atomically.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok((file, metadata.len()))
}

/// Writes a new file beside `path`, syncs it to disk and renames it over `path`.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // A link stays, and its target is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = match fs::metadata(&target) {
        Ok(old) if !old.is_file() => {
            return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
        }
        // A rename would succeed even so.
        Ok(old) if old.permissions().readonly() => {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "the file is read-only"));
        }
        Ok(old) => Some(old),
        Err(_) => None,
    };
    let draft = Draft::beside(&target)?;
    let mut out = BufWriter::new(&draft.file);
    write(&mut out)?;
    out.flush()?;
    drop(out);
    if let Some(old) = old {
        draft.file.set_permissions(old.permissions())?;
    }
    draft.file.sync_all()?;
    draft.publish(&target)
}

/// A temporary file, which is removed on drop unless it was published.
struct Draft {
    file: File,
    path: PathBuf,
    published: bool,
}

impl Draft {
    fn beside(target: &Path) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(ErrorKind::InvalidInput, "not the name of a file"));
        };
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let mut draft = OsString::from(".");
            draft.push(name);
            draft.push(format!(".{}-{count}.tmp", process::id()));
            let path = target.with_file_name(draft);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Self { file, path, published: false }),
                // Left behind by a killed program with the same process id.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn publish(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.published = true;
        // Makes the new name survive a power failure, on systems that can do that.
        if let Some(folder) = target.parent()
            && let Ok(folder) =
                File::open(if folder == Path::new("") { Path::new(".") } else { folder })
        {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("files-{name}-{}", process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn names(&self) -> Vec<OsString> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_fails_half_way_leaves_the_old_file_and_nothing_else() {
        let folder = Folder::new("half");
        let path = folder.0.join("a");
        replace(&path, |out| out.write_all(b"old")).unwrap();
        let full = replace(&path, |out| {
            out.write_all(&[0; 100_000])?;
            Err(ErrorKind::StorageFull.into())
        });
        assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
        let panicked = std::panic::catch_unwind(|| replace(&path, |_| panic!("on purpose")));
        assert!(panicked.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(folder.names(), ["a"]);
        replace(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(folder.names(), ["a"]);
    }

    #[test]
    fn a_draft_that_was_left_behind_is_no_obstacle() {
        let folder = Folder::new("left");
        let path = folder.0.join("a");
        for count in 0..100 {
            fs::write(folder.0.join(format!(".a.{}-{count}.tmp", process::id())), "").unwrap();
        }
        replace(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn folders_and_read_only_files_are_refused() {
        let folder = Folder::new("refused");
        let replaced = |path: &Path| replace(path, |_| panic!("not to be written"));
        assert_eq!(replaced(&folder.0).unwrap_err().to_string(), "not a regular file");
        assert_eq!(replaced(Path::new("")).unwrap_err().to_string(), "not the name of a file");
        let missing = replaced(&folder.0.join("no/a")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        let path = folder.0.join("a");
        fs::write(&path, "old").unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
        assert_eq!(replaced(&path).unwrap_err().to_string(), "the file is read-only");
        assert_eq!(folder.names(), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = Folder::new("links");
        let (path, link) = (folder.0.join("a"), folder.0.join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        symlink("a", &link).unwrap();
        replace(&link, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            replace(Path::new("/dev/null"), |_| Ok(())).unwrap_err().to_string(),
            "not a regular file"
        );
    }
}
