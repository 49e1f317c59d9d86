//! Search behind one interface: full text (tantivy) and vectors, over what `store` holds.
//!
//! Words only so far: the search issue fills it. What it will never be is a source of truth (it can be thrown away and
//! made again from the documents), or run on the thread that draws.
