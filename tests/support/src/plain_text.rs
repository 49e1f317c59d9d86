//! A text as one object of a plain automerge document: what a note would be without blocks. Only `tracebook bench`
//! uses it, to have something to compare a remote edit with.

use automerge::transaction::Transactable;
use automerge::{ActorId, Automerge, AutomergeError, LoadOptions, ObjId, ObjType, ROOT, ReadDoc, TextEncoding};
use store::StoreError;

/// Offsets in bytes, as in notes.
const TEXT_ENCODING: TextEncoding = TextEncoding::Utf8CodeUnit;

/// A document that holds one plain text.
pub struct PlainText {
    doc: Automerge,
    text: ObjId,
}

impl std::fmt::Debug for PlainText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PlainText")
    }
}

impl PlainText {
    /// A document that holds `text`.
    ///
    /// # Errors
    /// automerge's.
    pub fn new(text: &str, actor: ActorId) -> Result<PlainText, StoreError> {
        let mut doc = Automerge::new_with_encoding(TEXT_ENCODING).with_actor(actor);
        let made = doc.transact::<_, _, AutomergeError>(|tx| {
            let object = tx.put_object(ROOT, "text", ObjType::Text)?;
            tx.splice_text(&object, 0, 0, text)?;
            Ok(object)
        });
        let text = made.map_err(|failure| StoreError::Automerge(failure.error))?.result;
        Ok(PlainText { doc, text })
    }

    /// The document of these chunks, as [`PlainText::new`] or any other program with a text named `text` made it.
    ///
    /// # Errors
    /// automerge's; there is no such text.
    pub fn load(chunks: &[Vec<u8>], actor: ActorId) -> Result<PlainText, StoreError> {
        let options = LoadOptions::new().text_encoding(TEXT_ENCODING);
        let doc = Automerge::load_with_options(&chunks.concat(), options)?.with_actor(actor);
        match doc.get(ROOT, "text")? {
            Some((automerge::Value::Object(ObjType::Text), text)) => Ok(PlainText { doc, text }),
            Some(_) | None => Err(StoreError::Record("there is no text in it".to_owned())),
        }
    }

    /// The whole document in one chunk.
    pub fn save(&self) -> Vec<u8> {
        self.doc.save()
    }

    /// The same document for another replica.
    ///
    /// # Errors
    /// automerge's.
    pub fn replica(&self, actor: ActorId) -> Result<PlainText, StoreError> {
        let options = LoadOptions::new().text_encoding(TEXT_ENCODING);
        let doc = Automerge::load_with_options(&self.doc.save(), options)?.with_actor(actor);
        Ok(PlainText { doc, text: self.text.clone() })
    }

    /// Inserts at a byte offset and gives the change to send.
    ///
    /// # Errors
    /// automerge's.
    pub fn insert(&mut self, at: usize, text: &str) -> Result<Vec<u8>, StoreError> {
        let (before, object) = (self.doc.get_heads(), &self.text);
        let made = self.doc.transact::<_, _, AutomergeError>(|tx| tx.splice_text(object, at, 0, text));
        made.map_err(|failure| StoreError::Automerge(failure.error))?;
        Ok(self.doc.save_after(&before))
    }

    /// Takes a change of another replica in.
    ///
    /// # Errors
    /// automerge's.
    pub fn merge(&mut self, change: &[u8]) -> Result<(), StoreError> {
        self.doc.load_incremental(change)?;
        Ok(())
    }

    /// The text.
    ///
    /// # Errors
    /// automerge's.
    pub fn text(&self) -> Result<String, StoreError> {
        Ok(self.doc.text(&self.text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_merge() {
        let mut one = PlainText::new("ac", ActorId::from([1; 16])).expect("made");
        let mut two = one.replica(ActorId::from([2; 16])).expect("loaded");
        let change = two.insert(1, "b").expect("inserted");
        one.merge(&change).expect("merged");
        assert_eq!(one.text().expect("read"), "abc");
    }
}
