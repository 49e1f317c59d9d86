//! The full-text index on disk: its schema and its maintenance.

use crate::analyzer::{self, WordAnalyzer};
use crate::dates::{self, DAY_MS};
use crate::error::IndexError;
use crate::language::StemLanguage;
use crate::passage::{IndexedPassage, NoteText, PassageKind};
use crate::vectors::VectorTable;
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use store::DocId;
use tantivy::index::SegmentId;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value,
};
use tantivy::{DocAddress, IndexReader, IndexWriter, ReloadPolicy, Searcher, SegmentReader, TantivyDocument, Term};

/// Part of the folder's name. An index in another format is rebuilt.
const INDEX_FORMAT: &str = "words-10";
/// Memory budget of the index writer, in bytes.
const WRITER_MEMORY_BYTES: usize = 32 << 20;
/// The sentence model reads about 250 words and works best on a few sentences. A longer passage is embedded in windows
/// of this many bytes.
const PASSAGE_WINDOW_BYTES: usize = 1_000;
/// Overlap of two consecutive windows in bytes, so that no sentence is cut in both.
const WINDOW_OVERLAP_BYTES: usize = 200;
/// Maximum number of windows embedded per passage. The rest is found by words only.
const MAX_WINDOWS_PER_PASSAGE: usize = 64;
/// A note's language is recognized by its first bytes.
const MAX_NOTE_LANGUAGE_BYTES: usize = 2_000;
/// This file exists while the index is closed and intact.
const CLEAN_MARKER_FILE: &str = "clean";

/// The fields of a passage in the index.
#[derive(Clone, Copy)]
pub(crate) struct IndexFields {
    pub(crate) note: Field,
    pub(crate) key: Field,
    pub(crate) place: Field,
    pub(crate) volume: Field,
    pub(crate) path: Field,
    pub(crate) name: Field,
    pub(crate) heading: Field,
    pub(crate) text: Field,
    /// The words of the title.
    pub(crate) title: Field,
    /// The words of the text.
    pub(crate) words: Field,
    /// The stems of title, headings and text, by the passage's language.
    pub(crate) stems: Field,
    /// The passage's language, as a number.
    pub(crate) language: Field,
    /// Tags, kind, language, language of stems, todos, names of linked notes, aliases and own heading, each as one
    /// exact term.
    pub(crate) marks: Field,
    pub(crate) kind: Field,
    pub(crate) modified: Field,
    /// Identifies the session of a turn; only turns of conversations have one.
    pub(crate) session: Field,
    /// Whether a turn asks something (1 or 0).
    pub(crate) asks: Field,
    /// When a passage was said or written, in milliseconds since 1970.
    pub(crate) said: Field,
    /// The days that a passage is about, each as a first and a last day since 1970.
    pub(crate) about: Field,
    /// The hashes of the texts that are embedded for the passage, in order.
    pub(crate) meaning: Field,
}

fn build_schema() -> (Schema, IndexFields) {
    let mut schema = Schema::builder();
    let analyzed = |name: &str, positions: bool| {
        let option = if positions { IndexRecordOption::WithFreqsAndPositions } else { IndexRecordOption::WithFreqs };
        TextOptions::default()
            .set_indexing_options(TextFieldIndexing::default().set_tokenizer(name).set_index_option(option))
    };
    let fields = IndexFields {
        note: schema.add_text_field("note", STRING | FAST),
        key: schema.add_u64_field("key", FAST),
        place: schema.add_text_field("place", STORED),
        volume: schema.add_text_field("volume", STRING | STORED),
        path: schema.add_text_field("path", STORED | FAST),
        name: schema.add_text_field("name", STORED),
        heading: schema.add_text_field("heading", STORED),
        text: schema.add_text_field("text", STORED),
        title: schema.add_text_field("title", analyzed("words", true)),
        words: schema.add_text_field("words", analyzed("words", true)),
        stems: schema.add_text_field("stems", analyzed("words", false)),
        language: schema.add_u64_field("language", FAST | STORED),
        marks: schema.add_text_field("marks", STRING),
        kind: schema.add_u64_field("kind", FAST | STORED),
        modified: schema.add_i64_field("modified", FAST | INDEXED),
        session: schema.add_u64_field("session", FAST | STORED),
        asks: schema.add_u64_field("asks", FAST),
        said: schema.add_i64_field("said", FAST),
        about: schema.add_i64_field("about", FAST),
        meaning: schema.add_u64_field("meaning", FAST),
    };
    (schema.build(), fields)
}

/// Size statistics of the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexCounts {
    /// Number of indexed notes.
    pub notes: usize,
    /// Number of indexed passages.
    pub passages: u64,
    /// Size of the index on disk, in bytes.
    pub bytes: u64,
    /// Number of passages, or windows of long passages, that need a vector.
    pub meanings: usize,
    /// Number of these that have a vector.
    pub embedded: usize,
}

/// The search index of a workspace. Only one process can open it at a time.
pub struct FullTextIndex {
    folder: PathBuf,
    pub(crate) fields: IndexFields,
    index: tantivy::Index,
    reader: IndexReader,
    writer: Mutex<IndexWriter>,
    /// The vectors that searches use.
    vectors: RwLock<VectorTable>,
    /// The vectors of another model, which replace `vectors` once they are complete.
    growing: RwLock<Option<VectorTable>>,
    /// The vectors of each segment's passages, and the revision of the vector table that they refer to.
    places: Mutex<HashMap<SegmentId, (u64, SegmentPassages)>>,
    unclean: bool,
}

/// The vectors of a segment's passages, in the order of the passages.
pub(crate) type SegmentPassages = Arc<Vec<PassagePlace>>;

/// A passage of a segment, and the slot of one of its vectors in the vector table.
#[derive(Clone, Copy)]
pub(crate) struct PassagePlace {
    pub(crate) doc: u32,
    pub(crate) slot: usize,
}

impl FullTextIndex {
    /// Opens the index in this folder, or creates it. The most complete set of vectors answers searches. `model` is the
    /// preferred model, see [`FullTextIndex::grow_vectors`].
    ///
    /// # Errors
    /// Returns an error if the index is damaged or the disk fails. See [`FullTextIndex::remove_files`].
    pub fn open(folder: &Path, model: &str) -> Result<FullTextIndex, IndexError> {
        let words = folder.join(INDEX_FORMAT);
        let make = |error: std::io::Error| IndexError::disk("cannot be made", &error);
        std::fs::create_dir_all(&words).map_err(make)?;
        for other in std::fs::read_dir(folder).map_err(make)?.flatten() {
            if other.path() != words && other.file_name().to_string_lossy().starts_with("words-") {
                // This version can't use indexes of older versions. One that can't be removed only takes up space.
                let _ = std::fs::remove_dir_all(other.path());
            }
        }
        let marker = folder.join(CLEAN_MARKER_FILE);
        let fresh = std::fs::read_dir(&words).map_err(make)?.next().is_none();
        let unclean = !fresh && std::fs::remove_file(&marker).is_err();
        let (schema, fields) = build_schema();
        let place = tantivy::directory::MmapDirectory::open(&words)
            .map_err(|error| IndexError::new("cannot be opened", error))?;
        let index = tantivy::Index::open_or_create(place, schema)?;
        index.tokenizers().register("words", WordAnalyzer);
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let writer = index.writer_with_num_threads(1, WRITER_MEMORY_BYTES)?;
        let records = |kept: &&(String, usize, u64)| (kept.2 / (kept.1 as u64 + 1), kept.0 == model);
        let vectors = match VectorTable::stored_models(folder).iter().filter(|kept| kept.2 > 0).max_by_key(records) {
            Some((model, dimensions, _)) => VectorTable::open(folder, model, *dimensions)?,
            None => VectorTable::empty(folder, model),
        };
        Ok(FullTextIndex {
            folder: folder.to_owned(),
            fields,
            index,
            reader,
            writer: Mutex::new(writer),
            vectors: RwLock::new(vectors),
            growing: RwLock::new(None),
            places: Mutex::default(),
            unclean,
        })
    }

    /// Deletes the full-text part of an index that can't be opened. Vectors stay, because their records have their own
    /// checksums.
    ///
    /// # Errors
    /// Returns an error if the files can't be removed.
    pub fn remove_files(folder: &Path) -> Result<(), IndexError> {
        match std::fs::remove_dir_all(folder.join(INDEX_FORMAT)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(IndexError::disk("cannot be removed", &error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Whether the index wasn't closed properly the last time, and [`FullTextIndex::verify`] should run.
    pub fn is_unclean(&self) -> bool {
        self.unclean
    }

    /// Whether the files of the index still exist.
    pub fn files_exist(&self) -> bool {
        self.folder.join(INDEX_FORMAT).join("meta.json").exists()
    }

    /// Writes the marker that says the index was closed properly. Call it last.
    pub fn mark_clean(&self) {
        // If this fails, the next start just verifies every byte.
        let _ = std::fs::write(self.folder.join(CLEAN_MARKER_FILE), b"");
    }

    fn lock_writer(&self) -> MutexGuard<'_, IndexWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_vectors(&self) -> RwLockReadGuard<'_, VectorTable> {
        self.vectors.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where the vectors of a segment's passages are, in the order of the passages. The result is cached per
    /// segment and set of vectors, because every query goes through all passages.
    pub(crate) fn segment_passages(
        &self,
        part: &SegmentReader,
        vectors: &VectorTable,
    ) -> Result<SegmentPassages, IndexError> {
        let mut known = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let (id, stamp) = (part.segment_id(), vectors.stamp());
        if let Some((_, places)) = known.get(&id).filter(|(of, _)| *of == stamp) {
            return Ok(places.clone());
        }
        let column = part.fast_fields().u64("meaning")?;
        let slots = |doc| column.values_for_doc(doc).filter_map(|hash| vectors.slot(hash));
        let places = (0..part.max_doc())
            .flat_map(|doc| slots(doc).map(move |slot| PassagePlace { doc, slot }).collect::<Vec<_>>());
        let places: SegmentPassages = Arc::new(places.collect());
        let there: HashSet<SegmentId> =
            self.searcher().segment_readers().iter().map(SegmentReader::segment_id).collect();
        known.retain(|id, _| there.contains(id));
        known.insert(id, (stamp, places.clone()));
        Ok(places)
    }

    pub(crate) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    /// Returns the indexed notes, each with the key of its indexed state.
    ///
    /// # Errors
    /// Returns an error if the index is damaged.
    pub fn indexed_notes(&self) -> Result<HashMap<DocId, u64>, IndexError> {
        let mut known = HashMap::new();
        for segment in self.searcher().segment_readers() {
            let Some(notes) = segment.fast_fields().str("note")? else { continue };
            let keys = segment.fast_fields().u64("key")?;
            let mut seen: HashMap<u64, u64> = HashMap::new();
            for doc in segment.doc_ids_alive() {
                if let (Some(note), Some(key)) = (notes.term_ords(doc).next(), keys.first(doc)) {
                    seen.insert(note, key);
                }
            }
            for (note, key) in seen {
                let mut name = String::new();
                notes.ord_to_str(note, &mut name)?;
                if let Ok(note) = name.parse() {
                    known.insert(note, key);
                }
            }
        }
        Ok(known)
    }

    /// Adds or replaces a note. Searches see it after [`FullTextIndex::commit`].
    ///
    /// # Errors
    /// Returns an error if the writer failed.
    pub fn put_note(&self, note: &NoteText) -> Result<(), IndexError> {
        let writer = self.lock_writer();
        let id = note.note.to_string();
        writer.delete_term(Term::from_field_text(self.fields.note, &id));
        let note_language = OnceCell::new();
        for passage in &note.passages {
            writer.add_document(self.build_document(note, &id, passage, &note_language))?;
        }
        Ok(())
    }

    fn build_document(
        &self,
        note: &NoteText,
        id: &str,
        passage: &IndexedPassage,
        note_language: &OnceCell<StemLanguage>,
    ) -> TantivyDocument {
        let fields = &self.fields;
        let mut doc = TantivyDocument::default();
        doc.add_text(fields.note, id);
        doc.add_u64(fields.key, note.key);
        doc.add_text(fields.place, &passage.place);
        doc.add_text(fields.volume, &note.volume);
        doc.add_text(fields.path, &note.path);
        doc.add_text(fields.name, &note.title);
        doc.add_text(fields.heading, &passage.heading);
        doc.add_text(fields.text, &passage.text);
        let file = note.path.rsplit('/').next().unwrap_or(&note.path);
        let file = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        doc.add_text(fields.title, &note.title);
        if file != note.title {
            doc.add_text(fields.title, file);
        }
        doc.add_text(fields.words, &passage.text);
        let language = if is_language(passage.kind) {
            // A short passage has the language of its note. Recognizing it takes about 0.1 ms, so that's
            // done only where it's needed.
            let of_note = || *note_language.get_or_init(|| detect_note_language(note));
            StemLanguage::detect(&passage.text).unwrap_or_else(of_note)
        } else {
            StemLanguage::ENGLISH
        };
        doc.add_u64(fields.language, language.to_index_number());
        let stemmed = passage_context(&note.title, &passage.heading, &passage.text);
        doc.add_pre_tokenized_text(fields.stems, analyzer::stemmed_text(&stemmed, language));
        doc.add_text(fields.marks, language_mark(language));
        let mark = |doc: &mut TantivyDocument, name: &str, value: &str| {
            doc.add_text(fields.marks, format!("{name}:{}", value.to_lowercase()));
        };
        mark(&mut doc, "in", passage.kind.name());
        if !passage.lang.is_empty() {
            mark(&mut doc, "lang", &passage.lang);
        }
        if passage.todo {
            mark(&mut doc, "is", "todo");
        }
        if passage.done {
            mark(&mut doc, "is", "done");
        }
        if passage.private {
            doc.add_text(fields.marks, crate::filter::PRIVATE_MARK);
        }
        for tag in &note.tags {
            // A tag `a/b` also counts as `a`.
            let ends = tag.match_indices('/').map(|(at, _)| at).chain([tag.len()]);
            ends.for_each(|end| mark(&mut doc, "tag", &tag[..end]));
        }
        for name in &passage.links {
            mark(&mut doc, "link", name);
        }
        for name in &passage.names {
            mark(&mut doc, "name", name.trim());
        }
        for heading in passage.own_heading().into_iter().chain(passage.inner_headings()) {
            mark(&mut doc, "heading", heading);
        }
        doc.add_u64(fields.kind, passage.kind.to_index_number());
        doc.add_i64(fields.modified, note.modified);
        if let Some(said) = passage.said {
            doc.add_i64(fields.said, said);
        }
        if passage.kind != PassageKind::Output {
            let said = passage.said.map(|said| said.div_euclid(DAY_MS));
            for (first, last) in dates::mentioned_days(&passage.text, said) {
                doc.add_i64(fields.about, first);
                doc.add_i64(fields.about, last);
            }
        }
        if !passage.session.is_empty() {
            doc.add_u64(fields.session, text_hash(&format!("{id} {}", passage.session)));
            doc.add_u64(fields.asks, u64::from(passage.text.contains('?')));
        }
        for name in speaker_marks(&passage.speaker) {
            mark(&mut doc, "by", &name);
        }
        let is_turn = !passage.session.is_empty();
        for window in embedded_texts(passage.kind, is_turn, &note.title, &passage.heading, &passage.text) {
            doc.add_u64(fields.meaning, text_hash(&window));
        }
        doc
    }

    /// Removes a note. Searches see this after [`FullTextIndex::commit`].
    pub fn remove_note(&self, note: DocId) {
        self.lock_writer().delete_term(Term::from_field_text(self.fields.note, &note.to_string()));
    }

    /// Makes added and removed notes durable, and visible to searches.
    ///
    /// # Errors
    /// Returns an error if the disk fails. Everything added since the last commit must then be added again.
    pub fn commit(&self) -> Result<(), IndexError> {
        let mut writer = self.lock_writer();
        if let Err(error) = writer.commit() {
            // The commit's error is the one to report.
            let _ = writer.rollback();
            return Err(error.into());
        }
        drop(writer);
        self.reader.reload()?;
        Ok(())
    }

    /// Verifies every byte of the index and returns a description of each error.
    ///
    /// # Errors
    /// Returns an error if the index can't be read at all.
    pub fn verify(&self) -> Result<Vec<String>, IndexError> {
        let damaged = self.index.validate_checksum()?;
        Ok(damaged.into_iter().map(|path| format!("a part is damaged: {}", path.display())).collect())
    }

    /// Returns the name of the model whose vectors answer searches.
    pub fn answering_model(&self) -> String {
        self.lock_vectors().model().to_owned()
    }

    /// Returns the dimensions of the vectors that answer searches, or 0 while they are unknown.
    pub fn dimensions(&self) -> usize {
        self.lock_vectors().dimensions()
    }

    /// Collects vectors of this model from now on. If another model answers searches, it continues to do so until these
    /// are complete, see [`FullTextIndex::activate_grown_vectors`]. Vectors of all other models are deleted.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn grow_vectors(&self, model: &str, dimensions: usize) -> Result<(), IndexError> {
        let mut vectors = self.vectors.write().unwrap_or_else(PoisonError::into_inner);
        let mut growing = self.growing.write().unwrap_or_else(PoisonError::into_inner);
        let same = |vectors: &VectorTable| vectors.model() == model && vectors.dimensions() == dimensions;
        if same(&vectors) {
            *growing = None;
        } else if vectors.len() == 0 {
            *vectors = VectorTable::open(&self.folder, model, dimensions)?;
            *growing = None;
        } else if !growing.as_ref().is_some_and(same) {
            *growing = Some(VectorTable::open(&self.folder, model, dimensions)?);
        }
        let needed = |kept: &(String, usize, u64)| {
            [Some(&*vectors), growing.as_ref()]
                .into_iter()
                .flatten()
                .any(|own| (own.model(), own.dimensions()) == (&kept.0, kept.1))
        };
        for (model, dimensions, _) in VectorTable::stored_models(&self.folder).into_iter().filter(|kept| !needed(kept))
        {
            VectorTable::remove(&self.folder, &model, dimensions);
        }
        Ok(())
    }

    /// Makes the newly collected vectors answer searches, and deletes the previous ones. Call it when they are
    /// complete.
    pub fn activate_grown_vectors(&self) {
        let mut vectors = self.vectors.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(grown) = self.growing.write().unwrap_or_else(PoisonError::into_inner).take() {
            let old = std::mem::replace(&mut *vectors, grown);
            VectorTable::remove(&self.folder, old.model(), old.dimensions());
        }
    }

    /// Drops the vectors of deleted texts if they're the majority. Returns whether it did.
    ///
    /// # Errors
    /// Returns an error if the disk fails. The old vectors are kept then.
    pub fn compact_vectors(&self) -> Result<bool, IndexError> {
        let mut alive = HashSet::new();
        for segment in self.searcher().segment_readers() {
            let column = segment.fast_fields().u64("meaning")?;
            alive.extend(segment.doc_ids_alive().flat_map(|doc| column.values_for_doc(doc).collect::<Vec<_>>()));
        }
        if !self.lock_vectors().is_mostly_dead(&alive) {
            return Ok(false);
        }
        self.vectors.write().unwrap_or_else(PoisonError::into_inner).compact(&self.folder, &alive)?;
        Ok(true)
    }

    /// Returns the size statistics of the index.
    ///
    /// # Errors
    /// Returns an error if the index is damaged.
    pub fn counts(&self) -> Result<IndexCounts, IndexError> {
        let searcher = self.searcher();
        let notes = self.indexed_notes()?.len();
        let (mut meanings, mut embedded) = (0, 0);
        let vectors = self.lock_vectors();
        for segment in searcher.segment_readers() {
            let column = segment.fast_fields().u64("meaning")?;
            for hash in segment.doc_ids_alive().flat_map(|doc| column.values_for_doc(doc)) {
                meanings += 1;
                embedded += usize::from(vectors.slot(hash).is_some());
            }
        }
        let files = [self.folder.clone(), self.folder.join(INDEX_FORMAT)];
        let entries = files.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let bytes = entries.filter_map(|entry| entry.metadata().ok()).filter(|meta| meta.is_file());
        let bytes = bytes.map(|meta| meta.len()).sum();
        Ok(IndexCounts { notes, passages: searcher.num_docs(), bytes, meanings, embedded })
    }

    /// Returns the passages that have no vector yet.
    ///
    /// # Errors
    /// Returns an error if the index is damaged.
    pub fn missing_vectors(&self) -> Result<MissingVectors, IndexError> {
        let searcher = self.searcher();
        let mut docs = Vec::new();
        let (answering, growing) = (self.lock_vectors(), self.growing.read().unwrap_or_else(PoisonError::into_inner));
        let vectors = growing.as_ref().unwrap_or(&answering);
        let mut seen = HashSet::new();
        for (segment, number) in searcher.segment_readers().iter().zip(0..) {
            let column = segment.fast_fields().u64("meaning")?;
            for doc in segment.doc_ids_alive() {
                for (hash, window) in column.values_for_doc(doc).zip(0_usize..) {
                    if vectors.slot(hash).is_none() && seen.insert(hash) {
                        docs.push((DocAddress::new(number, doc), window, hash));
                    }
                }
            }
        }
        drop((answering, growing));
        Ok(MissingVectors { searcher, docs, fields: self.fields })
    }

    /// Stores vectors by the hashes of their texts.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn store_vectors(&self, all: &[(u64, Vec<f32>)]) -> Result<(), IndexError> {
        if let Some(growing) = &mut *self.growing.write().unwrap_or_else(PoisonError::into_inner) {
            return growing.append(all);
        }
        self.vectors.write().unwrap_or_else(PoisonError::into_inner).append(all)
    }

    /// Stores vectors among those that answer searches, if these are of this model.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn store_answering_vectors(&self, model: &str, all: &[(u64, Vec<f32>)]) -> Result<(), IndexError> {
        let mut vectors = self.vectors.write().unwrap_or_else(PoisonError::into_inner);
        if vectors.model() != model || vectors.dimensions() == 0 {
            return Ok(());
        }
        // Another thread may have stored some of them meanwhile.
        let missing = all.iter().filter(|(hash, _)| vectors.slot(*hash).is_none());
        let missing: Vec<(u64, Vec<f32>)> = missing.cloned().collect();
        if missing.is_empty() { Ok(()) } else { vectors.append(&missing) }
    }

    /// Returns the number of texts that have a vector.
    pub fn vector_count(&self) -> usize {
        self.lock_vectors().len()
    }
}

/// Queue of passages that have no vector yet.
pub struct MissingVectors {
    searcher: Searcher,
    /// The passage, the number of the window in it, and the hash of the window's text.
    docs: Vec<(DocAddress, usize, u64)>,
    fields: IndexFields,
}

impl MissingVectors {
    /// Number of passages that have no vector yet.
    pub fn len(&self) -> usize {
        self.docs.len()
    }

    /// Whether no passage is left.
    pub fn is_empty(&self) -> bool {
        self.docs.is_empty()
    }

    /// Removes the next passage and returns the hash of its text and the text, or `None` if none is left.
    ///
    /// # Errors
    /// Returns an error if the index is damaged.
    pub fn pop(&mut self) -> Result<Option<(u64, String)>, IndexError> {
        while let Some((address, window, wanted)) = self.docs.pop() {
            let doc: TantivyDocument = self.searcher.doc(address)?;
            let text = |field| stored_text(&doc, field);
            let kind = doc.get_first(self.fields.kind).and_then(|kind| kind.as_u64()).unwrap_or(0);
            let kind = PassageKind::from_index_number(kind);
            let is_turn = doc.get_first(self.fields.session).is_some();
            let (title, heading, text) = (text(self.fields.name), text(self.fields.heading), text(self.fields.text));
            let text = embedded_texts(kind, is_turn, &title, &heading, &text).into_iter().nth(window);
            if let Some(text) = text.filter(|text| text_hash(text) == wanted) {
                return Ok(Some((wanted, text)));
            }
        }
        Ok(None)
    }
}

/// Returns the stored text of a field, empty if it has none.
pub(crate) fn stored_text(doc: &TantivyDocument, field: Field) -> String {
    doc.get_first(field).and_then(|value| value.as_str()).unwrap_or_default().to_owned()
}

/// Returns a passage's text preceded by its title and headings, unless the text already repeats them.
fn passage_context(title: &str, heading: &str, text: &str) -> String {
    let begins = &text[..text.floor_char_boundary(400)];
    let mut out = String::new();
    for above in [title, heading] {
        if !above.is_empty() && !begins.contains(above) && !out.contains(above) {
            out.push_str(above);
            out.push('\n');
        }
    }
    out.push_str(text);
    out
}

/// Returns the mark of passages in a language.
pub(crate) fn language_mark(language: StemLanguage) -> String {
    format!("stems:{}", language.code())
}

/// Whether passages of this kind are written in a human language. Code and output are stemmed as English.
fn is_language(kind: PassageKind) -> bool {
    !matches!(kind, PassageKind::Code | PassageKind::Output)
}

/// Returns the language of most of a note's text.
fn detect_note_language(note: &NoteText) -> StemLanguage {
    let mut text = String::new();
    for passage in note.passages.iter().filter(|passage| is_language(passage.kind)) {
        if text.len() >= MAX_NOTE_LANGUAGE_BYTES {
            break;
        }
        text.push_str(&passage.text[..passage.text.floor_char_boundary(MAX_NOTE_LANGUAGE_BYTES)]);
        text.push('\n');
    }
    StemLanguage::detect(&text).unwrap_or(StemLanguage::ENGLISH)
}

/// Returns the names by which a speaker is found: the whole name, and each of its words.
fn speaker_marks(speaker: &str) -> BTreeSet<String> {
    let words = analyzer::split_words(speaker).into_iter().map(|word| word.text);
    words.chain([analyzer::fold_text(speaker)]).filter(|name| !name.is_empty()).collect()
}

/// Returns the texts that are embedded for a passage, one per window.
pub(crate) fn embedded_texts(kind: PassageKind, is_turn: bool, title: &str, heading: &str, text: &str) -> Vec<String> {
    // Title and heading are the same for all turns of a conversation, and would drown what a short one says.
    let (title, heading) = if is_turn { ("", "") } else { (title, heading) };
    embedding_windows(kind, text).into_iter().map(|window| passage_context(title, heading, &text[window])).collect()
}

/// Splits a passage into the parts that are embedded separately.
pub(crate) fn embedding_windows(kind: PassageKind, text: &str) -> Vec<Range<usize>> {
    // Program output is found by its words. Numbers and logs mean nothing to a sentence model.
    if kind == PassageKind::Output || !text.chars().any(char::is_alphabetic) {
        return Vec::new();
    }
    let mut all = Vec::new();
    let mut from = 0;
    while all.len() < MAX_WINDOWS_PER_PASSAGE {
        let mut end = text.floor_char_boundary(from + PASSAGE_WINDOW_BYTES);
        // A slightly longer rest isn't worth another window.
        if text.len() - from <= PASSAGE_WINDOW_BYTES + WINDOW_OVERLAP_BYTES {
            end = text.len();
        } else if let Some(space) =
            text[from..end].rfind(char::is_whitespace).filter(|space| *space > PASSAGE_WINDOW_BYTES / 2)
        {
            end = from + space;
        }
        all.push(from..end);
        if end == text.len() {
            break;
        }
        let back = text.floor_char_boundary(end - WINDOW_OVERLAP_BYTES);
        from = text[back..end].find(char::is_whitespace).map_or(back, |space| back + space).max(from + 1);
        from = text.ceil_char_boundary(from);
    }
    all
}

/// Returns the hash that identifies an embedded text.
pub(crate) fn text_hash(text: &str) -> u64 {
    let hash = blake3::hash(text.as_bytes());
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn windows_hold_every_word(text in "(\\PC{0,300} ?){0,12}") {
            let windows = embedded_texts(PassageKind::Prose, false, "Title", "Heading", &text);
            let said = windows.join(" ");
            if !windows.is_empty() && windows.len() < MAX_WINDOWS_PER_PASSAGE {
                for word in text.split_whitespace().filter(|word| word.len() < WINDOW_OVERLAP_BYTES / 2) {
                    prop_assert!(said.contains(word), "{word}");
                }
            }
        }
    }

    #[test]
    fn a_short_passage_is_one_window() {
        assert_eq!(embedded_texts(PassageKind::Prose, false, "T", "H", "some words").len(), 1);
        assert_eq!(embedded_texts(PassageKind::Output, false, "T", "H", "some words").len(), 0);
        assert_eq!(embedded_texts(PassageKind::Prose, false, "T", "H", &"word ".repeat(1_000)).len(), 6);
        assert_eq!(
            embedded_texts(PassageKind::Prose, false, "T", "H", &"word ".repeat(1_000_000)).len(),
            MAX_WINDOWS_PER_PASSAGE
        );
    }
}
