//! Files that are replaced atomically.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result};

pub(crate) fn failed(op: &'static str, path: Option<&Path>, error: &io::Error) -> Error {
    let path = path.map(Path::to_owned);
    Error::File { op, path, kind: error.kind(), why: error.to_string() }
}

pub(crate) fn malformed(why: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why.into())
}

/// Reads a file, whose length in bytes `read` gets too.
pub(crate) fn read<R>(
    op: &'static str,
    path: &Path,
    read: impl FnOnce(File, u64) -> io::Result<R>,
) -> Result<R> {
    let read = open(path).and_then(|(file, len)| read(file, len));
    read.map_err(|error| failed(op, Some(path), &error))
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok((file, metadata.len()))
}

/// Writes a new file beside `path`, syncs it to disk and renames it over `path`.
pub(crate) fn replace(
    op: &'static str,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    replaced(path, write).map_err(|error| failed(op, Some(path), &error))
}

fn replaced(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
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
