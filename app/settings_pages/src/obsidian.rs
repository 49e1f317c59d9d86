//! Reads what an Obsidian vault sets that Tracebook has, too: daily notes, templates, attachments, bookmarks and
//! hotkeys, from the files of its `.obsidian` folder (<https://help.obsidian.md/configuration-folder>).
//!
//! A file that's too large, broken or deeper than bookmarks are nested is left out and named; the others are read.

mod hotkeys;

use engine::Settings;
use engine::commands::CommandId;
use host::fs::confined_dir::ConfinedPath;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use store::DocId;

/// Maximum size of a settings file in bytes; larger ones aren't read.
const MAX_SETTINGS_BYTES: u64 = 256 << 10;
/// Maximum size of a value in bytes; longer ones are ignored.
const MAX_VALUE_BYTES: usize = 500;
/// Maximum number of bookmarks, with their groups.
const MAX_BOOKMARKS: usize = 1_000;
/// Maximum number of groups around a bookmark.
const MAX_BOOKMARK_DEPTH: usize = 20;

/// A bookmark of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileBookmark {
    path: String,
    /// The heading or block that it leads to, as `#Heading`.
    part: Option<String>,
}

/// A vault's settings that Tracebook has, too; `None`: the vault doesn't set it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObsidianSettings {
    daily_folder: Option<String>,
    daily_format: Option<String>,
    daily_template: Option<String>,
    templates: Option<String>,
    attachment_folder: Option<String>,
    bookmarks: Vec<FileBookmark>,
    /// Bookmarked searches: name and query.
    searches: Vec<(String, String)>,
    /// Keys of commands. An empty list: the vault's user took the keys away.
    hotkeys: BTreeMap<CommandId, Vec<String>>,
    /// What Tracebook doesn't have, and files that weren't read.
    left_out: Vec<String>,
}

/// A file of the settings folder.
enum VaultFile {
    Missing,
    Unreadable,
    Found(Vec<u8>),
}

/// Reads the settings of a vault; they're empty if it has none. Blocks on the disk.
pub fn read_obsidian_settings(root: &Path) -> ObsidianSettings {
    ObsidianSettings::from_files(|name| {
        let path = ConfinedPath::new(root, &format!(".obsidian/{name}"));
        match path.read(MAX_SETTINGS_BYTES) {
            Some(bytes) => VaultFile::Found(bytes),
            None if path.open().is_err_and(|refusal| refusal.is_missing()) => VaultFile::Missing,
            None => VaultFile::Unreadable,
        }
    })
}

/// Returns whether a folder isn't part of a volume.
fn is_hidden(folder: &str) -> bool {
    folder.split('/').any(|part| part.starts_with('.'))
}

/// Returns a value if it's plain text of one line that leads nowhere above its folder.
fn plain_text(of: &Value, key: &str) -> Option<String> {
    let value = of.get(key)?.as_str()?.trim();
    let is_plain = !value.is_empty() && value.len() <= MAX_VALUE_BYTES && !value.chars().any(char::is_control);
    (is_plain && !value.split('/').any(|part| part == "..")).then(|| value.to_owned())
}

impl ObsidianSettings {
    fn from_files(read: impl Fn(&str) -> VaultFile) -> ObsidianSettings {
        let mut unreadable: Vec<&str> = Vec::new();
        let mut file = |name: &'static str| -> Value {
            let parsed = match read(name) {
                VaultFile::Missing => return Value::Null,
                VaultFile::Unreadable => None,
                VaultFile::Found(bytes) => serde_json::from_slice::<Value>(&bytes).ok(),
            };
            parsed.unwrap_or_else(|| {
                unreadable.push(name);
                Value::Null
            })
        };
        let folder = |of: &Value, key: &str| plain_text(of, key).map(|name| name.trim_matches('/').to_owned());
        let (daily, templates, app) = (file("daily-notes.json"), file("templates.json"), file("app.json"));
        let (bookmarks, hotkeys) = (file("bookmarks.json"), file("hotkeys.json"));
        let template = folder(&daily, "template").filter(|name| !name.is_empty());
        // Without a folder, Obsidian makes daily notes at the vault's root.
        let is_blank = |name: &Value| name.as_str().is_some_and(|name| name.trim_matches([' ', '/']).is_empty());
        let is_at_root = daily.is_object() && daily.get("folder").is_none_or(is_blank);
        let mut settings = ObsidianSettings {
            daily_folder: if is_at_root { Some(String::new()) } else { folder(&daily, "folder") },
            daily_format: plain_text(&daily, "format"),
            daily_template: template.map(|name| if name.ends_with(".md") { name } else { format!("{name}.md") }),
            templates: folder(&templates, "folder").filter(|name| !is_hidden(name)),
            attachment_folder: plain_text(&app, "attachmentFolderPath").and_then(|place| {
                match place.strip_prefix("./") {
                    // In the note's own folder, or in a subfolder of it.
                    Some(beside) => Some(beside.trim_matches('/').to_owned()),
                    // Tracebook has no setting for the vault's root: the note's own folder stays.
                    None if place.trim_matches('/').is_empty() => None,
                    None => Some(format!("/{}", place.trim_matches('/'))),
                }
            }),
            ..ObsidianSettings::default()
        };
        if settings.read_bookmarks(&bookmarks).is_none() {
            unreadable.push("bookmarks.json");
            (settings.bookmarks, settings.searches, settings.left_out) = Default::default();
        }
        let hidden = folder(&templates, "folder").filter(|name| is_hidden(name));
        settings.left_out.extend(hidden.map(|name| format!("templates in {name} (a hidden folder)")));
        for (key, usual, place) in [("dateFormat", "YYYY-MM-DD", "date"), ("timeFormat", "HH:mm", "time")] {
            let format = plain_text(&templates, key).filter(|format| format != usual);
            let named =
                format.map(|format| format!("format of {{{{{place}}}}} in templates (write {{{{{place}:{format}}}}})"));
            settings.left_out.extend(named);
        }
        match hotkeys::read(&hotkeys) {
            Some((keys, left_out)) => {
                settings.hotkeys = keys;
                settings.left_out.extend(left_out);
            }
            None => unreadable.push("hotkeys.json"),
        }
        settings.left_out.extend(unreadable.iter().map(|name| format!("{name}, which can't be read")));
        settings
    }

    /// Reads bookmarks, without their groups. `None` if they are too many or too deep, or no bookmarks.
    fn read_bookmarks(&mut self, file: &Value) -> Option<()> {
        if file.is_null() {
            return Some(());
        }
        let items = file.get("items")?.as_array()?;
        let mut open: Vec<(usize, &Value)> = items.iter().rev().map(|item| (0, item)).collect();
        let mut count = 0;
        while let Some((depth, item)) = open.pop() {
            count += 1;
            if count > MAX_BOOKMARKS || depth > MAX_BOOKMARK_DEPTH {
                return None;
            }
            let (kind, title) = (item.get("type").and_then(Value::as_str), plain_text(item, "title"));
            match kind {
                Some("group") => {
                    let inside = item.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                    open.extend(inside.iter().rev().map(|item| (depth + 1, item)));
                }
                Some("file") => {
                    let part = plain_text(item, "subpath").filter(|part| part.starts_with('#'));
                    match plain_text(item, "path") {
                        Some(path) => self.bookmarks.push(FileBookmark { path, part }),
                        None => self.left_out.push("a bookmark without a path".to_owned()),
                    }
                }
                Some("search") => match plain_text(item, "query") {
                    Some(query) => self.searches.push((title.unwrap_or_else(|| query.clone()), query)),
                    None => self.left_out.push("a bookmark of an empty search".to_owned()),
                },
                _ => {
                    let name = title.or_else(|| plain_text(item, "path")).or_else(|| plain_text(item, "url"));
                    let kind = plain_text(item, "type").unwrap_or_else(|| "unknown kind".to_owned());
                    let name = name.map_or_else(String::new, |name| format!(" {name}"));
                    self.left_out.push(format!("bookmark{name} ({kind})"));
                }
            }
        }
        Some(())
    }

    /// Copies the vault's settings into Tracebook's, and stars bookmarked notes. `file_of` finds a note by its path.
    /// Returns the names of what Tracebook has no counterpart for.
    pub fn apply_to(&self, settings: &mut Settings, file_of: impl Fn(&str) -> Option<DocId>) -> Vec<String> {
        let pairs = [
            (&self.daily_folder, &mut settings.daily_folder),
            (&self.daily_format, &mut settings.daily_format),
            (&self.daily_template, &mut settings.daily_template),
            (&self.templates, &mut settings.templates),
            (&self.attachment_folder, &mut settings.attachment_folder),
        ];
        for (said, own) in pairs {
            if let Some(said) = said {
                own.clone_from(said);
            }
        }
        let mut left_out = self.left_out.clone();
        for FileBookmark { path, part } in &self.bookmarks {
            let Some(note) = file_of(path) else {
                left_out.push(format!("bookmark {path} (not a note of this volume)"));
                continue;
            };
            if !settings.starred.contains(&note) {
                settings.starred.push(note);
            }
            left_out.extend(part.as_ref().map(|part| format!("bookmark {path}{part} (its note is starred)")));
        }
        for (name, query) in &self.searches {
            if settings.searches.iter().any(|(_, known)| known == query) {
                continue;
            }
            // The user's own search with that name would be replaced.
            let plain_name = name.trim().trim_start_matches('@');
            let is_taken = settings.searches.iter().any(|(known, _)| known == plain_name);
            if is_taken || settings.save_search(name, query).is_err() {
                left_out.push(format!("bookmark {name} (search)"));
            }
        }
        for (command, keys) in &self.hotkeys {
            settings.keys.insert(command.to_string(), keys.clone());
        }
        left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> ObsidianSettings {
        ObsidianSettings::from_files(|name| match files.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => VaultFile::Found(text.as_bytes().to_vec()),
            None => VaultFile::Missing,
        })
    }

    fn applied(files: &[(&str, &str)]) -> (Settings, Vec<String>) {
        let mut settings = Settings::default();
        let note = |path: &str| (path == "Tea.md").then_some(DocId([7; 16]));
        let left_out = read(files).apply_to(&mut settings, note);
        (settings, left_out)
    }

    #[test]
    fn a_vault_says_where_its_notes_and_files_go() {
        assert_eq!(read(&[]), ObsidianSettings::default());
        let daily = r#"{"folder": "Daily/", "format": "YYYY/MM", "template": "T/Day"}"#;
        for (place, own) in [("./", Some("")), ("./img", Some("img")), ("Files", Some("/Files")), ("/", None)] {
            let app = format!(r#"{{"attachmentFolderPath": "{place}", "x": [1]}}"#);
            let files = [("daily-notes.json", daily), ("templates.json", "{not json"), ("app.json", app.as_str())];
            assert_eq!(read(&files).attachment_folder.as_deref(), own, "{place}");
            let (settings, left_out) = applied(&files);
            assert_eq!((&*settings.daily_folder, &*settings.daily_format), ("Daily", "YYYY/MM"));
            assert_eq!((&*settings.daily_template, &*settings.templates), ("T/Day.md", "Templates"));
            assert_eq!(left_out, ["templates.json, which can't be read"]);
        }
        for daily in ["{}", r#"{"folder": ""}"#, r#"{"folder": " / ", "format": "YYYY"}"#] {
            assert_eq!(read(&[("daily-notes.json", daily)]).daily_folder.as_deref(), Some(""), "{daily}");
        }
        let templates = r#"{"folder": ".obsidian/t", "dateFormat": "D.M.", "timeFormat": "HH:mm"}"#;
        let (settings, left_out) = applied(&[("templates.json", templates)]);
        assert_eq!(settings.templates, "Templates");
        let expected =
            ["templates in .obsidian/t (a hidden folder)", "format of {{date}} in templates (write {{date:D.M.}})"];
        assert_eq!(left_out, expected);
        let long = "x".repeat(MAX_VALUE_BYTES + 1);
        for bad in ["../out", "a\\nb", &long] {
            let daily = format!(r#"{{"folder": "{bad}", "format": 7}}"#);
            assert_eq!(read(&[("daily-notes.json", daily.as_str())]).daily_folder, None, "{bad}");
        }
    }

    #[test]
    fn bookmarks_become_stars_and_searches() {
        let bookmarks = r##"{"items": [
            {"type": "group", "title": "Read", "items": [{"type": "file", "path": "Tea.md", "subpath": "#Green"}]},
            {"type": "file", "path": "Gone.md"}, {"type": "search", "query": "tag:tea"},
            {"type": "graph", "title": "All"}, {"type": "url", "url": "https://example.org"}]}"##;
        let (settings, left_out) = applied(&[("bookmarks.json", bookmarks)]);
        assert_eq!(settings.starred, [DocId([7; 16])]);
        assert_eq!(settings.searches, [("tag:tea".to_owned(), "tag:tea".to_owned())]);
        let expected = [
            "bookmark All (graph)",
            "bookmark https://example.org (url)",
            "bookmark Tea.md#Green (its note is starred)",
            "bookmark Gone.md (not a note of this volume)",
        ];
        assert_eq!(left_out, expected);
        let mut again = settings.clone();
        read(&[("bookmarks.json", bookmarks)]).apply_to(&mut again, |_| Some(DocId([7; 16])));
        assert_eq!(again, settings, "nothing is taken over twice");
    }

    #[test]
    fn a_saved_search_of_the_user_is_kept() {
        let bookmarks = r##"{"items": [{"type": "search", "title": "Tea", "query": "tag:tea"}]}"##;
        let mut settings = Settings::default();
        settings.save_search("Tea", "tag:green").expect("saved");
        let left_out = read(&[("bookmarks.json", bookmarks)]).apply_to(&mut settings, |_| None);
        assert_eq!(settings.searches, [("Tea".to_owned(), "tag:green".to_owned())]);
        assert_eq!(left_out, ["bookmark Tea (search)"]);
    }

    #[test]
    fn a_hostile_file_is_left_out_alone() {
        let deep = format!("{}{}", r#"{"type":"group","items":["#.repeat(30), "]}".repeat(30));
        let deep = format!(r#"{{"items":[{deep}]}}"#);
        let many = format!(r#"{{"items":[{}{{}}]}}"#, "{},".repeat(MAX_BOOKMARKS));
        let nested = format!("{}1{}", "[".repeat(400), "]".repeat(400));
        for bookmarks in [deep.as_str(), &many, &nested, r#"{"items": 1}"#, "7"] {
            let hotkeys = r#"{"editor:save-file": [{"modifiers": ["Mod"], "key": "M"}]}"#;
            let (settings, left_out) = applied(&[("bookmarks.json", bookmarks), ("hotkeys.json", hotkeys)]);
            assert_eq!(left_out, ["bookmarks.json, which can't be read"]);
            assert!(settings.starred.is_empty() && settings.searches.is_empty());
            assert_eq!(settings.keys["note.save"], ["Ctrl+M"]);
        }
    }
}
