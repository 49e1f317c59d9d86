//! Exports a note as a notebook. Cells unchanged since the import are exported unchanged; others keep their id and
//! metadata.

use crate::note_layout::{
    CellPlacement, CellShape, NotebookFence, NotebookOriginal, RAW_FENCE_LANGUAGE, is_json, notebook_language,
    top_level_fences,
};
use crate::notebook_file::{fresh_id, join_text, split_lines};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::ops::Range;
use store::{BlobHash, CellOutput, Execution, OutputBody};
use text::text_edit;

/// Latest run of a code cell in the note.
#[derive(Clone, Copy, Debug)]
pub struct CellRun<'a> {
    /// Byte offset of the cell's fence in the text.
    pub at: usize,
    /// The cell's latest execution.
    pub execution: Option<&'a Execution>,
}

/// Converts a note's text and the runs of its cells to a notebook. `blob` reads outputs that are too large for the
/// note.
pub fn export_notebook(
    text: &str,
    ran: &[CellRun<'_>],
    kept: Option<&NotebookOriginal>,
    blob: &dyn Fn(BlobHash) -> Option<Vec<u8>>,
) -> Value {
    let mut file = kept.map_or_else(empty_notebook, |kept| kept.notebook.clone());
    let language = notebook_language(&file);
    let old = file["cells"].as_array().cloned().unwrap_or_default();
    let minor = file["nbformat_minor"].as_i64().unwrap_or(5);
    let desk = NotebookWriter { text, runs: ran, original: kept, old_cells: &old, language: &language, blob };
    let mut cells = desk.build_cells();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    taken.extend(cells.iter().filter_map(|cell| cell["id"].as_str()).map(ToOwned::to_owned));
    if minor >= 5 {
        for cell in cells.iter_mut().filter_map(Value::as_object_mut).filter(|cell| !cell.contains_key("id")) {
            let id = fresh_id(&cell["source"].to_string(), &taken);
            taken.insert(id.clone());
            cell.insert("id".to_owned(), id.into());
        }
    }
    file["cells"] = cells.into();
    file
}

/// Returns an empty notebook, for a note that wasn't imported from one.
fn empty_notebook() -> Value {
    json!({
        "cells": [],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    })
}

/// A piece of the text that becomes a cell.
#[derive(Clone, Debug, PartialEq)]
struct NotebookPiece {
    range: Range<usize>,
    kind: &'static str,
    source: String,
}

struct NotebookWriter<'a> {
    text: &'a str,
    runs: &'a [CellRun<'a>],
    original: Option<&'a NotebookOriginal>,
    old_cells: &'a [Value],
    language: &'a str,
    blob: &'a dyn Fn(BlobHash) -> Option<Vec<u8>>,
}

impl NotebookWriter<'_> {
    /// Builds the notebook's cells: unchanged ones, and new or edited text between them.
    fn build_cells(&self) -> Vec<Value> {
        let places = self.original.map_or(&[][..], |kept| kept.places.as_slice());
        let before = self.original.map_or("", |kept| kept.text.as_str());
        let splices = text_edit::compute_edits(before, self.text);
        // Maps an offset in the old text to the new text. Text inserted at the offset itself counts as before it.
        let moved = |at: usize| {
            let mut to = at;
            for splice in splices.iter().take_while(|splice| splice.at <= at) {
                to = if splice.at + splice.delete <= at {
                    to + splice.insert.len() - splice.delete
                } else {
                    to - (at - splice.at) + splice.insert.len()
                };
            }
            to
        };
        let touched = |range: &Range<usize>| {
            splices.iter().any(|splice| {
                let end = splice.at + splice.delete;
                (splice.at > range.start || end > range.start) && splice.at < range.end
            })
        };
        let mut cells = Vec::new();
        let mut at = 0;
        let mut edited: Vec<(usize, Range<usize>)> = Vec::new();
        for (index, place) in places.iter().enumerate() {
            let start = moved(place.range.start);
            if touched(&place.range) {
                edited.push((index, start..moved(place.range.end)));
                continue;
            }
            self.push_changed_cells(at..start.max(at), &edited, places, &mut cells);
            edited.clear();
            at = (start + place.range.len()).max(at);
            cells.push(self.unchanged_cell(index, place, start));
        }
        self.push_changed_cells(at..self.text.len(), &edited, places, &mut cells);
        cells
    }

    fn unchanged_cell(&self, index: usize, place: &CellPlacement, start: usize) -> Value {
        let mut cell = self.old_cells.get(index).cloned().unwrap_or_default();
        if cell["cell_type"] == "code"
            && let Some(ran) = self.runs.iter().find(|ran| ran.at == start)
        {
            self.set_outputs(&mut cell, ran.execution, place);
        }
        cell
    }

    /// Adds new or edited text between two unchanged cells.
    fn push_changed_cells(
        &self,
        range: Range<usize>,
        edited: &[(usize, Range<usize>)],
        places: &[CellPlacement],
        cells: &mut Vec<Value>,
    ) {
        let ends: Vec<usize> = edited
            .iter()
            .filter(|(index, _)| places[*index].shape == CellShape::Prose)
            .map(|(_, range)| range.end)
            .collect();
        let mut free: Vec<&(usize, Range<usize>)> = edited.iter().collect();
        for piece in self.split_pieces(range, &ends) {
            let kind = |index: usize| self.old_cells.get(index).and_then(|cell| cell["cell_type"].as_str());
            let overlap = |other: &Range<usize>| {
                other.end.min(piece.range.end).saturating_sub(other.start.max(piece.range.start))
            };
            // When a cell between two similar ones is cut, both look edited. An identical source shows which one is
            // left.
            let same =
                |index: usize| self.old_cells[index].get("source").and_then(join_text).as_ref() == Some(&piece.source);
            let best = (0..free.len())
                .filter(|at| kind(free[*at].0) == Some(piece.kind))
                .max_by_key(|at| (same(free[*at].0), overlap(&free[*at].1), std::cmp::Reverse(*at)));
            let chosen = best.map(|at| free[at].0);
            // Cells keep their order: those before the chosen one were deleted.
            if let Some(at) = best {
                free.drain(..=at);
            }
            cells.push(self.changed_cell(&piece, chosen, places));
        }
    }

    fn changed_cell(&self, piece: &NotebookPiece, chosen: Option<usize>, places: &[CellPlacement]) -> Value {
        let mut cell = match chosen.and_then(|index| self.old_cells.get(index)) {
            Some(cell) => cell.clone(),
            None if piece.kind == "code" => {
                json!({"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": []})
            }
            None => json!({"cell_type": piece.kind, "metadata": {}}),
        };
        let whole = cell["source"].is_string();
        if cell.get("source").and_then(join_text).is_none_or(|source| source != piece.source) {
            cell["source"] = if whole { piece.source.as_str().into() } else { split_lines(&piece.source) };
        }
        if piece.kind == "code"
            && let Some(ran) = self.runs.iter().find(|ran| ran.at == piece.range.start)
        {
            let none = CellPlacement { range: 0..0, shape: CellShape::Fence, execution: None };
            self.set_outputs(&mut cell, ran.execution, chosen.map_or(&none, |index| &places[index]));
        }
        cell
    }

    /// Sets a cell's outputs to those of its last run, unless they are the imported ones.
    fn set_outputs(&self, cell: &mut Value, execution: Option<&Execution>, place: &CellPlacement) {
        if execution.map(|execution| execution.id) == place.execution {
            return;
        }
        let outputs = execution.map(|execution| execution.outputs.as_slice()).unwrap_or_default();
        cell["outputs"] = outputs.iter().map(|output| self.output_json(output)).collect();
        cell["execution_count"] = execution.and_then(|execution| execution.count).map_or(Value::Null, Value::from);
    }

    fn output_json(&self, output: &CellOutput) -> Value {
        let mut value = serde_json::to_value(&output.body).unwrap_or_default();
        let whole = output.whole.as_ref().and_then(|whole| {
            let bytes = (self.blob)(whole.blob)?;
            Some((whole.mime.as_str(), String::from_utf8(bytes).ok()?))
        });
        match &output.body {
            OutputBody::Stream { text, .. } => {
                value["text"] = split_lines(whole.as_ref().map_or(text, |(_, text)| text));
            }
            OutputBody::ExecuteResult { .. } | OutputBody::DisplayData { .. } => {
                let mut data: Map<String, Value> = value["data"].as_object().cloned().unwrap_or_default();
                if let Some((mime, text)) = whole {
                    let json = is_json(mime).then(|| serde_json::from_str(&text).ok()).flatten();
                    data.insert(mime.to_owned(), json.unwrap_or(Value::String(text)));
                }
                for (mime, value) in &mut data {
                    // Jupyter writes texts as lists of lines, and base64 as one string.
                    let text = value.as_str().filter(|_| mime.starts_with("text/") || mime == "image/svg+xml");
                    if let Some(text) = text {
                        *value = split_lines(text);
                    }
                }
                value["data"] = data.into();
            }
            OutputBody::Error { .. } => {}
        }
        value
    }

    /// Splits a range of the text into fences that are cells and the prose between them, which is cut at `ends`.
    fn split_pieces(&self, range: Range<usize>, ends: &[usize]) -> Vec<NotebookPiece> {
        let Some(part) = self.text.get(range.clone()) else { return Vec::new() };
        let mut pieces = Vec::new();
        let mut at = 0;
        if range.start == 0
            && let Some(end) = properties_end(part)
        {
            pieces.push(NotebookPiece { range: 0..end, kind: "raw", source: part[..end].trim_end().to_owned() });
            at = end;
        }
        for fence in top_level_fences(part) {
            let Some(kind) = self.fence_kind(&fence).filter(|_| fence.range.start >= at) else { continue };
            self.push_prose_pieces(part, at..fence.range.start, range.start, ends, &mut pieces);
            let NotebookFence { range: inner, code, .. } = fence;
            at = inner.end;
            let place = range.start + inner.start..range.start + inner.end;
            pieces.push(NotebookPiece { range: place, kind, source: code.to_owned() });
        }
        self.push_prose_pieces(part, at..part.len(), range.start, ends, &mut pieces);
        pieces
    }

    fn fence_kind(&self, fence: &NotebookFence<'_>) -> Option<&'static str> {
        let language = fence.language.to_lowercase();
        let python = matches!(language.as_str(), "python" | "python3" | "py") && self.language == "python";
        match language.as_str() {
            RAW_FENCE_LANGUAGE => Some("raw"),
            _ if python || language == self.language => Some("code"),
            _ => None,
        }
    }

    fn push_prose_pieces(
        &self,
        part: &str,
        range: Range<usize>,
        offset: usize,
        ends: &[usize],
        pieces: &mut Vec<NotebookPiece>,
    ) {
        let mut cuts: Vec<usize> = ends.iter().filter_map(|end| end.checked_sub(offset)).collect();
        // Cut between paragraphs only: an edit may have moved the old end into the middle of a line.
        cuts.retain(|cut| range.contains(cut) && part.is_char_boundary(*cut) && part[..*cut].ends_with("\n\n"));
        cuts.push(range.end);
        let mut start = range.start;
        for cut in cuts {
            let piece = &part[start..cut];
            let source = piece.trim_matches(['\n', '\r']);
            if !source.trim().is_empty() {
                let range = offset + start..offset + cut;
                pieces.push(NotebookPiece { range, kind: "markdown", source: source.to_owned() });
            }
            start = cut;
        }
    }
}

/// Returns the offset after the front matter of a note, or `None` if it has none.
fn properties_end(text: &str) -> Option<usize> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == "---")?;
    let mut at = first.len();
    for line in lines {
        at += line.len();
        if line.trim_end() == "---" {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note_layout::import_notebook;
    use proptest::prelude::*;

    fn file(cells: &[(&str, String)]) -> Value {
        let cells: Vec<Value> = cells
            .iter()
            .enumerate()
            .map(|(at, (kind, source))| {
                let mut cell = json!({"cell_type": kind, "source": split_lines(source), "metadata": {"n": at}});
                if *kind == "code" {
                    cell["outputs"] = json!([]);
                    cell["execution_count"] = Value::Null;
                }
                cell
            })
            .collect();
        json!({"nbformat": 4, "nbformat_minor": 4, "metadata": {"m": 1}, "cells": cells})
    }

    fn ran(text: &str) -> Vec<CellRun<'_>> {
        text::markdown::cell_ranges(text).into_iter().map(|cell| CellRun { at: cell.start, execution: None }).collect()
    }

    fn sources(file: &Value) -> Vec<(String, String, Option<u64>)> {
        let cells = file["cells"].as_array().expect("cells").iter();
        cells
            .map(|cell| {
                let kind = cell["cell_type"].as_str().expect("a kind").to_owned();
                (kind, join_text(&cell["source"]).expect("words"), cell["metadata"]["n"].as_u64())
            })
            .collect()
    }

    #[test]
    fn what_was_edited_keeps_its_place() {
        let notebook = file(&[
            ("markdown", "# One\n\nwords".to_owned()),
            ("markdown", "Two".to_owned()),
            ("code", "x = 1".to_owned()),
            ("code", "x + 1".to_owned()),
            ("raw", "raw".to_owned()),
        ]);
        let laid = import_notebook(notebook);
        let text = laid.text.replace("Two", "Two and a half").replace("x + 1", "x + 2");
        let text = text.replace("```raw", "new prose\n\n```python\nnew\n```\n\n```raw");
        let made = sources(&notebook_of(&text, &laid.original));
        let cell = |kind: &str, source: &str, n: Option<u64>| (kind.to_owned(), source.to_owned(), n);
        assert_eq!(
            made,
            [
                cell("markdown", "# One\n\nwords", Some(0)),
                cell("markdown", "Two and a half", Some(1)),
                cell("code", "x = 1", Some(2)),
                cell("code", "x + 2", Some(3)),
                cell("markdown", "new prose", None),
                cell("code", "new", None),
                cell("raw", "raw", Some(4)),
            ]
        );
        let text = laid.text.replace("```python\nx = 1\n```\n\n", "");
        let numbers: Vec<Option<u64>> =
            sources(&notebook_of(&text, &laid.original)).into_iter().map(|(_, _, number)| number).collect();
        assert_eq!(numbers, [Some(0), Some(1), Some(3), Some(4)]);
    }

    fn notebook_of(text: &str, kept: &NotebookOriginal) -> Value {
        export_notebook(text, &ran(text), Some(kept), &|_| None)
    }

    #[test]
    fn a_note_that_never_was_a_notebook() {
        let text = "---\ntags: [a]\n---\n# T\n\nwords\n\n```python\n1\n```\n\n```js\nno\n```\n";
        let made = export_notebook(text, &ran(text), None, &|_| None);
        let kinds: Vec<(String, String)> = sources(&made).into_iter().map(|(kind, source, _)| (kind, source)).collect();
        let cell = |kind: &str, source: &str| (kind.to_owned(), source.to_owned());
        assert_eq!(
            kinds,
            [
                cell("raw", "---\ntags: [a]\n---"),
                cell("markdown", "# T\n\nwords"),
                cell("code", "1"),
                cell("markdown", "```js\nno\n```"),
            ]
        );
        assert!(
            nbformat::parse_notebook(&made.to_string()).is_ok_and(|made| matches!(made, nbformat::Notebook::V4(_)))
        );
    }

    proptest! {
        #[test]
        fn untouched_comes_back(
            cells in prop::collection::vec(
                (prop::sample::select(vec!["markdown", "code", "raw"]),
                 "(\\PC|\n|\r\n|```|~~~|```python\n|- |> |# |<!--|-->|<pre>|---\n| ){0,12}"),
                0..8,
            )
        ) {
            let file = file(&cells);
            let laid = import_notebook(file.clone());
            let kept = NotebookOriginal::from_bytes(&laid.original.to_bytes()).expect("kept");
            prop_assert_eq!(export_notebook(&laid.text, &ran(&laid.text), Some(&kept), &|_| None), file);
        }

        #[test]
        fn an_edit_of_one_cell_leaves_the_others(
            at in 0_usize..5, word in "[a-z ]{1,9}", deleted in any::<bool>(),
        ) {
            let names = ["markdown", "code", "markdown", "code", "raw"];
            let cells: Vec<(&str, String)> =
                names.iter().enumerate().map(|(at, kind)| (*kind, format!("cell {at} of its own"))).collect();
            let laid = import_notebook(file(&cells));
            let old = format!("cell {at} of its own");
            let new = if deleted { format!("cell {at} of") } else { format!("{old}{}", word.trim_end()) };
            let text = laid.text.replace(&old, &new);
            let made = sources(&notebook_of(&text, &laid.original));
            prop_assert_eq!(made.len(), 5);
            for (index, (kind, source, number)) in made.into_iter().enumerate() {
                prop_assert_eq!(&kind, names[index]);
                prop_assert_eq!(number, Some(index as u64));
                prop_assert_eq!(source == cells[index].1, index != at || new == old);
            }
        }
    }
}
