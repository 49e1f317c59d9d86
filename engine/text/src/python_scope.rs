//! Finds the names that a cell defines and uses by analyzing its code, without running it.
//!
//! Follows Python's scopes as in the reference: functions, classes, comprehensions, `global` and `nonlocal`, type
//! parameters. Code whose names can't be known (`exec`, `from x import *`, a magic) is reported as such. Changes
//! through another name for the same object, or in a function that receives it, aren't detected.

mod bindings;
mod limits;

pub use limits::is_shallow;

use bindings::{LocalBindings, captured_name};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, Expr, ExprContext, IpyEscapeKind, Stmt};
use ruff_python_parser::{Mode, ParseOptions, parse};
use std::collections::BTreeSet;
use std::panic::catch_unwind;

/// Maximum size of analyzed code. Longer or too deeply nested code may use and define any name.
const MAX_CODE_BYTES: usize = 65_536;
/// Maximum length of the name of a variable that a widget or a query binds.
const MAX_VARIABLE_NAME_BYTES: usize = 100;
/// Stack size for parsing code of [`MAX_CODE_BYTES`] bytes, however deeply nested.
const PARSE_STACK_BYTES: usize = 128 << 20;
/// Maximum size of code that is analyzed on the current stack.
const MAX_INLINE_ANALYSIS_BYTES: usize = 512;

/// Methods of lists, sets, dictionaries and deques that mutate them.
const MUTATING_METHODS: [&str; 20] = [
    "add",
    "append",
    "appendleft",
    "clear",
    "difference_update",
    "discard",
    "extend",
    "extendleft",
    "insert",
    "intersection_update",
    "pop",
    "popitem",
    "popleft",
    "remove",
    "reverse",
    "rotate",
    "setdefault",
    "sort",
    "symmetric_difference_update",
    "update",
];

/// Names that a cell defines, uses and changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellNames {
    /// Names bound at the top level, or in a function by `global`.
    pub defines: BTreeSet<String>,
    /// Names among `defines` that are bound unconditionally.
    pub surely: BTreeSet<String>,
    /// Names used before the cell itself has bound them unconditionally.
    pub uses: BTreeSet<String>,
    /// Names changed in place: `x[0] = …`, `x.a = …`, `x += …`, `x.append(…)`.
    pub changes: BTreeSet<String>,
    /// Names that functions use when they are called, by this cell or one below.
    pub later: BTreeSet<String>,
    /// Names that functions bind or change when they are called.
    pub later_changes: BTreeSet<String>,
    /// Whether the cell may use any name.
    pub uses_any: bool,
    /// Whether the cell may bind or change any name.
    pub defines_any: bool,
    /// Whether the code isn't valid Python.
    pub broken: bool,
}

impl CellNames {
    /// Analyzes the code of a cell.
    pub fn of(code: &str) -> CellNames {
        if code.len() > MAX_CODE_BYTES || !is_shallow(code) {
            return CellNames { uses_any: true, defines_any: true, ..CellNames::default() };
        }
        // A panic of the parser, as on `x = ?`, must only affect this cell.
        let caught =
            || catch_unwind(|| analyze(code)).unwrap_or_else(|_| CellNames { broken: true, ..CellNames::default() });
        if code.len() <= MAX_INLINE_ANALYSIS_BYTES { caught() } else { stacker::grow(PARSE_STACK_BYTES, caught) }
    }

    /// Returns the names that the cell uses from other cells, including those in functions that it only defines.
    pub fn external_names(&self) -> BTreeSet<String> {
        self.uses.union(&self.later).filter(|name| !self.defines.contains(*name)).cloned().collect()
    }
}

/// Returns whether a text is a valid variable name, by Python's own grammar.
pub fn is_variable_name(name: &str) -> bool {
    let letters = name.chars().all(|letter| letter == '_' || letter.is_alphanumeric());
    if name.is_empty() || name.len() > MAX_VARIABLE_NAME_BYTES || !letters {
        return false;
    }
    let names = CellNames::of(&format!("{name} = 0\n"));
    !names.broken && names.surely.len() == 1 && names.surely.contains(name)
}

fn analyze(code: &str) -> CellNames {
    let Ok(parsed) = parse(code, ParseOptions::from(Mode::Ipython)) else {
        return CellNames { broken: true, ..CellNames::default() };
    };
    let ast::Mod::Module(module) = parsed.syntax() else { return CellNames::default() };
    let mut reader = NameReader::default();
    reader.visit_body(&module.body);
    let mut names = reader.names;
    // A function that is called in the cell that defines it uses its names there.
    names.uses.extend(names.later.difference(&names.defines).cloned());
    names.surely = reader.bound;
    names
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BindingKind {
    Function,
    Class,
    Inner,
}

/// A scope below the top level.
#[derive(Debug)]
struct PythonScope {
    kind: BindingKind,
    locals: BTreeSet<String>,
    globals: BTreeSet<String>,
}

#[derive(Default)]
struct NameReader {
    names: CellNames,
    scopes: Vec<PythonScope>,
    /// Names bound unconditionally at the top level so far.
    bound: BTreeSet<String>,
}

impl NameReader {
    /// Returns whether a name refers to a global of the cell here.
    fn is_global(&self, name: &str) -> bool {
        for (depth, scope) in self.scopes.iter().rev().enumerate() {
            if scope.globals.contains(name) {
                return true;
            }
            let seen = scope.kind != BindingKind::Class || depth == 0;
            if seen && scope.locals.contains(name) {
                return false;
            }
        }
        true
    }

    fn in_function(&self) -> bool {
        self.scopes.iter().any(|scope| scope.kind == BindingKind::Function)
    }

    fn record_use(&mut self, name: &str) {
        if !self.is_global(name) {
            return;
        }
        if self.in_function() {
            self.names.later.insert(name.to_owned());
        } else if !self.bound.contains(name) {
            self.names.uses.insert(name.to_owned());
        }
    }

    /// Binds a name in the current scope. With `walrus`, it's bound outside of any comprehension.
    fn bind_name(&mut self, name: &str, walrus: bool) {
        let at = if walrus {
            self.scopes.iter().rposition(|scope| scope.kind != BindingKind::Inner)
        } else {
            self.scopes.len().checked_sub(1)
        };
        match at {
            None => {
                self.names.defines.insert(name.to_owned());
                self.bound.insert(name.to_owned());
            }
            Some(at) if self.scopes[at].globals.contains(name) => {
                self.names.defines.insert(name.to_owned());
                if self.in_function() {
                    self.names.later_changes.insert(name.to_owned());
                } else {
                    self.bound.insert(name.to_owned());
                }
            }
            Some(at) => {
                self.scopes[at].locals.insert(name.to_owned());
            }
        }
    }

    fn record_mutation(&mut self, name: &str) {
        if !self.is_global(name) {
            return;
        }
        let names = if self.in_function() { &mut self.names.later_changes } else { &mut self.names.changes };
        names.insert(name.to_owned());
    }

    /// Returns the name of the object that a chain of attributes and items starts from, if it has one.
    fn base_name(expr: &Expr) -> Option<&str> {
        let mut expr = expr;
        loop {
            expr = match expr {
                Expr::Attribute(inner) => &inner.value,
                Expr::Subscript(inner) => &inner.value,
                Expr::Name(name) => return Some(name.id.as_str()),
                _ => return None,
            };
        }
    }

    /// Runs `visit` on code that may not run, so that its bindings don't count as unconditional. Returns the names
    /// bound at its end.
    fn scan_conditional(&mut self, visit: impl FnOnce(&mut Self)) -> BTreeSet<String> {
        let before = self.bound.clone();
        visit(self);
        std::mem::replace(&mut self.bound, before)
    }

    fn merge_branches(&mut self, ends: Vec<BTreeSet<String>>) {
        let mut ends = ends.into_iter();
        if let Some(first) = ends.next() {
            self.bound = ends.fold(first, |all, end| all.intersection(&end).cloned().collect());
        }
    }

    fn scan_function(&mut self, parameters: Option<&ast::Parameters>, body: FunctionBody<'_>) {
        let mut locals = BTreeSet::new();
        for parameter in parameters.into_iter().flat_map(ast::Parameters::iter) {
            locals.insert(parameter.name().to_string());
        }
        let mut own = LocalBindings { names: locals, ..LocalBindings::default() };
        match body {
            FunctionBody::Statements(body) => own.visit_body(body),
            FunctionBody::Expression(body) => own.visit_expr(body),
        }
        let LocalBindings { mut names, globals, elsewhere, .. } = own;
        names.retain(|name| !globals.contains(name) && !elsewhere.contains(name));
        self.scopes.push(PythonScope { kind: BindingKind::Function, locals: names, globals });
        let before = self.bound.clone();
        match body {
            FunctionBody::Statements(body) => self.visit_body(body),
            FunctionBody::Expression(body) => self.visit_expr(body),
        }
        self.bound = before;
        self.scopes.pop();
    }

    /// Runs `visit` in the scope of type parameters, which is around a function, a class or an alias.
    fn with_type_params(&mut self, types: Option<&ast::TypeParams>, visit: impl FnOnce(&mut Self)) {
        let Some(types) = types else { return visit(self) };
        let names = types.type_params.iter().map(|param| param.name().to_string()).collect();
        self.scopes.push(PythonScope { kind: BindingKind::Inner, locals: names, globals: BTreeSet::new() });
        self.visit_type_params(types);
        visit(self);
        self.scopes.pop();
    }

    fn scan_comprehension(&mut self, generators: &[ast::Comprehension], visit: impl FnOnce(&mut Self)) {
        let Some((first, rest)) = generators.split_first() else { return };
        // The first iterable is evaluated in the enclosing scope.
        self.visit_expr(&first.iter);
        self.scopes.push(PythonScope { kind: BindingKind::Inner, locals: BTreeSet::new(), globals: BTreeSet::new() });
        self.visit_expr(&first.target);
        first.ifs.iter().for_each(|test| self.visit_expr(test));
        for generator in rest {
            self.visit_expr(&generator.iter);
            self.visit_expr(&generator.target);
            generator.ifs.iter().for_each(|test| self.visit_expr(test));
        }
        visit(self);
        self.scopes.pop();
    }

    fn scan_call(&mut self, call: &ast::ExprCall) {
        match &*call.func {
            Expr::Name(name) if self.is_global(&name.id) && !self.names.defines.contains(name.id.as_str()) => {
                match name.id.as_str() {
                    "exec" | "globals" | "get_ipython" => {
                        self.names.uses_any = true;
                        self.names.defines_any = true;
                    }
                    "eval" | "locals" | "vars" | "dir" => self.names.uses_any = true,
                    "setattr" | "delattr" => {
                        if let Some(base) = call.arguments.args.first().and_then(Self::base_name) {
                            self.record_mutation(base);
                        }
                    }
                    _ => {}
                }
            }
            Expr::Attribute(method) if MUTATING_METHODS.contains(&method.attr.as_str()) => {
                if let Some(base) = Self::base_name(&method.value) {
                    self.record_mutation(base);
                }
            }
            _ => {}
        }
    }

    fn scan_ipython_escape(&mut self, kind: IpyEscapeKind, value: &str) {
        let harmless = [
            "alias",
            "autoreload",
            "cd",
            "conda",
            "config",
            "env",
            "load_ext",
            "matplotlib",
            "pip",
            "pwd",
            "reload_ext",
        ];
        let word = value.split_whitespace().next().unwrap_or_default();
        // The rest of the cell is Python as always.
        let is_timer = kind == IpyEscapeKind::Magic2 && matches!(word, "time" | "timeit");
        if matches!(kind, IpyEscapeKind::Magic | IpyEscapeKind::Magic2) && !harmless.contains(&word) && !is_timer {
            self.names.uses_any = true;
            self.names.defines_any = true;
        }
    }
}

#[derive(Clone, Copy)]
enum FunctionBody<'a> {
    Statements(&'a [Stmt]),
    Expression(&'a Expr),
}

impl<'a> Visitor<'a> for NameReader {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => {
                function.decorator_list.iter().for_each(|decorator| self.visit_decorator(decorator));
                for parameter in function.parameters.iter_non_variadic_params() {
                    parameter.default.iter().for_each(|default| self.visit_expr(default));
                }
                self.with_type_params(function.type_params.as_deref(), |reader| {
                    for parameter in function.parameters.iter() {
                        parameter.annotation().into_iter().for_each(|kind| reader.visit_annotation(kind));
                    }
                    function.returns.iter().for_each(|kind| reader.visit_annotation(kind));
                    reader.scan_function(Some(&function.parameters), FunctionBody::Statements(&function.body));
                });
                self.bind_name(&function.name, false);
            }
            Stmt::ClassDef(class) => {
                class.decorator_list.iter().for_each(|decorator| self.visit_decorator(decorator));
                self.with_type_params(class.type_params.as_deref(), |reader| {
                    class.arguments.iter().for_each(|arguments| reader.visit_arguments(arguments));
                    let mut own = LocalBindings::default();
                    own.visit_body(&class.body);
                    let scope = PythonScope { kind: BindingKind::Class, locals: BTreeSet::new(), globals: own.globals };
                    reader.scopes.push(scope);
                    reader.visit_body(&class.body);
                    reader.scopes.pop();
                });
                self.bind_name(&class.name, false);
            }
            Stmt::TypeAlias(alias) => {
                self.with_type_params(alias.type_params.as_deref(), |reader| {
                    // The value of a type alias is evaluated lazily.
                    reader.scan_function(None, FunctionBody::Expression(&alias.value));
                });
                self.visit_expr(&alias.name);
            }
            Stmt::Assign(assign) => {
                self.visit_expr(&assign.value);
                assign.targets.iter().for_each(|target| self.visit_expr(target));
            }
            Stmt::AugAssign(assign) => {
                if let Some(base) = Self::base_name(&assign.target) {
                    self.record_use(base);
                    self.record_mutation(base);
                }
                self.visit_expr(&assign.value);
                self.visit_expr(&assign.target);
            }
            Stmt::AnnAssign(assign) => {
                assign.value.iter().for_each(|value| self.visit_expr(value));
                self.visit_annotation(&assign.annotation);
                // An annotation without a value binds nothing.
                if assign.value.is_some() || !assign.target.is_name_expr() {
                    self.visit_expr(&assign.target);
                }
            }
            Stmt::If(branch) => {
                self.visit_expr(&branch.test);
                let mut ends = vec![self.scan_conditional(|reader| reader.visit_body(&branch.body))];
                let mut open = true;
                for clause in &branch.elif_else_clauses {
                    match &clause.test {
                        Some(test) => self.visit_expr(test),
                        None => open = false,
                    }
                    ends.push(self.scan_conditional(|reader| reader.visit_body(&clause.body)));
                }
                if open {
                    ends.push(self.bound.clone());
                }
                self.merge_branches(ends);
            }
            Stmt::For(each) => {
                self.visit_expr(&each.iter);
                self.scan_conditional(|reader| {
                    reader.visit_expr(&each.target);
                    reader.visit_body(&each.body);
                });
                self.scan_conditional(|reader| reader.visit_body(&each.orelse));
            }
            Stmt::While(each) => {
                self.visit_expr(&each.test);
                self.scan_conditional(|reader| reader.visit_body(&each.body));
                self.scan_conditional(|reader| reader.visit_body(&each.orelse));
            }
            Stmt::Try(attempt) => {
                let mut ends = vec![self.scan_conditional(|reader| {
                    reader.visit_body(&attempt.body);
                    reader.visit_body(&attempt.orelse);
                })];
                for ast::ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
                    ends.push(self.scan_conditional(|reader| {
                        handler.type_.iter().for_each(|kind| reader.visit_expr(kind));
                        if let Some(name) = &handler.name {
                            reader.bind_name(name, false);
                        }
                        reader.visit_body(&handler.body);
                        // Python deletes the name at the end of the handler.
                        if let Some(name) = &handler.name {
                            reader.bound.remove(name.as_str());
                        }
                    }));
                }
                let finally = self.scan_conditional(|reader| reader.visit_body(&attempt.finalbody));
                let before = std::mem::take(&mut self.bound);
                self.merge_branches(ends);
                self.bound.extend(finally.difference(&before).cloned());
            }
            Stmt::Match(choice) => {
                self.visit_expr(&choice.subject);
                let mut ends = Vec::new();
                let mut open = true;
                for case in &choice.cases {
                    open &= case.guard.is_some() || !case.pattern.is_irrefutable();
                    ends.push(self.scan_conditional(|reader| reader.visit_match_case(case)));
                }
                if open {
                    ends.push(self.bound.clone());
                }
                self.merge_branches(ends);
            }
            Stmt::Delete(delete) => delete.targets.iter().for_each(|target| match target {
                Expr::Name(name) => {
                    self.record_use(&name.id);
                    self.record_mutation(&name.id);
                    if self.is_global(&name.id) && !self.in_function() {
                        self.bound.remove(name.id.as_str());
                    }
                }
                other => self.visit_expr(other),
            }),
            Stmt::Import(import) => {
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    self.bind_name(name.split('.').next().unwrap_or(name), false);
                }
            }
            Stmt::ImportFrom(import) => {
                for alias in &import.names {
                    if alias.name.as_str() == "*" {
                        self.names.defines_any = true;
                    } else {
                        self.bind_name(alias.asname.as_ref().unwrap_or(&alias.name), false);
                    }
                }
            }
            Stmt::IpyEscapeCommand(command) => self.scan_ipython_escape(command.kind, &command.value),
            Stmt::Global(_) | Stmt::Nonlocal(_) => {}
            _ => visitor::walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => match name.ctx {
                ExprContext::Load => self.record_use(&name.id),
                ExprContext::Store => self.bind_name(&name.id, false),
                ExprContext::Del | ExprContext::Invalid => {}
            },
            Expr::Named(named) => {
                self.visit_expr(&named.value);
                if let Expr::Name(name) = &*named.target {
                    self.bind_name(&name.id, true);
                }
            }
            Expr::Lambda(lambda) => {
                for parameter in lambda.parameters.iter().flat_map(|list| list.iter_non_variadic_params()) {
                    parameter.default.iter().for_each(|default| self.visit_expr(default));
                }
                self.scan_function(lambda.parameters.as_deref(), FunctionBody::Expression(&lambda.body));
            }
            Expr::ListComp(list) => self.scan_comprehension(&list.generators, |reader| reader.visit_expr(&list.elt)),
            Expr::SetComp(set) => self.scan_comprehension(&set.generators, |reader| reader.visit_expr(&set.elt)),
            Expr::Generator(each) => self.scan_comprehension(&each.generators, |reader| reader.visit_expr(&each.elt)),
            Expr::DictComp(dict) => self.scan_comprehension(&dict.generators, |reader| {
                dict.key.iter().for_each(|key| reader.visit_expr(key));
                reader.visit_expr(&dict.value);
            }),
            Expr::Attribute(ast::ExprAttribute { ctx: ExprContext::Store | ExprContext::Del, .. })
            | Expr::Subscript(ast::ExprSubscript { ctx: ExprContext::Store | ExprContext::Del, .. }) => {
                if let Some(base) = Self::base_name(expr) {
                    self.record_mutation(base);
                }
                visitor::walk_expr(self, expr);
            }
            Expr::Call(call) => {
                self.scan_call(call);
                visitor::walk_expr(self, expr);
            }
            Expr::IpyEscapeCommand(command) => self.scan_ipython_escape(command.kind, &command.value),
            _ => visitor::walk_expr(self, expr),
        }
    }

    fn visit_pattern(&mut self, pattern: &'a ast::Pattern) {
        visitor::walk_pattern(self, pattern);
        captured_name(pattern).into_iter().for_each(|name| self.bind_name(name, false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(names: &BTreeSet<String>) -> String {
        names.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// Checks which names a cell defines, uses from others, and changes in place.
    #[track_caller]
    fn check(code: &str, defines: &str, wants: &str, changes: &str) {
        let names = CellNames::of(code);
        assert!(!names.broken, "{code}");
        let found = (words(&names.defines), words(&names.external_names()), words(&names.changes));
        assert_eq!(found, (defines.to_owned(), wants.to_owned(), changes.to_owned()), "{code}");
    }

    #[test]
    fn every_rule_of_scopes() {
        check("x = y", "x", "y", "");
        check("(a, [b, *c]) = d", "a b c", "d", "");
        check("a = b = c", "a b", "c", "");
        check("x: int = 1", "x", "int", "");
        check("x: T", "", "T", "");
        check("import a.b, c as d", "a d", "", "");
        check("from m import x as y, z", "y z", "", "");
        check("for i, j in k: l = i\nelse: m = 1", "i j l m", "k", "");
        check("while a: b = c", "b", "a c", "");
        check("with a as b, c() as (d, e): f", "b d e", "a c f", "");
        check("try: a\nexcept E as e: b = e\nelse: c\nfinally: d", "b e", "E a c d", "");
        check("if (n := f()) > 1: print(n)", "n", "f print", "");
        check("[x + a for x in xs if x in b]", "", "a b xs", "");
        check("[y for x in xs for y in x]", "", "xs", "");
        check("[last := x for x in xs]", "last", "xs", "");
        check("{k: v for k, v in d.items()}", "", "d", "");
        check("x = [x for x in x]", "x", "", "");
        check("def f(a, b=c, *d, e: T = g, **h) -> R:\n return a + b + i", "f", "R T c g i", "");
        check("def f():\n x = 1\n return x + y", "f", "y", "");
        check("def f():\n return x\n x = 1", "f", "", "");
        check("def f():\n global x\n x = y", "f x", "y", "");
        check("def f():\n x = 1\n def g():\n  nonlocal x\n  x = z\n return g", "f", "z", "");
        check("def f():\n def g(): return h()\n def h(): return k\n return g", "f", "k", "");
        check("def f(n): return f(n - 1)", "f", "", "");
        check("def f[T: B](x: T) -> T: return x", "f", "B", "");
        check("class A[T](B[T], metaclass=M):\n x = y\n z = x\n def m(self): return x, A", "A", "B M x y", "");
        check("class A:\n global g\n g = 1", "A g", "", "");
        check("class A:\n xs = [1]\n ys = [x for x in xs]", "A", "", "");
        check("@d\ndef f(): pass\n@e(1)\nclass C: pass", "C f", "d e", "");
        check("f = lambda x, y=z: x + y + w", "f", "w z", "");
        check("type V[T] = list[T] | U", "V", "U list", "");
        check(
            "match p:\n case [a, *b, {'k': c, **d}]: pass\n case P(x=e) as f if g: pass\n case _: h = 1",
            "a b c d e f h",
            "P g p",
            "",
        );
        check("f'{a} {b!r:>{c}}'", "", "a b c", "");
        check("async def f():\n async for x in y: await z(x)", "f", "y z", "");
        check("await a", "", "a", "");
        check("print(x)\nx = 1", "x", "print", "");
        check("%matplotlib inline\n!ls\nx = 1", "x", "", "");
        check("", "", "", "");
    }

    #[test]
    fn changes_in_place() {
        check("x += 1", "x", "", "x");
        assert_eq!(words(&CellNames::of("x += 1").uses), "x");
        check("x[0] = y", "", "x y", "x");
        check("x.a.b = 1", "", "x", "x");
        check("del x[0], y.z", "", "x y", "x y");
        check("x.a[i] += 1", "", "i x", "x");
        check("xs.append(1)", "", "xs", "xs");
        check("d.rows.sort()", "", "d", "d");
        check("f().a = 1", "", "f", "");
        check("setattr(x, 'a', 1)", "", "setattr x", "x");
        check("del x", "", "x", "x");
        check("for x.a in y: pass", "", "x y", "x");
        let later = CellNames::of("def f():\n c[0] = 1\n xs.append(2)\n own = []\n own.append(1)");
        assert_eq!((words(&later.later_changes), words(&later.changes)), ("c xs".to_owned(), String::new()));
    }

    #[test]
    fn bound_for_sure_or_perhaps() {
        let surely = |code: &str| {
            let names = CellNames::of(code);
            (words(&names.surely), words(&names.uses))
        };
        let pair = |sure: &str, uses: &str| (sure.to_owned(), uses.to_owned());
        assert_eq!(surely("if c: x = 1\nprint(x)"), pair("", "c print x"));
        assert_eq!(surely("if c: x = 1\nelse: x = 2\nx"), pair("x", "c"));
        assert_eq!(surely("for x in y: pass\nx"), pair("", "x y"));
        assert_eq!(surely("try: x = f()\nexcept E: x = 1\nx"), pair("x", "E f"));
        assert_eq!(surely("try: x = f()\nexcept E: pass\nx"), pair("", "E f x"));
        assert_eq!(surely("try: pass\nfinally: x = 1\nx"), pair("x", ""));
        assert_eq!(surely("match a:\n case 1: x = 1\n case _: x = 2\nx"), pair("x", "a"));
        assert_eq!(surely("x = 1\ndel x\nx"), pair("", "x"));
        assert_eq!(surely("with a: x = 1\nx"), pair("x", "a"));
    }

    #[test]
    fn what_cannot_be_known_is_said() {
        let any = |code: &str| {
            let names = CellNames::of(code);
            (names.uses_any, names.defines_any, names.broken)
        };
        assert_eq!(any("exec(s)"), (true, true, false));
        assert_eq!(any("eval(s)"), (true, false, false));
        assert_eq!(any("from m import *"), (false, true, false));
        assert_eq!(any("globals()['x'] = 1"), (true, true, false));
        assert_eq!(any("%run other.py"), (true, true, false));
        assert_eq!(any("def eval(x): return x\neval(1)"), (false, false, false));
        assert_eq!(any("1 +"), (false, false, true));
        assert_eq!(any(&"x = 1\n".repeat(20_000)), (true, true, false));
    }

    #[test]
    fn a_parser_that_panics_fails_on_its_cell_alone() {
        assert!(CellNames::of("x = ? \n").broken);
    }

    #[test]
    fn deep_nesting_is_read() {
        for code in ["(", "1 + ", "not ", "f(", "[", "a.b.c.", "x if y else ", "lambda: "] {
            let mut deep = code.repeat(60_000 / code.len());
            deep.push('1');
            let _ = CellNames::of(&deep);
        }
        let chain = format!("x{}", ".a".repeat(900));
        assert_eq!(words(&CellNames::of(&chain).uses), "x");
        let sum = format!("x{}", " + 1".repeat(900));
        assert_eq!(words(&CellNames::of(&sum).uses), "x");
        // Code nested as deep as the limits allow.
        for (open, close) in
            [("(", ")"), ("[", "]"), ("f(", ")"), ("-", ""), ("not ", ""), ("lambda: ", ""), ("(-", ")")]
        {
            for times in 0..1_000 {
                let code = format!("{}x{}", open.repeat(times), close.repeat(times));
                if times % 97 == 0 || !is_shallow(&code) {
                    let names = CellNames::of(&code);
                    assert!(names.uses.contains("x") || names.later.contains("x") || names.uses_any, "{open} {times}");
                    if names.uses_any {
                        break;
                    }
                }
            }
        }
        // Beyond the limits, nothing is known.
        let names = CellNames::of(&format!("x{}", " + 1".repeat(15_000)));
        assert!(names.uses_any && names.defines_any);
    }
}
