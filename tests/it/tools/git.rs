//! The git tool's text output: for a volume in a repository made by git itself, and for one outside any.

use super::Bench;
use agent::tool_job::{GitJob, ToolJob, ToolOutcome};
use std::process::Command;

fn git(bench: &Bench, what: GitJob) -> ToolOutcome {
    bench.done(ToolJob::Git { root: bench.root(), what })
}

#[test]
fn status_diff_commit_and_log() {
    let bench = Bench::new();
    // If the temporary folder itself is in a repository, git finds that one.
    let none = git(&bench, GitJob::Status);
    assert!(none.success || none.text.contains("there is no git repository"), "{none:?}");
    let run = |words: &[&str]| {
        let mut command = Command::new("git");
        command.args(words).current_dir(bench.path("")).env("HOME", bench.path("home")).env("TZ", "UTC");
        let done = command.output().expect("git is there");
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("UTF-8")
    };
    run(&["init", "-q"]);
    run(&["config", "user.name", "Ada"]);
    run(&["config", "user.email", "ada@example.org"]);
    bench.write("notes/a.md", b"one\n");
    bench.write("beside.txt", b"mine\n");
    assert_eq!(git(&bench, GitJob::Log { limit: None, revision: None, path: None }).text, "there is no commit yet");
    assert_eq!(git(&bench, GitJob::Status).text, "?? a.md");
    let message = "First words".to_owned();
    let done = git(&bench, GitJob::Commit { message: message.clone(), files: Vec::new(), staged: false });
    assert!(done.success && done.text.ends_with("“First words”\na.md"), "{done:?}");
    bench.write("notes/a.md", b"one\ntwo\n");
    let diff = git(&bench, GitJob::Diff { path: None, revision: None });
    assert!(diff.success && diff.text.contains("+two\n"), "{diff:?}");
    assert_eq!(git(&bench, GitJob::Status).text, " M a.md");
    let again = git(&bench, GitJob::Commit { message, files: vec!["../beside.txt".to_owned()], staged: false });
    assert!(!again.success && again.text.contains("leads out of the volume"), "{again:?}");
    let log = git(&bench, GitJob::Log { limit: Some(5), revision: None, path: None });
    assert!(log.text.ends_with(" Ada: First words") && log.text.lines().count() == 1, "{log:?}");
    // Git itself shows the same, and the same day in UTC.
    assert_eq!(run(&["log", "--format=%an %s"]), "Ada First words\n");
    let git_line = run(&["-c", "core.abbrev=8", "log", "--date=format-local:%Y-%m-%d", "--format=%h %cd %an: %s"]);
    assert_eq!(log.text, git_line.trim_end());
    assert_eq!(run(&["show", "--stat", "--format=", "HEAD"]).lines().next().map(str::trim), Some("notes/a.md | 1 +"));
    assert!(run(&["status", "--short"]).contains(" M notes/a.md"));
    run(&["fsck", "--strict"]);
}
