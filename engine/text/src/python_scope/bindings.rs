//! Finds the names that a function binds in its own scope.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, Expr, ExprContext, Stmt};
use std::collections::BTreeSet;

/// Returns the name that a pattern itself binds.
pub(super) fn captured_name(pattern: &ast::Pattern) -> Option<&str> {
    match pattern {
        ast::Pattern::MatchStar(star) => star.name.as_deref(),
        ast::Pattern::MatchAs(named) => named.name.as_deref(),
        ast::Pattern::MatchMapping(mapping) => mapping.rest.as_deref(),
        _ => None,
    }
}

/// Names that the body of a function binds in its own scope.
#[derive(Default)]
pub(super) struct LocalBindings {
    pub(super) names: BTreeSet<String>,
    pub(super) globals: BTreeSet<String>,
    /// Names declared `nonlocal`.
    pub(super) elsewhere: BTreeSet<String>,
    /// Number of comprehensions around the code. Inside one, only `:=` binds a name.
    pub(super) comprehended: usize,
}

impl<'a> Visitor<'a> for LocalBindings {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let mut bind = |name: &str| {
            self.names.insert(name.to_owned());
        };
        match stmt {
            Stmt::FunctionDef(function) => bind(&function.name),
            Stmt::ClassDef(class) => bind(&class.name),
            Stmt::Import(import) => {
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    bind(name.split('.').next().unwrap_or(name));
                }
            }
            Stmt::ImportFrom(import) => {
                import.names.iter().for_each(|alias| bind(alias.asname.as_ref().unwrap_or(&alias.name)));
            }
            Stmt::Global(global) => self.globals.extend(global.names.iter().map(ToString::to_string)),
            Stmt::Nonlocal(outer) => self.elsewhere.extend(outer.names.iter().map(ToString::to_string)),
            Stmt::AugAssign(assign) => {
                visitor::walk_stmt(self, stmt);
                if let Expr::Name(name) = &*assign.target {
                    self.names.insert(name.id.to_string());
                }
            }
            _ => visitor::walk_stmt(self, stmt),
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ast::ExceptHandler) {
        let ast::ExceptHandler::ExceptHandler(own) = handler;
        self.names.extend(own.name.as_ref().map(ToString::to_string));
        visitor::walk_except_handler(self, handler);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if matches!(name.ctx, ExprContext::Store | ExprContext::Del) => {
                if self.comprehended == 0 {
                    self.names.insert(name.id.to_string());
                }
            }
            Expr::Named(named) => {
                if let Expr::Name(name) = &*named.target {
                    self.names.insert(name.id.to_string());
                }
                self.visit_expr(&named.value);
            }
            Expr::Lambda(_) => {}
            Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) => {
                self.comprehended += 1;
                visitor::walk_expr(self, expr);
                self.comprehended -= 1;
            }
            _ => visitor::walk_expr(self, expr),
        }
    }

    fn visit_pattern(&mut self, pattern: &'a ast::Pattern) {
        self.names.extend(captured_name(pattern).map(ToOwned::to_owned));
        visitor::walk_pattern(self, pattern);
    }
}
