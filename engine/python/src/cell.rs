//! One cell: what a request asks to run, and how it is compiled and run so that its last expression has a value.
//!
//! It decides nothing about messages: it returns a value or the exception, both still Python's.

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;
use rustpython_vm as vm;

use vm::bytecode::CodeFlags;
use vm::compiler::{self, Mode};
use vm::scope::Scope;
use vm::{PyObjectRef, PyResult, VirtualMachine};

/// What an `execute_request` asks for.
#[derive(Debug, PartialEq)]
pub struct CellRequest {
    /// The code to run.
    pub code: String,
    /// How tracebacks call the cell. One line, not empty.
    pub label: String,
    /// Runs for its effects alone: no value is shown, nothing is counted. Prints and errors are still sent.
    pub silent: bool,
    /// Names that are taken out of the namespace before.
    pub forget: Vec<String>,
    /// For a pure cell: its inputs and outputs, by which a cached result is found.
    pub pure: Option<PureCellBindings>,
    /// Where states are saved: the executions whose state it is to run in, in their order. `None`: the current state.
    pub after: Option<Vec<String>>,
}

/// Names that a pure cell reads and assigns.
#[derive(Debug, PartialEq)]
pub struct PureCellBindings {
    /// Names that it reads.
    pub uses: Vec<String>,
    /// Names that it assigns.
    pub binds: Vec<String>,
}

impl CellRequest {
    pub(crate) fn new(code: String, label: &str, silent: bool) -> CellRequest {
        let label: String = label.chars().filter(|c| !c.is_control()).take(200).collect();
        let label = if label.trim().is_empty() { "cell".to_owned() } else { label };
        CellRequest { code, label, silent, forget: Vec::new(), pure: None, after: None }
    }

    /// Runs the cell under the file name `file` and returns the value of its last expression, else None; with `true`,
    /// a coroutine that does so: it awaits something. All of it is compiled before any of it runs.
    pub(crate) fn run(&self, file: &str, scope: Scope, vm: &VirtualMachine) -> PyResult<(PyObjectRef, bool)> {
        let mode = if ends_with_expression(&self.code) { Mode::BlockExpr } else { Mode::Exec };
        let options = compiler::CompileOpts { allow_top_level_await: true, ..vm.compile_opts() };
        let code = vm.compile_with_opts(&self.code, mode, file, options);
        let code = code.map_err(|error| error.into_pyexception(vm, Some(&self.code)))?;
        let awaits = code.flags.contains(CodeFlags::COROUTINE);
        Ok((vm.run_code_obj(code, scope)?, awaits))
    }
}

/// Whether the cell ends in an expression whose value is wanted: not in a statement, and not in `;`.
///
/// RustPython's own `BlockExpr` answers with the function or class where a cell ends in a definition, and knows no `;`.
fn ends_with_expression(code: &str) -> bool {
    let file = compiler::core::SourceFileBuilder::new("", code).finish();
    // Brackets nested so deep that dropping their tree would exhaust the stack: compiling will say it.
    if compiler::pre_parse_source_error(&file).is_err() {
        return false;
    }
    let Ok(module) = ruff_python_parser::parse_module(code) else { return false };
    let Some(Stmt::Expr(last)) = module.syntax().body.last() else { return false };
    let rest = code.get(last.range().end().to_usize()..).unwrap_or_default();
    !matches!(*last.value, Expr::IpyEscapeCommand(_)) && !rest.trim_start().starts_with(';')
}

#[cfg(test)]
mod tests {
    use super::{CellRequest, ends_with_expression};

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
    fn a_label_is_one_line() {
        assert_eq!(CellRequest::new(String::new(), "a\nb", false).label, "ab");
        assert_eq!(CellRequest::new(String::new(), " ", false).label, "cell");
    }
}
