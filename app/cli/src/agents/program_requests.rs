//! What other programs ask and wait for: listed and decided with `cmd_approvals`, beside what agents ask.

use crate::arguments::ApprovalsArguments;
use crate::{CliError, CommandContext};
use program_approvals::{ProgramApproval, ProgramApprovals, ProgramDecision};
use serde_json::json;
use text::untrusted_text;

fn requests(scene: &CommandContext<'_>) -> ProgramApprovals {
    ProgramApprovals::new(scene.handle.workspace_folder())
}

/// Prints the requests that wait, and returns their number. With `query`, in lowercase, only those with these words.
pub(super) fn list_requests(scene: &mut CommandContext<'_>, query: Option<&str>) -> Result<usize, CliError> {
    let has_words = |request: &ProgramApproval| {
        let words = format!("{} {} {} {}", request.what, request.tool, request.program, request.diff).to_lowercase();
        query.is_none_or(|query| words.contains(query))
    };
    let waiting = requests(scene).waiting().map_err(CliError::workspace)?;
    let listed: Vec<&ProgramApproval> = waiting.iter().filter(|request| has_words(request)).collect();
    for request in &listed {
        if scene.json {
            let mut value = json!(request);
            value["name"] = json!(request.id);
            value["arguments"] = value["parameters"].take();
            writeln!(scene.out, "{value}")?;
            continue;
        }
        let [what, reason] = [&request.what, &request.reason].map(|text| untrusted_text::escape_line(text));
        writeln!(scene.out, "{}  waits  {what} ({reason})", request.id)?;
        let parameters = match request.parameters.is_empty() {
            true => String::new(),
            false => agent::approval_text::format_arguments(&request.parameters),
        };
        let diff = untrusted_text::escape_block(&request.diff);
        for line in parameters.lines().chain(diff.lines()) {
            writeln!(scene.out, "    {line}")?;
        }
    }
    Ok(listed.len())
}

/// Decides the request with this id. Returns whether there is one.
pub(super) fn decide_request(
    scene: &CommandContext<'_>,
    id: &str,
    args: &ApprovalsArguments,
) -> Result<bool, CliError> {
    let is_waiting = |request: &ProgramApproval| request.id == id;
    if !requests(scene).waiting().map_err(CliError::workspace)?.iter().any(is_waiting) {
        return Ok(false);
    }
    let approved = match (args.allow, args.deny) {
        (true, false) => true,
        (false, true) => false,
        _ => return Err(CliError::usage("say --allow or --deny")),
    };
    if args.arguments.is_some() || args.scope.as_deref().is_some_and(|scope| scope != "once") {
        return Err(CliError::usage("a program's request is decided once, and as it is"));
    }
    let decision = ProgramDecision { approved, comment: args.comment.clone().unwrap_or_default() };
    requests(scene).decide(id, |_| true, &decision).map_err(CliError::workspace)
}
