//! Filters of a query: which passages its phrases, exclusions and fields admit.

use crate::analyzer;
use crate::error::IndexError;
use crate::fulltext::IndexFields;
use crate::language::StemLanguage;
use crate::query::{ParsedQuery, QueryAtom, QueryGroup};
use tantivy::query::{EnableScoring, PhraseQuery, Query as _};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Searcher, SegmentReader, TERMINATED, Term};

/// For every segment, whether each of its passages is admitted.
pub(crate) type AdmittedPassages = Vec<Vec<bool>>;

/// Maximum number of words that a prefix is expanded to in a segment.
const MAX_PREFIX_EXPANSIONS: usize = 200;

/// The mark of passages that only a query for memory (`in:memory`) finds.
pub(crate) const PRIVATE_MARK: &str = "is:private";

/// Returns the passages that a query admits, or `None` if it admits all.
pub(crate) fn admitted_passages(
    searcher: &Searcher,
    fields: &IndexFields,
    query: &ParsedQuery,
) -> Result<Option<AdmittedPassages>, IndexError> {
    let public = if query.asks_for_memory() { None } else { public_passages(searcher, fields)? };
    if !query.is_strict() {
        return Ok(public);
    }
    let mut admitted = Vec::new();
    for segment in searcher.segment_readers() {
        let mut all: Vec<bool> = (0..segment.max_doc()).map(|doc| !segment.is_deleted(doc)).collect();
        for group in query.groups.iter().filter(|group| !group.is_loose()) {
            let fits = matching_passages(searcher, segment, fields, group)?;
            all.iter_mut().zip(fits).for_each(|(all, fits)| *all &= fits != group.not);
        }
        if let Some(public) = public.as_ref().and_then(|public| public.get(admitted.len())) {
            all.iter_mut().zip(public).for_each(|(all, public)| *all &= public);
        }
        admitted.push(all);
    }
    Ok(Some(admitted))
}

/// Returns all passages except private ones, or `None` if none is private.
pub(crate) fn public_passages(
    searcher: &Searcher,
    fields: &IndexFields,
) -> Result<Option<AdmittedPassages>, IndexError> {
    let (mut admitted, mut any) = (Vec::new(), false);
    for segment in searcher.segment_readers() {
        let mut private = vec![false; segment.max_doc() as usize];
        mark_term(segment, fields.marks, PRIVATE_MARK, &mut private)?;
        any |= private.contains(&true);
        admitted.push((0..).zip(private).map(|(doc, private)| !private && !segment.is_deleted(doc)).collect());
    }
    Ok(any.then_some(admitted))
}

/// Returns which of the admitted passages are in a volume; all of them without one.
pub(crate) fn passages_in_volume(
    searcher: &Searcher,
    fields: &IndexFields,
    volume: Option<&str>,
    admitted: Option<AdmittedPassages>,
) -> Result<Option<AdmittedPassages>, IndexError> {
    let Some(volume) = volume else { return Ok(admitted) };
    let mut limited = Vec::new();
    for (number, segment) in searcher.segment_readers().iter().enumerate() {
        let mut inside = vec![false; segment.max_doc() as usize];
        mark_term(segment, fields.volume, volume, &mut inside)?;
        match admitted.as_ref().and_then(|admitted| admitted.get(number)) {
            Some(admitted) => inside.iter_mut().zip(admitted).for_each(|(inside, admitted)| *inside &= admitted),
            None => (0..).zip(&mut inside).for_each(|(doc, inside)| *inside &= !segment.is_deleted(doc)),
        }
        limited.push(inside);
    }
    Ok(Some(limited))
}

fn matching_passages(
    searcher: &Searcher,
    segment: &SegmentReader,
    fields: &IndexFields,
    group: &QueryGroup,
) -> Result<Vec<bool>, IndexError> {
    let mut fits = vec![false; segment.max_doc() as usize];
    for atom in &group.atoms {
        match atom {
            QueryAtom::Word { text, prefix } => {
                for word in analyzer::split_words(text).into_iter().filter(|word| !word.whole) {
                    for language in StemLanguage::all() {
                        let stem = language.stemmer().stem_term(&text[word.range.clone()]);
                        mark_term(segment, fields.stems, &stem, &mut fits)?;
                    }
                    mark_term(segment, fields.title, &word.text, &mut fits)?;
                    if *prefix {
                        for longer in words_with_prefix(segment, fields.words, &word.text)? {
                            mark_term(segment, fields.words, &longer, &mut fits)?;
                        }
                    }
                }
            }
            QueryAtom::Phrase(text) => {
                for field in [fields.words, fields.title] {
                    mark_phrase(searcher, segment, field, text, &mut fits)?;
                }
            }
            QueryAtom::Tag(tag) => mark_term(segment, fields.marks, &format!("tag:{tag}"), &mut fits)?,
            QueryAtom::In(kind) => mark_term(segment, fields.marks, &format!("in:{}", kind.name()), &mut fits)?,
            QueryAtom::Lang(lang) => mark_term(segment, fields.marks, &format!("lang:{lang}"), &mut fits)?,
            QueryAtom::By(name) => mark_term(segment, fields.marks, &format!("by:{name}"), &mut fits)?,
            QueryAtom::Is { done } => {
                let mark = if *done { "is:done" } else { "is:todo" };
                mark_term(segment, fields.marks, mark, &mut fits)?;
            }
            QueryAtom::Title(text) => {
                let mut all = vec![true; fits.len()];
                for word in analyzer::split_words(text).into_iter().filter(|word| !word.whole) {
                    let mut with = vec![false; fits.len()];
                    for longer in words_with_prefix(segment, fields.title, &word.text)? {
                        mark_term(segment, fields.title, &longer, &mut with)?;
                    }
                    all.iter_mut().zip(with).for_each(|(all, with)| *all &= with);
                }
                fits.iter_mut().zip(all).for_each(|(fits, all)| *fits |= all);
            }
            QueryAtom::Path(part) => mark_path(segment, part, &mut fits)?,
            QueryAtom::Before(day) => mark_changed(segment, |modified| modified < *day, &mut fits)?,
            QueryAtom::After(day) => mark_changed(segment, |modified| modified >= *day, &mut fits)?,
        }
    }
    Ok(fits)
}

fn set_match(fits: &mut [bool], doc: DocId) {
    if let Some(fits) = fits.get_mut(doc as usize) {
        *fits = true;
    }
}

fn mark_term(segment: &SegmentReader, field: Field, word: &str, fits: &mut [bool]) -> Result<(), IndexError> {
    let term = Term::from_field_text(field, word);
    if let Some(mut postings) = segment.inverted_index(field)?.read_postings(&term, IndexRecordOption::Basic)? {
        let mut doc = postings.doc();
        while doc != TERMINATED {
            set_match(fits, doc);
            doc = postings.advance();
        }
    }
    Ok(())
}

/// Returns the words of a field that start with a prefix, the word itself first.
pub(crate) fn words_with_prefix(segment: &SegmentReader, field: Field, start: &str) -> Result<Vec<String>, IndexError> {
    let index = segment.inverted_index(field)?;
    let mut words = index.terms().range().ge(start.as_bytes()).into_stream()?;
    let mut found = Vec::new();
    while found.len() < MAX_PREFIX_EXPANSIONS && words.advance() {
        match std::str::from_utf8(words.key()) {
            Ok(word) if word.starts_with(start) => found.push(word.to_owned()),
            Ok(_) | Err(_) => break,
        }
    }
    Ok(found)
}

fn mark_phrase(
    searcher: &Searcher,
    segment: &SegmentReader,
    field: Field,
    text: &str,
    fits: &mut [bool],
) -> Result<(), IndexError> {
    let words = analyzer::split_words(text);
    let terms: Vec<(usize, Term)> = words
        .iter()
        .filter(|word| !word.whole)
        .map(|word| (word.position, Term::from_field_text(field, &word.text)))
        .collect();
    match (terms.as_slice(), words.as_slice()) {
        ([], _) => Ok(()),
        // A single identifier is matched as a whole.
        (_, [whole, ..]) if whole.whole && whole.range.len() == text.trim().len() => {
            mark_term(segment, field, &whole.text, fits)
        }
        ([_], [word, ..]) => mark_term(segment, field, &word.text, fits),
        (_, _) => {
            let phrase = PhraseQuery::new_with_offset(terms);
            let weight = phrase.weight(EnableScoring::disabled_from_searcher(searcher))?;
            let mut docs = weight.scorer(segment, 1.0)?;
            let mut doc = docs.doc();
            while doc != TERMINATED {
                set_match(fits, doc);
                doc = docs.advance();
            }
            Ok(())
        }
    }
}

fn mark_path(segment: &SegmentReader, part: &str, fits: &mut [bool]) -> Result<(), IndexError> {
    let Some(paths) = segment.fast_fields().str("path")? else { return Ok(()) };
    let mut has = Vec::with_capacity(paths.num_terms());
    let mut path = String::new();
    for number in 0..paths.num_terms() as u64 {
        path.clear();
        paths.ord_to_str(number, &mut path)?;
        has.push(path.to_lowercase().contains(part));
    }
    for doc in segment.doc_ids_alive() {
        let number = paths.term_ords(doc).next().and_then(|number| usize::try_from(number).ok());
        if number.and_then(|number| has.get(number)).is_some_and(|has| *has) {
            set_match(fits, doc);
        }
    }
    Ok(())
}

fn mark_changed(segment: &SegmentReader, fits_time: impl Fn(i64) -> bool, fits: &mut [bool]) -> Result<(), IndexError> {
    let modified = segment.fast_fields().i64("modified")?;
    let said = segment.fast_fields().column_opt::<i64>("said")?;
    let session = segment.fast_fields().column_opt::<u64>("session")?;
    let fits_doc = |doc: DocId| {
        let said = said.as_ref().and_then(|said| said.first(doc));
        // A turn of a conversation has its own day; a note with a date has two.
        let is_turn = said.is_some() && session.as_ref().is_some_and(|session| session.first(doc).is_some());
        said.is_some_and(&fits_time) || (!is_turn && modified.first(doc).is_some_and(&fits_time))
    };
    for doc in segment.doc_ids_alive().filter(|doc| fits_doc(*doc)) {
        set_match(fits, doc);
    }
    Ok(())
}
