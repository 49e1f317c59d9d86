//! What rows show beyond their own text: pictures, other notes, colours of code. A row asks for it while it is laid out
//! and is laid out again when it is there; reading, decoding and colouring happen on a thread of their own.

use crate::tokens;
use eframe::egui;
use egui::text::{LayoutJob, TextFormat};
use egui::{ColorImage, Context, Galley, TextureHandle, TextureOptions, Ui, Vec2, vec2};
use engine::Session;
use engine::markdown::{self, dialect, meant};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use store::{DocId, FileKind};
use typeset::colour::{self, Hue};

/// A file larger than this is named, not shown.
const LARGEST: u64 = 64 << 20;
/// Pictures are kept up to this many bytes; what was seen longest ago goes first.
const KEPT: usize = 192 << 20;
/// No picture is shown wider or higher than this, in pixels.
const SIDE: u32 = 2_080;
/// Of an embedded note no more than this is shown, in bytes.
const EXCERPT: usize = 6_000;
/// Coloured codes that are kept.
const CODES: usize = 500;

/// What a row asked for.
#[derive(Clone)]
pub(super) enum Sight {
    /// It is on its way.
    Waiting,
    /// A picture, and how large it would like to be, in points.
    Picture(TextureHandle, Vec2),
    /// The text of another note or of a part of it.
    Text(Arc<str>),
    /// There is no such thing, or it cannot be shown.
    None,
}

/// A row's wish: what it is called in which note.
type Wish = (DocId, String);

enum Done {
    Picture(Wish, Option<ColorImage>),
    Text(Wish, Option<Arc<str>>),
    Code(u64, Option<Hues>),
}

/// What stands out in a piece of code.
type Hues = Arc<[(Range<usize>, Hue)]>;

type Job = Box<dyn FnOnce() -> Done + Send>;

/// Everything that was asked for.
#[derive(Default)]
pub(super) struct Sights {
    known: HashMap<Wish, (Sight, u64)>,
    codes: HashMap<u64, Option<Hues>>,
    wishes: Vec<Wish>,
    /// Callouts that somebody folded or unfolded, by what names them.
    turned: HashSet<u64>,
    way: Option<(Sender<Job>, Mutex<Receiver<Done>>)>,
    frame: u64,
    /// A text that is laid out in every frame.
    probe: Option<Arc<Galley>>,
    /// How often volumes were looked through when files were shown last.
    scans: u64,
    /// Counts what came: rows laid out before it may look otherwise now.
    version: u64,
}

impl Sights {
    fn way(&mut self, ctx: &Context) -> &Sender<Job> {
        let (jobs, _) = self.way.get_or_insert_with(|| {
            let ((jobs, queue), (answers, done)) = (channel::<Job>(), channel());
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

    /// Takes in what is there by now.
    fn take(&mut self, ctx: &Context) {
        self.frame += 1;
        let done: Vec<Done> = match self.way.as_mut().and_then(|(_, done)| done.get_mut().ok()) {
            Some(done) => done.try_iter().collect(),
            None => Vec::new(),
        };
        if done.is_empty() {
            return;
        }
        self.version += 1;
        for done in done {
            match done {
                Done::Picture(wish, image) => {
                    let sight = image.map_or(Sight::None, |image| {
                        #[allow(clippy::cast_precision_loss, reason = "a picture's side is small")]
                        let size = vec2(image.width() as f32, image.height() as f32);
                        Sight::Picture(ctx.load_texture(&wish.1, image, TextureOptions::LINEAR), size)
                    });
                    self.known.insert(wish, (sight, self.frame));
                }
                Done::Text(wish, text) => {
                    self.known.insert(wish, (text.map_or(Sight::None, Sight::Text), self.frame));
                }
                Done::Code(hash, hues) => {
                    if self.codes.len() > CODES {
                        self.codes.clear();
                    }
                    self.codes.insert(hash, hues);
                }
            }
        }
        self.forget();
    }

    /// Lets go of the pictures that were seen longest ago when there are too many.
    fn forget(&mut self) {
        let bytes = |sight: &Sight| match sight {
            Sight::Picture(texture, _) => texture.byte_size(),
            Sight::Waiting | Sight::Text(_) | Sight::None => 0,
        };
        let mut all: usize = self.known.values().map(|(sight, _)| bytes(sight)).sum();
        let mut old: Vec<(u64, Wish)> = self.known.iter().map(|(wish, (_, seen))| (*seen, wish.clone())).collect();
        old.sort();
        for (_, wish) in old.into_iter().take_while(|(seen, _)| seen + 2 < self.frame) {
            if all <= KEPT {
                break;
            }
            all -= self.known.remove(&wish).map_or(0, |(sight, _)| bytes(&sight));
        }
    }
}

impl egui::Plugin for Sights {
    fn debug_name(&self) -> &'static str {
        "sights"
    }

    fn on_begin_pass(&mut self, ui: &mut Ui) {
        let ctx = ui.ctx().clone();
        self.take(&ctx);
        // Laid-out text points into the picture of all letters. When that is made anew (another theme, too many
        // letters), the toolkit forgets what it laid out, and so must we.
        let probe = ctx.fonts_mut(|fonts| fonts.layout_job(LayoutJob::single_section("x".to_owned(), format())));
        if !self.probe.as_ref().is_some_and(|known| Arc::ptr_eq(known, &probe)) {
            self.version += 1;
            self.probe = Some(probe);
        }
    }
}

fn format() -> TextFormat {
    let body = tokens::body();
    super::render::format(body.font, body.line, egui::Color32::PLACEHOLDER)
}

fn with<R>(ctx: &Context, what: impl FnOnce(&mut Sights) -> R) -> Option<R> {
    ctx.with_plugin(what)
}

/// What rows that were laid out at another version may no longer look like.
pub(super) fn version(ctx: &Context) -> u64 {
    with(ctx, |sights| sights.version).unwrap_or(0)
}

/// What a note shows under this name.
pub(super) fn sight(ctx: &Context, note: DocId, name: &str) -> Sight {
    let seen = with(ctx, |sights| {
        let frame = sights.frame;
        let wish = (note, name.to_owned());
        match sights.known.get_mut(&wish) {
            Some((sight, seen)) => {
                *seen = frame;
                sight.clone()
            }
            None => {
                sights.known.insert(wish.clone(), (Sight::Waiting, frame));
                sights.wishes.push(wish);
                Sight::Waiting
            }
        }
    });
    seen.unwrap_or(Sight::None)
}

/// What stands out in a piece of code; nothing until it is known.
pub(super) fn hues(ctx: &Context, code: &str, language: &str) -> Option<Hues> {
    let mut hasher = DefaultHasher::new();
    (code, language).hash(&mut hasher);
    let hash = hasher.finish();
    with(ctx, |sights| {
        if let Some(known) = sights.codes.get(&hash) {
            return known.clone();
        }
        sights.codes.insert(hash, None);
        let (code, language) = (code.to_owned(), language.to_owned());
        let job = move || Done::Code(hash, colour::colours(&code, &language).map(Arc::from));
        let _ = sights.way(ctx).send(Box::new(job));
        None
    })?
}

/// Whether a callout was turned from how it begins.
pub(super) fn is_turned(ctx: &Context, callout: u64) -> bool {
    with(ctx, |sights| sights.turned.contains(&callout)).unwrap_or(false)
}

/// Folds a callout, or unfolds it.
pub(super) fn turn(ctx: &Context, callout: u64) {
    with(ctx, |sights| {
        if !sights.turned.remove(&callout) {
            sights.turned.insert(callout);
        }
        sights.version += 1;
    });
    ctx.request_repaint();
}

/// Sends for what rows have asked since the last frame.
pub(super) fn fetch(ctx: &Context, session: &Session) {
    let scans = session.volumes().map(|volume| volume.scans).sum();
    let wishes = with(ctx, |sights| {
        // Files may have changed: what was shown of them is read again.
        if std::mem::replace(&mut sights.scans, scans) != scans && !sights.known.is_empty() {
            sights.known.clear();
            sights.version += 1;
            ctx.request_repaint();
        }
        std::mem::take(&mut sights.wishes)
    });
    let wishes = wishes.unwrap_or_default();
    for wish in wishes {
        let job = job(session, wish);
        with(ctx, |sights| sights.way(ctx).send(job));
    }
}

fn job(session: &Session, wish: Wish) -> Job {
    let (name, part) = dialect::wiki_target(&wish.1);
    let found = session.place(wish.0).and_then(|(volume, own)| {
        let volume = session.volume(volume)?;
        let (path, row) = meant::find(&volume.files, own, name)?;
        Some((volume.root.as_ref()?.join(path), row.kind, row.id))
    });
    let part = part.map(str::to_owned);
    match found {
        Some((file, FileKind::Attachment, _)) => Box::new(move || Done::Picture(wish, picture(file))),
        Some((file, FileKind::Note, note)) => {
            // What is open here may be ahead of its file.
            let open = session.note(note).filter(|note| note.phase == engine::Phase::Ready).map(engine::Note::text);
            Box::new(move || {
                let read = || String::from_utf8(host::copy::read(&file, LARGEST)?).ok();
                let text = open.or_else(read);
                Done::Text(wish, text.and_then(|text| excerpt(&text, part.as_deref())))
            })
        }
        None => Box::new(move || Done::Picture(wish, None)),
    }
}

fn excerpt(text: &str, part: Option<&str>) -> Option<Arc<str>> {
    let text = match part {
        Some(part) => markdown::part(text, part)?,
        None => text,
    };
    if text.len() <= EXCERPT {
        return Some(Arc::from(text));
    }
    let end = text.floor_char_boundary(EXCERPT);
    let end = text[..end].rfind('\n').unwrap_or(end);
    Some(Arc::from(format!("{}\n\n…", &text[..end])))
}

fn picture(file: PathBuf) -> Option<ColorImage> {
    let bytes = host::copy::read(&file, LARGEST)?;
    let mut reader = image::ImageReader::new(std::io::Cursor::new(bytes)).with_guessed_format().ok()?;
    let mut limits = image::Limits::default();
    limits.max_image_width = Some(20_000);
    limits.max_image_height = Some(20_000);
    limits.max_alloc = Some(512 << 20);
    reader.limits(limits);
    let image = reader.decode().ok()?;
    let image = if image.width().max(image.height()) > SIDE { image.thumbnail(SIDE, SIDE) } else { image };
    let image = image.into_rgba8();
    let size = [image.width() as usize, image.height() as usize];
    Some(ColorImage::from_rgba_unmultiplied(size, image.as_raw()))
}
