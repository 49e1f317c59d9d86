//! What the desktop around the program does for it: the system's folder chooser, and the programs that open files. Also
//! says where a typed path leads. All of it waits for disks, other programs or people: call it on a thread of its own.

use crate::fs::confined_dir::ConfinedPath;
use anyhow::{anyhow, bail};
use ashpd::desktop::ResponseError;
use ashpd::desktop::file_chooser::SelectedFiles;
use ashpd::desktop::print::{PrintOptions, PrintProxy};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Folders that are offered for a typed beginning.
const MAX_FOLDER_COMPLETIONS: usize = 6;
/// Entries of a folder that are looked at for completions.
const MAX_COMPLETED_ENTRIES: usize = 20_000;

/// The answer of the system's folder chooser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderChoice {
    /// The folder that the user chose.
    Chosen(PathBuf),
    /// The user closed the chooser.
    Canceled,
    /// There's no chooser here.
    Unavailable,
}

/// Shows a folder chooser and waits for the user.
pub type FolderChooser = Arc<dyn Fn() -> FolderChoice + Send + Sync>;

/// Shows the folder chooser of the desktop's portal, and waits for the user.
pub fn choose_folder() -> FolderChoice {
    let asked = async {
        let request = SelectedFiles::open_file().title("Open folder as volume").accept_label("Open").directory(true);
        request.send().await?.response()
    };
    match pollster::block_on(asked) {
        Ok(chosen) => match chosen.uris().first().and_then(|uri| uri.as_str().strip_prefix("file://")) {
            Some(path) => FolderChoice::Chosen(PathBuf::from(&*text::outline::percent_decode(path))),
            None => FolderChoice::Unavailable,
        },
        Err(ashpd::Error::Response(ResponseError::Cancelled)) => FolderChoice::Canceled,
        Err(error) => {
            tracing::info!("the desktop has no folder chooser: {error}");
            FolderChoice::Unavailable
        }
    }
}

/// What is at a typed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedPath {
    /// A folder, with links in its path followed.
    Folder(PathBuf),
    /// Something else, with links in its path followed.
    File(PathBuf),
    /// Nothing.
    Missing(PathBuf),
    /// It can't be looked at, and why.
    Unreadable(PathBuf, String),
}

/// Looks at a path.
pub fn inspect_path(path: &Path) -> TypedPath {
    let found = std::fs::canonicalize(path).and_then(|whole| Ok((std::fs::metadata(&whole)?.is_dir(), whole)));
    match found {
        Ok((true, whole)) => TypedPath::Folder(whole),
        Ok((false, whole)) => TypedPath::File(whole),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            TypedPath::Missing(path.to_owned())
        }
        Err(error) => TypedPath::Unreadable(path.to_owned(), error.to_string()),
    }
}

/// The folders that an absolute path may become when typing continues, by name. Hidden ones only behind a dot.
pub fn complete_folder(typed: &str) -> Vec<String> {
    let Some((above, begin)) = typed.rsplit_once('/') else { return Vec::new() };
    let begin = begin.to_lowercase();
    let Ok(entries) = std::fs::read_dir(format!("{above}/")) else { return Vec::new() };
    let mut found: Vec<String> = entries
        .take(MAX_COMPLETED_ENTRIES)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let fits = name.to_lowercase().starts_with(&begin) && (begin.starts_with('.') || !name.starts_with('.'));
            // A link may lead to a folder: only those that fit are followed.
            (fits && entry.path().is_dir()).then(|| format!("{above}/{name}"))
        })
        .collect();
    found.sort_by_key(|path| path.to_lowercase());
    found.truncate(MAX_FOLDER_COMPLETIONS);
    found
}

/// Opens a file or folder with the program that the user has set for its kind.
pub type FileOpener = Arc<dyn Fn(&Path) -> anyhow::Result<()> + Send + Sync>;

/// The path that another program may open for a file of a volume: of the file itself, or of its folder. A file that
/// would be started instead of shown is refused.
///
/// # Errors
/// A sentence.
pub fn openable_path(file: &ConfinedPath, shows_folder: bool) -> anyhow::Result<PathBuf> {
    let (_, meta) = file.open()?;
    let path = file.root.join(&file.path);
    if shows_folder {
        return Ok(path.parent().unwrap_or(&file.root).to_owned());
    }
    let is_launcher = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("desktop"));
    if is_launcher || is_executable(&meta) {
        bail!("it's a program and would be started; show it in its folder instead: {}", file.display());
    }
    Ok(path)
}

#[cfg(unix)]
fn is_executable(meta: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}

/// Opens a file or folder with the program that the user has set for its kind.
///
/// # Errors
/// A sentence.
pub fn open_in_default_app(path: &Path) -> anyhow::Result<()> {
    // An absolute path is no option and no address; no shell reads it.
    if !path.is_absolute() {
        bail!("it has no absolute path: {}", path.display());
    }
    let opened =
        Command::new("xdg-open").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match opened {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(anyhow!("no program is set for files of this kind: {}", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(anyhow!("xdg-open is missing; install the package xdg-utils"))
        }
        Err(error) => Err(anyhow!("xdg-open doesn't start ({error})")),
    }
}

/// What became of a page that was to be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintOutcome {
    /// The user chose a printer in the system's dialog.
    Sent,
    /// The user closed the dialog.
    Canceled,
    /// There is no dialog here: the program for PDF files shows it.
    Opened,
}

/// Prints a PDF file of this title, and waits for the user.
pub type PdfPrinter = Arc<dyn Fn(&str, &Path) -> anyhow::Result<PrintOutcome> + Send + Sync>;

/// Where a PDF file that is to be printed can be written: in a new folder that nobody else can read.
///
/// # Errors
/// Those of the temporary folder.
pub fn new_print_file(title: &str) -> io::Result<PathBuf> {
    let name: String = title.chars().filter(|letter| !matches!(letter, '/' | '\\' | '\0')).take(60).collect();
    let folder = tempfile::Builder::new().prefix("tracebook-print-").tempdir()?.keep();
    Ok(folder.join(format!("{}.pdf", name.trim_start_matches('.'))))
}

/// Prints a file of [`new_print_file`] with the dialog of the desktop's portal; where there is none, shows it in the
/// program for PDF files. The file is removed unless that program reads it.
///
/// # Errors
/// A sentence.
pub fn print_pdf(title: &str, path: &Path) -> anyhow::Result<PrintOutcome> {
    let file = std::fs::File::open(path).map_err(|error| anyhow!("the page can't be read ({error})"))?;
    let asked = async { PrintProxy::new().await?.print(None, title, &file, PrintOptions::default()).await?.response() };
    let outcome = match pollster::block_on(asked) {
        Ok(()) => PrintOutcome::Sent,
        Err(ashpd::Error::Response(ResponseError::Cancelled)) => PrintOutcome::Canceled,
        Err(error) => {
            tracing::info!("the desktop has no dialog for printing: {error}");
            return open_in_default_app(path).map(|()| PrintOutcome::Opened);
        }
    };
    if let Some(folder) = path.parent()
        && let Err(error) = std::fs::remove_dir_all(folder)
    {
        tracing::warn!("a printed page stays in {}: {error}", folder.display());
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_folders_are_completed_and_looked_at() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path().canonicalize().expect("a path");
        for name in ["Notes", "news", ".hidden", "other"] {
            std::fs::create_dir(root.join(name)).expect("a folder");
        }
        std::fs::write(root.join("notes.txt"), "").expect("a file");
        let names = |typed: &str| -> Vec<String> {
            let found = complete_folder(&format!("{}/{typed}", root.display()));
            found.iter().map(|path| path.rsplit('/').next().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(names("n"), ["news", "Notes"]);
        assert_eq!(names(""), ["news", "Notes", "other"]);
        assert_eq!(names(".h"), [".hidden"]);
        assert!(names("x").is_empty() && names("no/where/").is_empty() && complete_folder("n").is_empty());
        assert_eq!(inspect_path(&root.join("Notes")), TypedPath::Folder(root.join("Notes")));
        assert_eq!(inspect_path(&root.join("notes.txt")), TypedPath::File(root.join("notes.txt")));
        for missing in ["nope", "notes.txt/below"] {
            assert_eq!(inspect_path(&root.join(missing)), TypedPath::Missing(root.join(missing)));
        }
    }
}
