//! The passages that a query finds by words and that have no vector yet. While very many passages wait for a model,
//! these few are read when they are asked for.

use crate::error::IndexError;
use crate::fulltext::{FullTextIndex, embedded_texts, text_hash};
use crate::ranking::{SearchMode, SearchRequest};

impl FullTextIndex {
    /// Returns the texts without a vector of the passages that a query finds first by words, best first, each with its
    /// hash.
    ///
    /// # Errors
    /// Returns an error if the index is damaged.
    pub fn unread_texts(&self, ask: &SearchRequest, passages: usize) -> Result<Vec<(u64, String)>, IndexError> {
        let by_words =
            SearchRequest { mode: SearchMode::Words, vector: None, limit: passages, per_passage: true, ..ask.clone() };
        let hits = self.search(&by_words)?.hits;
        let vectors = self.lock_vectors();
        let texts = hits
            .iter()
            .flat_map(|hit| embedded_texts(hit.kind, hit.is_turn, &hit.title, &hit.heading, &hit.text))
            .map(|text| (text_hash(&text), text));
        Ok(texts.filter(|(hash, _)| vectors.slot(*hash).is_none()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IndexedPassage, NoteText, PassageKind};
    use store::DocId;

    #[test]
    fn what_a_query_finds_first_can_be_read_before_the_rest() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = FullTextIndex::open(folder.path(), "m").expect("an index");
        let turn = IndexedPassage { session: "1".to_owned(), ..IndexedPassage::new(PassageKind::Prose) };
        let plain = IndexedPassage::new(PassageKind::Prose);
        for (passage, text, number) in [(&plain, "a lantern", 0), (&turn, "the lantern glows", 1), (&plain, "soup", 2)]
        {
            let passages = vec![IndexedPassage { text: text.to_owned(), ..passage.clone() }];
            let (note, title) = (DocId([number; 16]), format!("Note {number}"));
            let (volume, path, tags) = (String::new(), format!("{number}.md"), Vec::new());
            index.put_note(&NoteText { note, volume, path, title, tags, modified: 0, key: 0, passages }).expect("kept");
        }
        index.commit().expect("committed");
        let ask = SearchRequest { text: "lantern".to_owned(), limit: 1, ..SearchRequest::default() };
        let unread = index.unread_texts(&ask, 9).expect("readable");
        assert_eq!(unread.len(), 2, "{unread:?}");
        let vectors: Vec<(u64, Vec<f32>)> = unread.iter().map(|(hash, _)| (*hash, vec![0.6, 0.8])).collect();
        index.store_answering_vectors("m", &vectors).expect("ignored");
        assert_eq!(index.vector_count(), 0, "the dimensions aren't known yet");
        index.grow_vectors("m", 2).expect("vectors");
        index.store_answering_vectors("another", &vectors).expect("ignored");
        assert_eq!(index.vector_count(), 0, "these are of another model");
        index.store_answering_vectors("m", &vectors).expect("kept");
        assert_eq!((index.vector_count(), index.missing_vectors().expect("readable").len()), (2, 1));
        assert_eq!(index.unread_texts(&ask, 9), Ok(Vec::new()));
        // Turns are embedded without their title, and their vectors are found, too.
        let asked = SearchRequest { mode: SearchMode::Meaning, vector: Some(vec![0.6, 0.8]), limit: 9, ..ask };
        assert_eq!(index.search(&asked).expect("an answer").hits.len(), 2);
    }
}
