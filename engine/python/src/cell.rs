//! A cell of a request: what it runs, and how it is compiled and run so that its last expression has a value.
//!
//! This module sends no messages: it returns the value or the exception as Python objects.

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;
use rustpython_vm as vm;

use vm::bytecode::CodeFlags;
use vm::compiler::{self, Mode};
use vm::scope::Scope;
use vm::{PyObjectRef, PyResult, VirtualMachine};

/// Content of an `execute_request`.
#[derive(Debug, PartialEq)]
pub struct CellRequest {
    /// The code to run.
    pub code: String,
    /// Name of the cell in tracebacks: one line, not empty.
    pub label: String,
    /// Runs the cell for its side effects: no value is shown, nothing is counted. Output and errors are still sent.
    pub silent: bool,
    /// Names removed from the namespace before the run.
    pub forget: Vec<String>,
    /// Inputs and outputs of a pure cell, by which a cached result is found. `None` if the cell isn't pure.
    pub pure: Option<PureCellBindings>,
    /// In kernels that save states: executions, in order, in whose resulting state the cell runs. `None`: the current
    /// state.
    pub after: Option<Vec<String>>,
    /// In kernels that save states: the branch in which the cell runs, which leaves the current state as it is. `None`:
    /// the current branch.
    pub branch: Option<String>,
    /// Path of the script that the cell is, for `__file__`. `None` if it's a cell of a note.
    pub file: Option<String>,
}

/// Names that a pure cell reads and assigns.
#[derive(Debug, PartialEq)]
pub struct PureCellBindings {
    /// Names that the cell reads.
    pub uses: Vec<String>,
    /// Names that the cell assigns.
    pub binds: Vec<String>,
}

impl CellRequest {
    pub(crate) fn new(code: String, label: &str, silent: bool) -> CellRequest {
        let label: String = label.chars().filter(|c| !c.is_control()).take(200).collect();
        let label = if label.trim().is_empty() { "cell".to_owned() } else { label };
        CellRequest { code, label, silent, forget: Vec::new(), pure: None, after: None, branch: None, file: None }
    }

    /// Runs the cell under the file name `file` and returns the value of its last expression, or Python's `None`. With
    /// `true`, the value is a coroutine that returns it, because the cell awaits something. The whole cell is compiled
    /// before any of it runs. With `shows_all`, the values of the expressions before the last are displayed.
    pub(crate) fn run(
        &self,
        file: &str,
        shows_all: bool,
        scope: Scope,
        vm: &VirtualMachine,
    ) -> PyResult<(PyObjectRef, bool)> {
        let mode = if ends_with_expression(&self.code) { Mode::BlockExpr } else { Mode::Exec };
        let options = compiler::CompileOpts { allow_top_level_await: true, ..vm.compile_opts() };
        let shown = if shows_all { with_shown_expressions(&self.code) } else { None };
        let code = vm.compile_with_opts(shown.as_deref().unwrap_or(&self.code), mode, file, options);
        let code = code.map_err(|error| error.into_pyexception(vm, Some(&self.code)))?;
        let awaits = code.flags.contains(CodeFlags::COROUTINE);
        Ok((vm.run_code_obj(code, scope)?, awaits))
    }
}

/// Returns whether the cell ends in an expression whose value is shown: not in a statement, and not in `;`.
///
/// RustPython's own `BlockExpr` returns the function or class when a cell ends in a definition, and doesn't handle `;`.
fn ends_with_expression(code: &str) -> bool {
    let file = compiler::core::SourceFileBuilder::new("", code).finish();
    // Too deeply nested brackets: dropping their syntax tree would exhaust the stack. The compiler reports the error.
    if compiler::pre_parse_source_error(&file).is_err() {
        return false;
    }
    let Ok(module) = ruff_python_parser::parse_module(code) else { return false };
    let Some(Stmt::Expr(last)) = module.syntax().body.last() else { return false };
    let rest = code.get(last.range().end().to_usize()..).unwrap_or_default();
    !matches!(*last.value, Expr::IpyEscapeCommand(_)) && !rest.trim_start().starts_with(';')
}

/// Returns a cell's code in which the expressions before the last are displayed. `None` if it isn't valid.
fn with_shown_expressions(code: &str) -> Option<String> {
    let file = compiler::core::SourceFileBuilder::new("", code).finish();
    compiler::pre_parse_source_error(&file).is_ok().then_some(())?;
    let module = ruff_python_parser::parse_module(code).ok()?;
    let (_, before) = module.syntax().body.split_last()?;
    let mut shown = String::with_capacity(code.len());
    let mut end = 0;
    for statement in before {
        let (start, stop) = (statement.range().start().to_usize(), statement.range().end().to_usize());
        if matches!(statement, Stmt::Expr(_)) && !code[stop..].trim_start_matches([' ', '\t']).starts_with(';') {
            shown += &code[end..start];
            shown += &format!("__import__(\"_tracebook\").show(({}))", &code[start..stop]);
            end = stop;
        }
    }
    Some(shown + &code[end..])
}

#[cfg(test)]
mod tests {
    use super::{CellRequest, ends_with_expression, with_shown_expressions};

    #[test]
    fn a_value_is_an_expression_at_the_end_without_a_semicolon() {
        for yes in ["1", "x = 1\nx", "1; 2", "'doc'", "(x)  # c", "f(\n1)\n\n# end;", "[\n1,\n]"] {
            assert!(ends_with_expression(yes), "{yes}");
        }
        for no in ["", "# c", "x = 1", "1;", "(1) ;  # c", "def f(): pass", "if x:\n    5", "x = (1,\n", "%time 1"] {
            assert!(!ends_with_expression(no), "{no}");
        }
        assert!(!ends_with_expression(&"(".repeat(100_000)));
    }

    #[test]
    fn expressions_before_the_last_are_shown() {
        let shown = with_shown_expressions("x = 1\nx\nf(\n  x)\nx;\nif x:\n    x\nx").expect("valid");
        let show = "__import__(\"_tracebook\").show";
        assert_eq!(shown, format!("x = 1\n{show}((x))\n{show}((f(\n  x)))\nx;\nif x:\n    x\nx"));
        assert_eq!(with_shown_expressions("x = ("), None);
    }

    #[test]
    fn a_label_is_one_line() {
        assert_eq!(CellRequest::new(String::new(), "a\nb", false).label, "ab");
        assert_eq!(CellRequest::new(String::new(), " ", false).label, "cell");
    }
}
