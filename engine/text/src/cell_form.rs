//! What the text between a cell's fences is, and the Python code that stands for it.

use crate::python_scope::CellNames;
use crate::widget::{WidgetError, WidgetSpec};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What the text between a cell's fences is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellForm {
    /// Code in the kernel's language.
    Code,
    /// A control with its value, as YAML.
    Widget,
}

impl CellForm {
    /// The code that the kernel runs for a cell of this form, of the text between its fences.
    ///
    /// # Errors
    /// It's a widget that can't be read.
    pub fn kernel_code(self, source: &str) -> Result<Cow<'_, str>, WidgetError> {
        match self {
            CellForm::Code => Ok(Cow::Borrowed(source)),
            CellForm::Widget => Ok(Cow::Owned(WidgetSpec::parse(source)?.assignment())),
        }
    }

    /// The names that a Python cell of this form defines and uses.
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
        }
    }
}
