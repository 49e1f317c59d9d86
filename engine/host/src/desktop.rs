//! Services of the desktop: choosers of folders and files, opening files in other programs, printing,
//! notifications, and completion of typed paths.
//!
//! All of them wait for disks, other programs or people, so call them on a separate thread.

use crate::fs::confined_dir::ConfinedPath;
use crate::fs::file_rights::is_executable_by_anyone;
use anyhow::{anyhow, bail};
use ashpd::desktop::ResponseError;
use ashpd::desktop::file_chooser::SelectedFiles;
use ashpd::desktop::notification::{Notification, NotificationProxy};
use ashpd::desktop::print::{PrintOptions, PrintProxy};
use ashpd::desktop::settings::{ColorScheme, ReducedMotion, Settings};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Maximum number of folders suggested for a typed path.
const MAX_FOLDER_COMPLETIONS: usize = 6;
/// Maximum number of a folder's entries that completion reads.
const MAX_COMPLETED_ENTRIES: usize = 20_000;

/// The answer of a chooser of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathChoice {
    /// The folder or file that the user chose.
    Chosen(PathBuf),
    /// The user closed the chooser.
    Canceled,
    /// The desktop has no such chooser.
    Unavailable,
}

/// Shows a folder chooser and waits for the user.
pub type FolderChooser = Arc<dyn Fn() -> PathChoice + Send + Sync>;

/// Shows the folder chooser of the desktop's portal, and waits for the user.
pub fn choose_folder() -> PathChoice {
    let asked = async {
        let request = SelectedFiles::open_file().title("Choose a folder").accept_label("Open").directory(true);
        request.send().await?.response()
    };
    chosen_path(pollster::block_on(asked))
}

/// Shows a chooser for a file with this proposed path, and waits for the user.
pub type FileChooser = Arc<dyn Fn(&Path) -> PathChoice + Send + Sync>;

/// Shows the desktop portal's dialog for a new file, and waits for the user.
pub fn choose_new_file(proposed: &Path) -> PathChoice {
    let asked = async {
        let name = proposed.file_name().and_then(|name| name.to_str());
        let request = SelectedFiles::save_file().title("Save as").accept_label("Save").current_name(name);
        request.current_folder::<&Path>(proposed.parent())?.send().await?.response()
    };
    chosen_path(pollster::block_on(asked))
}

/// Shows the desktop portal's dialog for an existing file in the folder of this one, and waits for the user.
pub fn choose_file(proposed: &Path) -> PathChoice {
    let asked = async {
        let request = SelectedFiles::open_file().title("Choose a file").accept_label("Choose");
        request.current_folder::<&Path>(proposed.parent())?.send().await?.response()
    };
    chosen_path(pollster::block_on(asked))
}

fn chosen_path(answer: ashpd::Result<SelectedFiles>) -> PathChoice {
    match answer {
        Ok(chosen) => match chosen.uris().first().and_then(|uri| uri.as_str().strip_prefix("file://")) {
            Some(path) => PathChoice::Chosen(PathBuf::from(&*text::outline::percent_decode(path))),
            None => PathChoice::Unavailable,
        },
        Err(ashpd::Error::Response(ResponseError::Cancelled)) => PathChoice::Canceled,
        Err(error) => {
            tracing::info!("the desktop has no chooser of files: {error}");
            PathChoice::Unavailable
        }
    }
}

/// Shows a notification with a title and a text.
pub type DesktopNotifier = Arc<dyn Fn(&str, &str) -> anyhow::Result<()> + Send + Sync>;

/// Shows a notification of the desktop's portal. A later one with the same title replaces it.
///
/// # Errors
/// Returns an error if the desktop has no notifications.
pub fn show_notification(title: &str, body: &str) -> anyhow::Result<()> {
    let notification = Notification::new(title).body(body);
    let asked = async { NotificationProxy::new().await?.add_notification(title, notification).await };
    pollster::block_on(asked).map_err(|error: ashpd::Error| {
        tracing::info!("the desktop shows no notifications: {error}");
        anyhow!("the desktop shows no notifications: {error}")
    })
}

/// How the desktop looks; what it doesn't say is false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DesktopLook {
    /// Whether it's dark.
    pub is_dark: bool,
    /// Whether it avoids motion.
    pub reduces_motion: bool,
}

/// Asks how the desktop looks.
pub type DesktopLookReader = Arc<dyn Fn() -> DesktopLook + Send + Sync>;

/// Asks the desktop's portal how it looks.
pub fn read_look() -> DesktopLook {
    let asked = async {
        let settings = Settings::new().await?;
        let reduces_motion = match settings.reduced_motion().await {
            Ok(motion) => motion == ReducedMotion::ReducedMotion,
            // Older desktops have only GNOME's own key.
            Err(_) => {
                let moves = settings.read::<bool>("org.gnome.desktop.interface", "enable-animations").await;
                moves.is_ok_and(|moves| !moves)
            }
        };
        let is_dark = settings.color_scheme().await.is_ok_and(|scheme| scheme == ColorScheme::PreferDark);
        Ok::<_, ashpd::Error>(DesktopLook { is_dark, reduces_motion })
    };
    pollster::block_on(asked).unwrap_or_default()
}

/// What exists at a typed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedPath {
    /// A folder, as its canonical path.
    Folder(PathBuf),
    /// A file or something else, as its canonical path.
    File(PathBuf),
    /// Nothing exists at the path.
    Missing(PathBuf),
    /// The path can't be read, with the reason.
    Unreadable(PathBuf, String),
}

/// Finds out what exists at a path.
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

/// Returns folders that complete a typed absolute path, sorted by name. Hidden ones are included only after a typed
/// dot.
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
            // A symbolic link may lead to a folder. Only matching entries are followed.
            (fits && entry.path().is_dir()).then(|| format!("{above}/{name}"))
        })
        .collect();
    found.sort_by_key(|path| path.to_lowercase());
    found.truncate(MAX_FOLDER_COMPLETIONS);
    found
}

/// Opens a file or folder with the user's default program.
pub type FileOpener = Arc<dyn Fn(&Path) -> anyhow::Result<()> + Send + Sync>;

/// Returns the path to open in another program for a file of a volume: the file itself, or its folder.
///
/// # Errors
/// Returns an error if the file can't be opened, or if it would be executed instead of shown.
pub fn openable_path(file: &ConfinedPath, shows_folder: bool) -> anyhow::Result<PathBuf> {
    let (_, meta) = file.open()?;
    let path = file.root.join(&file.path);
    if shows_folder {
        return Ok(path.parent().unwrap_or(&file.root).to_owned());
    }
    let is_launcher = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("desktop"));
    if is_launcher || is_executable_by_anyone(&meta) {
        bail!("it's a program and would be started; show it in its folder instead: {}", file.display());
    }
    Ok(path)
}

/// Opens a file or folder with the user's default program.
///
/// # Errors
/// Returns an error if the path isn't absolute, no default program is set, or `xdg-open` can't be started.
pub fn open_in_default_app(path: &Path) -> anyhow::Result<()> {
    // An absolute path can't be read as an option or a URL, and no shell parses it.
    if !path.is_absolute() {
        bail!("it has no absolute path: {}", path.display());
    }
    let mut opener = Command::new("xdg-open");
    opener.arg(path).env_remove(crate::maintenance::secrets::PASSPHRASE_VARIABLE);
    match opener.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(anyhow!("no program is set for files of this kind: {}", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(anyhow!("xdg-open is missing; install the package xdg-utils"))
        }
        Err(error) => Err(anyhow!("xdg-open doesn't start ({error})")),
    }
}

/// The result of printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintOutcome {
    /// The user chose a printer in the system's dialog.
    Sent,
    /// The user closed the dialog.
    Canceled,
    /// The desktop has no print dialog, so the default program for PDF files was opened.
    Opened,
}

/// Prints a PDF file with this title and waits for the user.
pub type PdfPrinter = Arc<dyn Fn(&str, &Path) -> anyhow::Result<PrintOutcome> + Send + Sync>;

/// Returns a path for a PDF file to print, in a new folder that other users can't read.
///
/// # Errors
/// Returns the I/O error if the temporary folder can't be created.
pub fn new_print_file(title: &str) -> io::Result<PathBuf> {
    let name: String = title.chars().filter(|letter| !matches!(letter, '/' | '\\' | '\0')).take(60).collect();
    let folder = tempfile::Builder::new().prefix("tracebook-print-").tempdir()?.keep();
    Ok(folder.join(format!("{}.pdf", name.trim_start_matches('.'))))
}

/// Prints a file of [`new_print_file`] with the desktop portal's dialog, or opens it in the default program for PDF
/// files.
///
/// The file is removed afterwards, unless that program reads it.
///
/// # Errors
/// Returns an error if the file can't be read, or there's neither a dialog nor a program for it.
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
