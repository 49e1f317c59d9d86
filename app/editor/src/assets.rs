//! Content that rows show besides their own text: pictures, embedded notes, formulas, diagrams and syntax highlighting.
//! A row requests an asset during layout and is laid out again when it arrives. Reading, decoding, drawing and
//! highlighting run on a separate thread.

use anyhow::{Context as _, anyhow};
use eframe::egui;
use egui::text::{LayoutJob, TextFormat};
use egui::{Color32, ColorImage, Context, Galley, Painter, Rect, TextureHandle, TextureOptions, Ui, Vec2, vec2};
use engine::Session;
use export::render_jobs;
use host::fs::confined_dir::ConfinedPath;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use store::{BlobHash, DocId, FileKind};
use text::markdown::{self, dialect};
use typeset::failure::DrawFailure;
use typeset::formula::{self, SetFormula};
use typeset::highlight::CodeHue;
use ui::theme::{self, ThemeColors};

/// Maximum size of a file that is shown; a larger file is only named.
pub const MAX_ASSET_BYTES: u64 = 64 << 20;
/// Maximum bytes of cached pictures; the least recently seen are evicted first.
const MAX_CACHED_PICTURE_BYTES: usize = 192 << 20;
/// Maximum width and height of a shown picture, in pixels.
const MAX_PICTURE_SIDE_PIXELS: u32 = 2_080;
/// Maximum bytes read from a file that is previewed as text.
pub const MAX_FILE_PREVIEW_BYTES: usize = 1 << 20;
/// Asset name that requests a file itself instead of a target named in a note. No link can contain it.
const FILE_AS_PICTURE: &str = "\0picture";
const FILE_AS_TEXT: &str = "\0text";
/// Maximum bytes shown of an embedded note.
const MAX_EMBEDDED_NOTE_BYTES: usize = 6_000;
/// Maximum bytes that an edit may replace or insert; beyond this, the code counts as different code.
const MAX_SAME_CODE_EDIT_BYTES: usize = 400;
/// Maximum number of code snippets whose highlighting is cached.
const MAX_CACHED_HIGHLIGHTS: usize = 500;
/// Maximum bytes of cached drawings.
const MAX_CACHED_DRAWING_BYTES: usize = 64 << 20;
/// Maximum number of cached typeset formulas.
const MAX_CACHED_FORMULAS: usize = 5_000;
/// Maximum number of cached texts that were computed in the background.
const MAX_CACHED_TEXTS: usize = 500;

/// A requested asset.
#[derive(Clone)]
pub enum Asset {
    /// The asset hasn't arrived yet.
    Waiting,
    /// A picture and its preferred size, in points.
    Picture(TextureHandle, Vec2),
    /// The text of another note, or of a part of it.
    Text(Arc<str>),
    /// A message to show instead: the file is still on another device, or exceeds a limit.
    Remark(Arc<str>),
    /// The asset doesn't exist or can't be shown.
    None,
}

/// Where an asset's bytes are: in memory, in a blob or in a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AssetBytes {
    /// Shared bytes already in memory.
    Here(Arc<str>),
    /// A stored blob.
    Blob(BlobHash),
    /// A file of a volume: the volume's folder, and the file's path in it.
    File(PathBuf, String),
}

impl AssetBytes {
    /// Reads the bytes. Blocks on the disk, so don't call it while drawing.
    pub fn read(&self, handle: Option<&host::Handle>) -> anyhow::Result<Vec<u8>> {
        match self {
            AssetBytes::Here(text) => Ok(text.as_bytes().to_vec()),
            AssetBytes::File(root, path) => {
                let read = ConfinedPath::new(root, path).read(MAX_ASSET_BYTES);
                read.with_context(|| format!("{path} can't be read; check that it's still there"))
            }
            AssetBytes::Blob(hash) => {
                let read = handle.context("the workspace is closing")?.read_blob(*hash);
                read.map_err(|why| match why.is_missing() {
                    true => anyhow!("it isn't on this device yet: it arrives when a device that has it is connected"),
                    false => why.into(),
                })
            }
        }
    }
}

/// Cache key of a row's request: the note, and the name that it requests.
type AssetKey = (DocId, String);

enum AssetResult {
    Picture(AssetKey, Result<AssetPixels, DrawFailure>),
    Remark(AssetKey, Arc<str>),
    Text(AssetKey, Option<Arc<str>>),
    Code(u64, Option<CodeHues>),
    Formula(u64, TypesetFormula),
    Letters(u64, anyhow::Result<AssetPixels>),
    Diagram(u64, anyhow::Result<AssetPixels>),
    Words(u64, Option<Arc<str>>),
}

/// A picture's pixels and its preferred size, in points.
type AssetPixels = (ColorImage, Vec2);

/// A typeset formula, or why it couldn't be typeset.
pub(crate) type TypesetFormula = Result<Arc<SetFormula>, Arc<str>>;

/// State of a requested drawing.
#[derive(Clone)]
pub enum DrawingState {
    /// The drawing isn't ready yet.
    Waiting,
    /// The drawing and its preferred size, in points.
    Ready(TextureHandle, Vec2),
    /// Why the drawing failed.
    Failed(Arc<str>),
}

/// Highlighted ranges of a piece of code.
type CodeHues = Arc<[(Range<usize>, CodeHue)]>;

/// Highlighting state of a piece of code.
enum HighlightState {
    Waiting,
    Known(Option<CodeHues>),
}

type AssetJob = Box<dyn FnOnce() -> AssetResult + Send>;

/// Cache of requested assets.
#[derive(Default)]
pub struct AssetCache {
    known: HashMap<AssetKey, (Asset, u64)>,
    codes: HashMap<u64, HighlightState>,
    /// Number of requests for highlighting that wasn't known yet, and of results that arrived.
    waits: u64,
    coloured: u64,
    /// The code being edited, its language, and its last known highlighting.
    edited: Option<(String, String, CodeHues)>,
    formulas: HashMap<u64, Option<TypesetFormula>>,
    drawings: HashMap<u64, (DrawingState, u64)>,
    /// Texts computed in the background; `None` while one is being computed.
    words: HashMap<u64, Option<Option<Arc<str>>>>,
    /// Host handle through which blobs are read.
    handle: Option<host::Handle>,
    wishes: Vec<AssetKey>,
    /// Keys of the callouts that the user folded or unfolded.
    turned: HashSet<u64>,
    way: Option<(Sender<AssetJob>, Mutex<Receiver<AssetResult>>)>,
    frame: u64,
    /// Layout of a probe text, repeated in every frame to detect a rebuilt font atlas.
    probe: Option<Arc<Galley>>,
    /// Number of volume scans and sync arrivals when assets were last fetched.
    scans: u64,
    /// Increases when assets arrive or change; rows laid out at an earlier version may be outdated.
    version: u64,
}

impl AssetCache {
    fn way(&mut self, ctx: &Context) -> &Sender<AssetJob> {
        let (jobs, _) = self.way.get_or_insert_with(|| {
            let ((jobs, queue), (answers, done)) = (channel::<AssetJob>(), channel());
            let ctx = ctx.clone();
            std::thread::spawn(move || {
                for job in queue {
                    if answers.send(job()).is_err() {
                        return;
                    }
                    ctx.request_repaint();
                }
            });
            (jobs, Mutex::new(done))
        });
        jobs
    }

    /// Stores assets that have arrived.
    fn take(&mut self, ctx: &Context) {
        self.frame += 1;
        let done: Vec<AssetResult> = match self.way.as_mut().and_then(|(_, done)| done.get_mut().ok()) {
            Some(done) => done.try_iter().collect(),
            None => Vec::new(),
        };
        if done.is_empty() {
            return;
        }
        for done in done {
            // These don't affect layout: a formula's size is known before its pixels, and that of code before its
            // colors.
            if !matches!(&done, AssetResult::Letters(..) | AssetResult::Code(..)) {
                self.version += 1;
            }
            match done {
                AssetResult::Picture(wish, image) => {
                    let sight = match image {
                        Ok((image, size)) => {
                            Asset::Picture(ctx.load_texture(&wish.1, image, TextureOptions::LINEAR), size)
                        }
                        Err(DrawFailure::Limit(why)) => {
                            Asset::Remark(Arc::from(format!("{} (not shown. {why})", wish.1)))
                        }
                        Err(DrawFailure::Wrong(_)) => Asset::None,
                    };
                    self.known.insert(wish, (sight, self.frame));
                }
                AssetResult::Remark(wish, words) => {
                    self.known.insert(wish, (Asset::Remark(words), self.frame));
                }
                AssetResult::Text(wish, text) => {
                    self.known.insert(wish, (text.map_or(Asset::None, Asset::Text), self.frame));
                }
                AssetResult::Code(hash, hues) => {
                    if self.codes.len() > MAX_CACHED_HIGHLIGHTS {
                        self.codes.clear();
                    }
                    self.coloured += u64::from(hues.is_some());
                    self.codes.insert(hash, HighlightState::Known(hues));
                }
                AssetResult::Words(name, words) => _ = self.words.insert(name, Some(words)),
                AssetResult::Formula(hash, set) => _ = self.formulas.insert(hash, Some(set)),
                AssetResult::Letters(name, made) | AssetResult::Diagram(name, made) => {
                    let vector = match made {
                        Ok((image, size)) => {
                            DrawingState::Ready(ctx.load_texture("drawing", image, TextureOptions::LINEAR), size)
                        }
                        Err(why) => DrawingState::Failed(Arc::from(why.to_string())),
                    };
                    self.drawings.insert(name, (vector, self.frame));
                }
            }
        }
        self.forget();
    }

    /// Evicts the least recently seen pictures and drawings when the cache is too large.
    fn forget(&mut self) {
        let bytes = |sight: &Asset| match sight {
            Asset::Picture(texture, _) => texture.byte_size(),
            Asset::Waiting | Asset::Text(_) | Asset::Remark(_) | Asset::None => 0,
        };
        let drawn = |vector: &DrawingState| match vector {
            DrawingState::Ready(texture, _) => texture.byte_size(),
            DrawingState::Waiting | DrawingState::Failed(_) => 0,
        };
        if self.drawings.values().map(|(vector, _)| drawn(vector)).sum::<usize>() > MAX_CACHED_DRAWING_BYTES {
            // Visible drawings are requested in every frame, so they stay.
            self.drawings
                .retain(|_, (vector, seen)| *seen + 2 >= self.frame || matches!(vector, DrawingState::Waiting));
        }
        let mut all: usize = self.known.values().map(|(sight, _)| bytes(sight)).sum();
        let mut old: Vec<(u64, AssetKey)> = self.known.iter().map(|(wish, (_, seen))| (*seen, wish.clone())).collect();
        old.sort();
        for (_, wish) in old.into_iter().take_while(|(seen, _)| seen + 2 < self.frame) {
            if all <= MAX_CACHED_PICTURE_BYTES {
                break;
            }
            all -= self.known.remove(&wish).map_or(0, |(sight, _)| bytes(&sight));
        }
    }
}

impl egui::Plugin for AssetCache {
    fn debug_name(&self) -> &'static str {
        "sights"
    }

    fn on_begin_pass(&mut self, ui: &mut Ui) {
        let ctx = ui.ctx().clone();
        self.take(&ctx);
        // Laid-out text refers to the font atlas. When it's rebuilt (another theme, too many glyphs), egui drops its
        // layouts, so rows must be laid out again too.
        let probe = ctx.fonts_mut(|fonts| fonts.layout_job(LayoutJob::single_section("x".to_owned(), format())));
        if !self.probe.as_ref().is_some_and(|known| Arc::ptr_eq(known, &probe)) {
            self.version += 1;
            self.probe = Some(probe);
        }
    }
}

fn format() -> TextFormat {
    let body = theme::body();
    ui::widgets::format(body.font, body.line, egui::Color32::PLACEHOLDER)
}

fn with<R>(ctx: &Context, what: impl FnOnce(&mut AssetCache) -> R) -> Option<R> {
    ctx.with_plugin(what)
}

/// Returns the asset version; rows laid out at another version must be laid out again.
pub fn version(ctx: &Context) -> u64 {
    with(ctx, |sights| sights.version).unwrap_or(0)
}

/// Returns the asset that a note shows under a name, and requests it if it isn't cached.
pub fn request_asset(ctx: &Context, note: DocId, name: &str) -> Asset {
    let seen = with(ctx, |sights| {
        let frame = sights.frame;
        let wish = (note, name.to_owned());
        match sights.known.get_mut(&wish) {
            Some((sight, seen)) => {
                *seen = frame;
                sight.clone()
            }
            None => {
                sights.known.insert(wish.clone(), (Asset::Waiting, frame));
                sights.wishes.push(wish);
                Asset::Waiting
            }
        }
    });
    seen.unwrap_or(Asset::None)
}

/// Requests a preview of a file: its picture, or the beginning of its text.
pub fn request_file(ctx: &Context, file: DocId, as_text: bool) -> Asset {
    request_asset(ctx, file, if as_text { FILE_AS_TEXT } else { FILE_AS_PICTURE })
}

/// Returns the highlighted ranges of code; `None` until they're known, or if there are none.
pub(crate) fn code_hues(ctx: &Context, code: &str, language: &str) -> Option<CodeHues> {
    let hash = name(&(code, language));
    with(ctx, |sights| {
        if let Some(HighlightState::Known(hues)) = sights.codes.get(&hash) {
            return hues.clone();
        }
        sights.waits += 1;
        if sights.codes.insert(hash, HighlightState::Waiting).is_some() {
            return None;
        }
        let (code, language) = (code.to_owned(), language.to_owned());
        let job = move || AssetResult::Code(hash, render_jobs::highlight_code(&code, &language).map(Arc::from));
        // Here and below: a failed send is ignored, since the receiver ends only with the program or the connection.
        let _ = sights.way(ctx).send(Box::new(job));
        None
    })?
}

/// Returns the highlighted ranges of code being edited. Until they're known, the previous ones are shifted.
pub(crate) fn edited_hues(ctx: &Context, code: &str, language: &str) -> Vec<(Range<usize>, CodeHue)> {
    let known = code_hues(ctx, code, language);
    let found = with(ctx, |sights| {
        if let Some(hues) = known {
            let is_new = sights.edited.as_ref().is_none_or(|(old, of, _)| old != code || of != language);
            if is_new {
                sights.edited = Some((code.to_owned(), language.to_owned(), hues.clone()));
            }
            return hues.to_vec();
        }
        let Some((old, _, hues)) = sights.edited.as_ref().filter(|(_, of, _)| of == language) else {
            return Vec::new();
        };
        let (gone, come) = text::text_edit::trim_common(old, code);
        // Different code isn't an edit of this code.
        if gone.len().max(come.len()) > MAX_SAME_CODE_EDIT_BYTES {
            return Vec::new();
        }
        let through = |at: usize| {
            if at <= gone.start { at } else { (at.max(gone.end) + come.len()).saturating_sub(gone.len()) }
        };
        let moved = hues.iter().map(|(range, hue)| (through(range.start)..through(range.end), *hue));
        moved.filter(|(range, _)| !range.is_empty()).collect()
    });
    found.unwrap_or_default()
}

/// Returns a typeset formula; `None` until it's ready.
pub(crate) fn formula(ctx: &Context, source: &str, display: bool) -> Option<TypesetFormula> {
    let name = name(&(source, display));
    with(ctx, |sights| {
        if let Some(known) = sights.formulas.get(&name) {
            return known.clone();
        }
        if sights.formulas.len() > MAX_CACHED_FORMULAS {
            sights.formulas.clear();
        }
        // A short formula takes less than a tenth of a millisecond, so it is typeset at once.
        let (short, source) = (formula::is_short(source), source.to_owned());
        let set = move || render_jobs::typeset_formula(&source, display).map(Arc::new).map_err(unset);
        let known = short.then(&set);
        sights.formulas.insert(name, known.clone());
        if known.is_none() {
            let _ = sights.way(ctx).send(Box::new(move || AssetResult::Formula(name, set())));
        }
        known
    })?
}

/// Paints a formula once its pixels are ready; `rect` includes the padding of its drawing.
pub(crate) fn paint_formula(painter: &Painter, rect: Rect, formula: &Arc<SetFormula>, ink: Color32) {
    let ctx = painter.ctx();
    let scale = ctx.pixels_per_point();
    // Aligned to whole pixels, a formula's lines are as sharp as those of letters.
    let at = (rect.min * scale).round() / scale;
    let wide = (rect.width() * scale).round().max(1.0);
    let name = name(&(Arc::as_ptr(formula) as usize, wide.to_bits(), ink));
    let vector = with(ctx, |sights| {
        let frame = sights.frame;
        if let Some((vector, seen)) = sights.drawings.get_mut(&name) {
            *seen = frame;
            return vector.clone();
        }
        sights.drawings.insert(name, (DrawingState::Waiting, frame));
        let formula = formula.clone();
        let made = move || {
            let drawn = render_jobs::rasterize_formula(&formula, [ink.r(), ink.g(), ink.b()], wide);
            drawn.map(pixels).map_err(anyhow::Error::from)
        };
        let _ = sights.way(ctx).send(Box::new(move || AssetResult::Letters(name, made())));
        DrawingState::Waiting
    });
    if let Some(DrawingState::Ready(texture, _)) = vector {
        let whole = Rect::from_min_max(egui::Pos2::ZERO, egui::pos2(1.0, 1.0));
        let size = texture.size_vec2() / scale;
        painter.image(texture.id(), Rect::from_min_size(at, size), whole, Color32::WHITE);
    }
}

/// Sets the host handle through which blobs are read.
pub fn set_host(ctx: &Context, handle: host::Handle) {
    with(ctx, |sights| sights.handle = Some(handle));
}

/// Returns the host handle through which blobs are read; `None` before `set_host`.
pub fn host_handle(ctx: &Context) -> Option<host::Handle> {
    with(ctx, |sights| sights.handle.clone())?
}

/// Returns the drawing of an output's picture, and requests it if it isn't cached.
pub fn shown_picture(ctx: &Context, bytes: &AssetBytes, is_svg: bool) -> DrawingState {
    let scale = ctx.pixels_per_point();
    let (bytes, handle) = (bytes.clone(), host_handle(ctx));
    drawing(ctx, name(&(&bytes, is_svg, scale.to_bits())), move || {
        let bytes = bytes.read(handle.as_ref())?;
        let unread = || anyhow!("the picture cannot be read");
        if is_svg {
            return vector(bytes, scale).map_err(anyhow::Error::from);
        }
        let plain: Vec<u8> = bytes.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let bytes = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, plain).map_err(|_| unread())?;
        bitmap(bytes).map_err(anyhow::Error::from)
    })
}

/// Requests a text that is computed from bytes in the background; `None` until it's ready.
pub fn request_text(
    ctx: &Context,
    bytes: &AssetBytes,
    make: impl FnOnce(&str) -> Option<String> + Send + 'static,
) -> Option<Option<Arc<str>>> {
    let name = name(bytes);
    let (bytes, handle) = (bytes.clone(), host_handle(ctx));
    with(ctx, |sights| {
        if let Some(known) = sights.words.get(&name) {
            return known.clone();
        }
        if sights.words.len() > MAX_CACHED_TEXTS {
            sights.words.retain(|_, words| words.is_none());
        }
        sights.words.insert(name, None);
        let made = move || make(std::str::from_utf8(&bytes.read(handle.as_ref()).ok()?).ok()?).map(Arc::from);
        let _ = sights.way(ctx).send(Box::new(move || AssetResult::Words(name, made())));
        None
    })?
}

/// Returns a Mermaid diagram, drawn in the current theme's colors.
pub(crate) fn diagram(ctx: &Context, source: &str, colours: &'static ThemeColors) -> DrawingState {
    let scale = ctx.pixels_per_point();
    let tints = colours.tints();
    let name = name(&(source, tints, scale.to_bits()));
    let source = source.to_owned();
    drawing(ctx, name, move || {
        render_jobs::rasterize_diagram(&source, tints, scale).map(pixels).map_err(anyhow::Error::from)
    })
}

/// Returns a cached drawing, or starts drawing it with `make` in the background.
fn drawing(
    ctx: &Context,
    name: u64,
    make: impl FnOnce() -> anyhow::Result<AssetPixels> + Send + 'static,
) -> DrawingState {
    let vector = with(ctx, |sights| {
        let frame = sights.frame;
        if let Some((vector, seen)) = sights.drawings.get_mut(&name) {
            *seen = frame;
            return vector.clone();
        }
        sights.drawings.insert(name, (DrawingState::Waiting, frame));
        let _ = sights.way(ctx).send(Box::new(move || AssetResult::Diagram(name, make())));
        DrawingState::Waiting
    });
    vector.unwrap_or(DrawingState::Waiting)
}

fn name(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

fn pixels(drawn: render_jobs::DrawnPixels) -> AssetPixels {
    let render_jobs::DrawnPixels { raster, size: [width, height], multiplied } = drawn;
    let size = [raster.width as usize, raster.height as usize];
    let image = match multiplied {
        true => ColorImage::from_rgba_premultiplied(size, &raster.bytes),
        false => ColorImage::from_rgba_unmultiplied(size, &raster.bytes),
    };
    (image, vec2(width, height))
}

/// Returns how often highlighting was requested that wasn't known yet.
pub fn unknown_hues_count(ctx: &Context) -> u64 {
    with(ctx, |sights| sights.waits).unwrap_or(0)
}

/// Returns how many pieces of code have been highlighted.
pub fn highlighted_count(ctx: &Context) -> u64 {
    with(ctx, |sights| sights.coloured).unwrap_or(0)
}

/// Returns whether the user toggled a callout away from its initial fold state.
pub(crate) fn is_turned(ctx: &Context, callout: u64) -> bool {
    with(ctx, |sights| sights.turned.contains(&callout)).unwrap_or(false)
}

/// Folds a callout, or unfolds it if it's folded.
pub fn toggle_callout(ctx: &Context, callout: u64) {
    with(ctx, |sights| {
        if !sights.turned.remove(&callout) {
            sights.turned.insert(callout);
        }
        sights.version += 1;
    });
    ctx.request_repaint();
}

/// Fetches the assets that rows have requested since the last frame.
pub fn fetch_assets(ctx: &Context, session: &Session) {
    let scans = session.volumes().map(|volume| volume.scans).sum::<u64>() + session.sync().arrival_count();
    let wishes = with(ctx, |sights| {
        // Files may have changed, so cached assets are read again.
        let failed = |vector: &DrawingState| matches!(vector, DrawingState::Failed(_));
        let lacks = sights.drawings.values().any(|(vector, _)| failed(vector))
            || sights.words.values().any(|words| matches!(words, Some(None)));
        if std::mem::replace(&mut sights.scans, scans) != scans && (lacks || !sights.known.is_empty()) {
            sights.known.clear();
            sights.drawings.retain(|_, (vector, _)| !failed(vector));
            sights.words.retain(|_, words| !matches!(words, Some(None)));
            sights.version += 1;
            ctx.request_repaint();
        }
        std::mem::take(&mut sights.wishes)
    });
    let wishes = wishes.unwrap_or_default();
    for wish in wishes {
        let job = job(session, wish, ctx.pixels_per_point());
        with(ctx, |sights| sights.way(ctx).send(job));
    }
}

/// Returns the file that a note shows under a name, with its kind and id.
fn shown_file(session: &Session, note: DocId, name: &str) -> Option<(ConfinedPath, FileKind, DocId)> {
    let (volume, _) = session.locate_file(note).filter(|_| !name.is_empty())?;
    let volume = session.volume(volume)?;
    let path = volume.links.path(volume.links.resolve_rendered_link(note, name)?)?;
    let (path, row) = volume.files.get_key_value(path)?;
    Some((ConfinedPath::new(volume.root.as_ref()?, path), row.kind, row.id))
}

/// Returns the picture file that a note shows under a name.
pub fn picture_file(session: &Session, note: DocId, name: &str) -> Option<ConfinedPath> {
    let (file, kind, _) = shown_file(session, note, dialect::split_wiki_target(name).0)?;
    (kind == FileKind::Attachment).then_some(file)
}

/// Reads and decodes a picture. Slow, so don't call it while drawing.
///
/// # Errors
/// Returns an error if the file can't be read or decoded.
pub fn read_picture(file: &ConfinedPath, scale: f32) -> Result<ColorImage, DrawFailure> {
    picture(file, scale).map(|(image, _)| image)
}

fn job(session: &Session, wish: AssetKey, scale: f32) -> AssetJob {
    if matches!(wish.1.as_str(), FILE_AS_PICTURE | FILE_AS_TEXT) {
        let place = session.locate_file(wish.0);
        let root = place.and_then(|(volume, _)| session.volume(volume)?.root.clone());
        let file = root.zip(place).map(|(root, (_, path))| ConfinedPath::new(&root, path));
        let as_text = wish.1 == FILE_AS_TEXT;
        return Box::new(move || match file {
            Some(file) if as_text => AssetResult::Text(wish, text_beginning(&file)),
            Some(file) => AssetResult::Picture(wish, picture(&file, scale)),
            None => AssetResult::Text(wish, None),
        });
    }
    let (name, part) = dialect::split_wiki_target(&wish.1);
    let found = shown_file(session, wish.0, name);
    let part = part.map(str::to_owned);
    match found {
        Some((file, FileKind::Attachment | FileKind::Collection | FileKind::Script, _)) => {
            Box::new(move || AssetResult::Picture(wish, picture(&file, scale)))
        }
        Some((file, FileKind::Note, note)) => {
            // An open note may be ahead of its file.
            let open = session.note(note).filter(|note| note.phase == engine::NotePhase::Ready).map(engine::Note::text);
            Box::new(move || {
                let read = || String::from_utf8(file.read(MAX_ASSET_BYTES)?).ok();
                let text = open.or_else(read);
                AssetResult::Text(wish, text.and_then(|text| excerpt(&text, part.as_deref())))
            })
        }
        None => match requested_text(session, wish.0, name) {
            Some(words) => Box::new(move || AssetResult::Remark(wish, words)),
            None => Box::new(move || AssetResult::Picture(wish, Err(unread()))),
        },
    }
}

/// Returns the message for a shown file that hasn't arrived from another device yet.
fn requested_text(session: &Session, note: DocId, name: &str) -> Option<Arc<str>> {
    let (volume, _) = session.locate_file(note)?;
    let sync = session.sync();
    let (path, size) = sync.awaited_file(volume, name)?;
    let hubs = sync.shares.hubs.iter().filter(|hub| hub.volumes.contains(&volume));
    let place = |hub: &engine::SharedHub| {
        if hub.url == engine::LAN_HUB_ADDRESS { "the local network".to_owned() } else { hub.url.clone() }
    };
    let places: Vec<String> = hubs.map(place).collect();
    let size = ui::text::amount(size);
    Some(Arc::from(format!("{path} ({size}) isn't on this device yet; it arrives over {}", places.join(", "))))
}

fn excerpt(text: &str, part: Option<&str>) -> Option<Arc<str>> {
    let text = match part {
        Some(part) => markdown::linked_part(text, part)?,
        None => text,
    };
    if text.len() <= MAX_EMBEDDED_NOTE_BYTES {
        return Some(Arc::from(text));
    }
    let end = text.floor_char_boundary(MAX_EMBEDDED_NOTE_BYTES);
    let end = text[..end].rfind('\n').unwrap_or(end);
    Some(Arc::from(format!("{}\n\n…", &text[..end])))
}

/// Returns why a formula is shown as source.
fn unset(failure: DrawFailure) -> Arc<str> {
    Arc::from(match failure {
        DrawFailure::Wrong(why) => format!("Can't read this formula. {why}"),
        DrawFailure::Limit(why) => format!("This formula is not drawn. {why}"),
    })
}

/// Reads the beginning of a file as text; invalid UTF-8 is shown as replacement characters.
fn text_beginning(file: &ConfinedPath) -> Option<Arc<str>> {
    let (opened, _) = file.open().ok()?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(opened, MAX_FILE_PREVIEW_BYTES as u64), &mut bytes).ok()?;
    Some(Arc::from(String::from_utf8_lossy(&bytes)))
}

fn unread() -> DrawFailure {
    DrawFailure::Wrong("The picture cannot be read.".to_owned())
}

fn picture(file: &ConfinedPath, scale: f32) -> Result<AssetPixels, DrawFailure> {
    let bytes = file.read(MAX_ASSET_BYTES).ok_or_else(unread)?;
    let is_svg = file.path.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("svg"));
    if is_svg { vector(bytes, scale) } else { bitmap(bytes) }
}

fn vector(bytes: Vec<u8>, scale: f32) -> Result<AssetPixels, DrawFailure> {
    render_jobs::rasterize_svg(bytes, scale, MAX_PICTURE_SIDE_PIXELS).map(pixels)
}

fn bitmap(bytes: Vec<u8>) -> Result<AssetPixels, DrawFailure> {
    render_jobs::decode_bitmap(bytes, MAX_PICTURE_SIDE_PIXELS).map(pixels)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the highlighted parts of code, as text.
    fn coloured(ctx: &Context, code: &str) -> Vec<String> {
        edited_hues(ctx, code, "rust").into_iter().map(|(range, _)| code[range].to_owned()).collect()
    }

    #[test]
    fn code_keeps_its_colours_while_it_is_written() {
        let ctx = Context::default();
        ctx.add_plugin(AssetCache::default());
        let code = "let x = 1; // so";
        assert!(coloured(&ctx, code).is_empty(), "nobody has looked at it yet");
        // Stores the result that the highlighting process would return; no such process runs in this test.
        let hues = typeset::highlight::highlight_code(code, "rust").map(Arc::from);
        with(&ctx, |assets| assets.codes.insert(name(&(code, "rust")), HighlightState::Known(hues)));
        let known = coloured(&ctx, code);
        assert!(known.iter().any(|word| word == "let") && known.iter().any(|word| word == "// so"), "{known:?}");
        // None of these has been highlighted yet, so the known ranges move along with the edit.
        for (now, words) in [
            ("let xy = 1; // so", ["let", "1", "// so"]),
            (" let x = 1; // so", ["let", "1", "// so"]),
            ("let x = 1; // soon", ["let", "1", "// so"]),
        ] {
            let now_coloured = coloured(&ctx, now);
            for word in words {
                assert!(now_coloured.iter().any(|seen| seen.trim() == word), "{now}: {now_coloured:?} has {word}");
            }
        }
        assert!(coloured(&ctx, &"other ".repeat(500)).is_empty(), "another text is no edit of this one");
    }
}
