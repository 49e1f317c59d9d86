//! Checks that code doesn't nest too deep, by counting its tokens before a syntax tree is built.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer};

/// Maximum nesting of brackets, f-strings and indented blocks, as in CPython.
const MAX_BLOCK_NESTING: usize = 200;
/// Maximum nesting of expressions, counting operators and chains such as `a.b.c` or `1 + 2 + 3`.
const MAX_EXPRESSION_NESTING: usize = 1_000;

/// An open bracket, or the statement around all brackets.
#[derive(Clone, Copy, Default)]
struct NestingLevel {
    /// Number of tokens since the last comma that may nest expressions.
    chained: usize,
    /// Number of lambdas among them, which a comma doesn't end.
    lambdas: usize,
}

/// Returns whether the code's syntax tree is surely within the limits. Depth is overcounted rather than undercounted.
pub fn is_shallow(code: &str) -> bool {
    std::panic::catch_unwind(|| is_shallow_on_tokens(code)).unwrap_or(false)
}

fn is_shallow_on_tokens(code: &str) -> bool {
    let mut lexer = lexer::lex(code, Mode::Ipython);
    let mut levels = vec![NestingLevel::default()];
    let (mut chained, mut indent) = (0_usize, 0_usize);
    loop {
        let kind = lexer.next_token();
        let (mut adds, mut ends) = (0, false);
        match kind {
            TokenKind::EndOfFile => return true,
            TokenKind::Lpar
            | TokenKind::Lsqb
            | TokenKind::Lbrace
            | TokenKind::FStringStart
            | TokenKind::TStringStart => {
                // A bracket may be a call or a subscript, which extends a chain, too.
                chained += 1;
                if let Some(level) = levels.last_mut() {
                    level.chained += 1;
                }
                levels.push(NestingLevel::default());
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace | TokenKind::FStringEnd | TokenKind::TStringEnd => {
                if levels.len() > 1
                    && let Some(level) = levels.pop()
                {
                    chained -= level.chained;
                }
            }
            TokenKind::Comma => ends = true,
            TokenKind::Newline | TokenKind::Semi => {
                levels.truncate(1);
                chained = 0;
                levels[0] = NestingLevel::default();
            }
            TokenKind::Indent => indent += 1,
            TokenKind::Dedent => indent = indent.saturating_sub(1),
            TokenKind::Lambda => {
                adds = 1;
                if let Some(level) = levels.last_mut() {
                    level.lambdas += 1;
                }
            }
            kind if is_nesting_token(kind) => adds = 1,
            _ => {}
        }
        if let Some(level) = levels.last_mut() {
            if ends {
                chained -= level.chained - level.lambdas;
                level.chained = level.lambdas;
            }
            level.chained += adds;
            chained += adds;
        }
        if levels.len() > MAX_BLOCK_NESTING || indent > MAX_BLOCK_NESTING || chained + indent > MAX_EXPRESSION_NESTING {
            return false;
        }
    }
}

/// Returns whether a token nests its operands one level deeper.
fn is_nesting_token(kind: TokenKind) -> bool {
    kind.is_operator() && !matches!(kind, TokenKind::Colon | TokenKind::Equal | TokenKind::Rarrow)
        || matches!(
            kind,
            TokenKind::Else
                | TokenKind::Not
                | TokenKind::And
                | TokenKind::Or
                | TokenKind::In
                | TokenKind::Is
                | TokenKind::Await
                | TokenKind::Yield
                | TokenKind::From
                | TokenKind::ColonEqual
                | TokenKind::Dot
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted() {
        for part in [
            "(",
            "[",
            "{",
            "-",
            "~",
            "+",
            "not ",
            "f(",
            "a[",
            "a.",
            "1+",
            "1**",
            "lambda:",
            "lambda a, b: ",
            "f'{",
            "f\"{x:{",
            "a if b else ",
            "a and ",
            "a<",
            "await ",
            "*",
            "a:=(",
            "x()",
            "x[0]",
            "a or b and ",
            "yield ",
            "(1,",
            "[a, -",
            "{a: ",
            "@",
            "print(a, ",
            "x().y[0].",
        ] {
            assert!(!is_shallow(&part.repeat(60_000 / part.len())), "{part}");
        }
        let blocks: String = (0..300).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect();
        assert!(!is_shallow(&format!("{blocks}{}x\n", " ".repeat(300))));
        let list = "x = [(1, -2, f(3), 'a', f'{b}'),\n".to_owned() + &"(1, -2, a.b, f(3)[0]),\n".repeat(2_000) + "]\n";
        let calls = "df.a(x)[0].b(y, z=lambda: 1).c()\n".repeat(1_000);
        let sum = format!("x = 1{}\n", " + 1".repeat(900));
        for fine in [list, calls, sum, "if a:\n  b = 1\nelse:\n  c = {d: e for d, e in f}\n".repeat(1_000)] {
            assert!(is_shallow(&fine), "{:.40}", fine);
        }
    }
}
