//! Forms of the text between a cell's fences, and the Python code that runs for it.

use crate::python_scope::CellNames;
use crate::sql_cell::{QueryError, SqlCell};
use crate::widget::{WidgetError, WidgetSpec};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Form of the text between a cell's fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellForm {
    /// Code in the kernel's language.
    Code,
    /// A control and its value, as YAML.
    Widget,
    /// A query over the kernel's variables, files and collections, in SQL.
    Query,
}

/// Error that prevents a cell from running, as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellFormError {
    /// The widget can't be read.
    #[error(transparent)]
    Widget(#[from] WidgetError),
    /// The query can't be run.
    #[error(transparent)]
    Query(#[from] QueryError),
}

impl CellForm {
    /// Returns the code that the kernel runs for the text between a cell's fences.
    ///
    /// # Errors
    /// Returns an error if it's a widget that can't be read, or a query that can't be run.
    pub fn kernel_code(self, source: &str) -> Result<Cow<'_, str>, CellFormError> {
        match self {
            CellForm::Code => Ok(Cow::Borrowed(source)),
            CellForm::Widget => Ok(Cow::Owned(WidgetSpec::parse(source)?.assignment())),
            CellForm::Query => Ok(Cow::Owned(SqlCell::parse(source)?.kernel_code(None))),
        }
    }

    /// Returns whether the text between a cell's fences is a query that reads collections.
    pub fn reads_collections(self, source: &str) -> bool {
        self == CellForm::Query && SqlCell::parse(source).is_ok_and(|cell| !cell.collections().is_empty())
    }

    /// Returns the names that a Python cell of this form defines and uses.
    pub fn names(self, source: &str) -> CellNames {
        match self {
            CellForm::Code => CellNames::of(source),
            CellForm::Widget => match WidgetSpec::parse(source) {
                Ok(widget) => {
                    let names = BTreeSet::from([widget.name]);
                    CellNames { defines: names.clone(), surely: names, ..CellNames::default() }
                }
                Err(_) => CellNames { broken: true, ..CellNames::default() },
            },
            CellForm::Query => match SqlCell::parse(source) {
                Ok(cell) => cell.names(),
                Err(_) => CellNames { broken: true, ..CellNames::default() },
            },
        }
    }
}
