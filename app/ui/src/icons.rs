//! Icons of the window: code points of `fonts/Phosphor-Regular.ttf` (Phosphor 2.1.2), named for their meaning here
//! rather than for what they show. Constants only; the window draws them.
//!
//! To add one: look it up in `src/regular/style.css` of the npm package `@phosphor-icons/web`, and keep the groups.

#![allow(dead_code, unreachable_pub, reason = "the whole set is at hand")]

// Notes, files and folders

/// `note`: a note.
pub const NOTE: &str = "\u{e348}";
/// `notebook`: a project or workspace.
pub const NOTEBOOK: &str = "\u{e34e}";
/// `books`: a volume.
pub const BOOKS: &str = "\u{e758}";
/// `folder`: a closed folder.
pub const FOLDER: &str = "\u{e24a}";
/// `folder-open`: an open folder.
pub const FOLDER_OPEN: &str = "\u{e256}";
/// `folder-plus`: create or open a folder.
pub const FOLDER_PLUS: &str = "\u{e258}";
/// `file`: any other file.
pub const FILE: &str = "\u{e230}";
/// `file-text`: a text file.
pub const FILE_TEXT: &str = "\u{e23a}";
/// `file-code`: a source file.
pub const FILE_CODE: &str = "\u{e914}";
/// `file-csv`: a data file.
pub const FILE_CSV: &str = "\u{eb1c}";
/// `file-plus`: a new note.
pub const FILE_PLUS: &str = "\u{e236}";
/// `paperclip`: an attachment.
pub const PAPERCLIP: &str = "\u{e39a}";
/// `image`: an image.
pub const IMAGE: &str = "\u{e2ca}";
/// `table`: a table.
pub const TABLE: &str = "\u{e476}";
/// `tag`: a tag.
pub const TAG: &str = "\u{e478}";
/// `link-simple`: a link.
pub const LINK: &str = "\u{e2e6}";
/// `archive`: a backup.
pub const ARCHIVE: &str = "\u{e00c}";

// Cells and their states

/// `play`: run.
pub const PLAY: &str = "\u{e3d0}";
/// `stop`: stop.
pub const STOP: &str = "\u{e46c}";
/// `check`: done.
pub const CHECK: &str = "\u{e182}";
/// `check-circle`: done, in a list of states.
pub const CHECK_CIRCLE: &str = "\u{e184}";
/// `x`: close, or failed.
pub const X: &str = "\u{e4f6}";
/// `x-circle`: failed, in a list of states.
pub const X_CIRCLE: &str = "\u{e4f8}";
/// `warning`: a warning.
pub const WARNING: &str = "\u{e4e0}";
/// `warning-circle`: damaged or rejected.
pub const WARNING_CIRCLE: &str = "\u{e4e2}";
/// `info`: information.
pub const INFO: &str = "\u{e2ce}";
/// `circle`: not run yet.
pub const CIRCLE: &str = "\u{e18a}";
/// `circle-dashed`: stale.
pub const CIRCLE_DASHED: &str = "\u{e602}";
/// `circle-notch`: running; drawn rotating.
pub const SPINNER: &str = "\u{eb44}";
/// `hourglass`: waiting.
pub const HOURGLASS: &str = "\u{e2b2}";
/// `clock`: a time.
pub const CLOCK: &str = "\u{e19a}";
/// `clock-counter-clockwise`: history.
pub const HISTORY: &str = "\u{e1a0}";
/// `code`: code.
pub const CODE: &str = "\u{e1bc}";
/// `lightning`: immediately.
pub const LIGHTNING: &str = "\u{e2de}";
/// `eye`: shown.
pub const EYE: &str = "\u{e220}";
/// `eye-slash`: hidden.
pub const EYE_SLASH: &str = "\u{e224}";

// Actions

/// `calendar-blank`: days and tasks.
pub const CALENDAR: &str = "\u{e10a}";
/// `magnifying-glass`: find.
pub const SEARCH: &str = "\u{e30c}";
/// `plus`: add.
pub const PLUS: &str = "\u{e3d4}";
/// `minus`: remove one.
pub const MINUS: &str = "\u{e32a}";
/// `trash`: delete.
pub const TRASH: &str = "\u{e4a6}";
/// `pencil-simple`: edit or rename.
pub const PENCIL: &str = "\u{e3b4}";
/// `copy`: copy.
pub const COPY: &str = "\u{e1ca}";
/// `arrow-counter-clockwise`: undo.
pub const UNDO: &str = "\u{e038}";
/// `arrow-clockwise`: redo or restart.
pub const REDO: &str = "\u{e036}";
/// `export`: export.
pub const EXPORT: &str = "\u{eaf0}";
/// `download-simple`: import.
pub const IMPORT: &str = "\u{e20c}";
/// `arrow-square-out`: open in another program.
pub const OPEN_OUTSIDE: &str = "\u{e5de}";
/// `command`: the command palette.
pub const COMMAND: &str = "\u{e1c4}";
/// `keyboard`: keyboard shortcuts.
pub const KEYBOARD: &str = "\u{e2d8}";
/// `question`: help.
pub const QUESTION: &str = "\u{e3e8}";
/// `dots-three`: more actions.
pub const MORE: &str = "\u{e1fe}";
/// `dots-six-vertical`: drag.
pub const GRIP: &str = "\u{eae2}";

/// `sort-ascending`: sort order.
pub const SORT: &str = "\u{e444}";
/// `funnel`: a filter.
pub const FUNNEL: &str = "\u{e266}";
/// `crosshair`: scroll to the open item.
pub const REVEAL: &str = "\u{e1d6}";
/// `arrows-in-line-vertical`: collapse all.
pub const COLLAPSE: &str = "\u{e532}";

// Window

/// `caret-right`: collapsed.
pub const CARET_RIGHT: &str = "\u{e13a}";
/// `caret-down`: expanded.
pub const CARET_DOWN: &str = "\u{e136}";
/// `caret-left`: back in a list.
pub const CARET_LEFT: &str = "\u{e138}";
/// `caret-up`: collapse upwards.
pub const CARET_UP: &str = "\u{e13c}";
/// `arrow-left`: back.
pub const ARROW_LEFT: &str = "\u{e058}";
/// `arrow-right`: forward.
pub const ARROW_RIGHT: &str = "\u{e06c}";
/// `sidebar-simple`: show or hide a side panel.
pub const SIDEBAR: &str = "\u{ec24}";
/// `columns`: split view.
pub const COLUMNS: &str = "\u{e546}";
/// `list`: a menu.
pub const LIST: &str = "\u{e2f0}";
/// `list-bullets`: an outline or list.
pub const LIST_BULLETS: &str = "\u{e2f2}";
/// `gear`: settings.
pub const GEAR: &str = "\u{e270}";
/// `sun`: light theme.
pub const SUN: &str = "\u{e472}";
/// `moon`: dark theme.
pub const MOON: &str = "\u{e330}";
/// `circle-half`: the system's theme.
pub const CIRCLE_HALF: &str = "\u{e18c}";

// Storage

/// `floppy-disk`: saved, or saving.
pub const FLOPPY: &str = "\u{e248}";
/// `hard-drives`: the disk.
pub const HARD_DRIVES: &str = "\u{e2a0}";
/// `database`: the workspace's store.
pub const DATABASE: &str = "\u{e1de}";
/// `lock-simple`: read-only or locked.
pub const LOCK: &str = "\u{e308}";
/// `plug`: kernel not running.
pub const PLUG: &str = "\u{e946}";
/// `plugs-connected`: kernel running.
pub const PLUGS_CONNECTED: &str = "\u{eb5a}";
/// `terminal-window`: command line or kernel.
pub const TERMINAL: &str = "\u{eae8}";
/// `arrows-clockwise`: sync with other devices.
pub const SYNC: &str = "\u{e094}";
/// `wifi-slash`: offline.
pub const OFFLINE: &str = "\u{e4f2}";

// People and agents

/// `robot`: an agent.
pub const ROBOT: &str = "\u{e762}";
/// `user`: the user.
pub const USER: &str = "\u{e4c2}";
/// `brain`: thought or memory.
pub const BRAIN: &str = "\u{e74e}";
/// `wrench`: a tool.
pub const WRENCH: &str = "\u{e5d4}";
/// `git-branch`: a branch.
pub const BRANCH: &str = "\u{e278}";
/// `graph`: a graph of steps.
pub const GRAPH: &str = "\u{eb58}";
/// `thumbs-up`: a good result.
pub const THUMBS_UP: &str = "\u{e48e}";
/// `thumbs-down`: a bad result.
pub const THUMBS_DOWN: &str = "\u{e48c}";
/// `chat-circle`: a message.
pub const CHAT: &str = "\u{e168}";
