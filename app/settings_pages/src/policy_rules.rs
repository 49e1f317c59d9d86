//! Rules about tools: which calls are allowed, ask, or are denied. They are lists of `approval` in `config.yaml`.

use crate::config_rows::ConfigRows;
use agent::approval_names::fault_of_entry;
use agent::config::{AgentConfig, ApprovalConfig};
use agent_ui::config_writer::config_value;
use eframe::egui::Ui;
use engine::RunsState;
use host::maintenance::config_edit::{ConfigChange, change_config};
use host::maintenance::configuration;
use std::path::Path;
use ui::icons;
use ui::setting_rows::{SettingsRows, text};
use ui::theme;
use ui::widgets::{chip_button, icon_button};

/// A list of rules with the same effect.
struct RuleList {
    /// The effect.
    word: &'static str,
    about: &'static str,
    /// Its key in `approval`.
    key: &'static str,
    entries: fn(&ApprovalConfig) -> &Vec<String>,
}

/// The lists, each of which wins over those before it.
static RULE_LISTS: [RuleList; 3] = [
    RuleList {
        word: "Allow",
        about: "Runs without asking.",
        key: "never_approve",
        entries: |approval| &approval.never_approve,
    },
    RuleList {
        word: "Ask",
        about: "Always asks.",
        key: "always_approve",
        entries: |approval| &approval.always_approve,
    },
    RuleList { word: "Deny", about: "Is never called.", key: "deny", entries: |approval| &approval.deny },
];
/// The list of `RULE_LISTS` that may not have entries that are too broad to allow.
const ALLOW_LIST: usize = 0;
/// The list of a new rule, until another one is chosen.
const ASK_LIST: usize = 1;
const NEW_RULE_ROW: &str = "Rules about tools";

/// State of the rules beyond the session.
pub(crate) struct PolicyRuleSettings {
    /// The list of the next rule that is added.
    list: usize,
    /// A new rule that can't be added as it is.
    typed: String,
    /// What is wrong with the rules, by list and entry, for a revision of the agents.
    faults: Vec<(usize, String, String)>,
    checked: Option<u64>,
}

impl Default for PolicyRuleSettings {
    fn default() -> PolicyRuleSettings {
        PolicyRuleSettings { list: ASK_LIST, typed: String::new(), faults: Vec::new(), checked: None }
    }
}

/// What the user asks for in the row of a rule.
enum RuleAction {
    Remove,
    Move(usize),
    Edit(String),
}

impl PolicyRuleSettings {
    /// Draws a row for each rule, and the field that adds one.
    pub(crate) fn show(
        &mut self,
        rows: &mut ConfigRows,
        lines: &mut SettingsRows<'_>,
        agents: &RunsState,
        config: &AgentConfig,
    ) {
        self.check(agents, config);
        self.show_new(rows, lines, agents, config);
        rows.show_removed(lines, NEW_RULE_ROW);
        for (list, rules) in RULE_LISTS.iter().enumerate() {
            let entries = (rules.entries)(&config.approval);
            for (at, entry) in entries.iter().enumerate() {
                if !entries[..at].contains(entry) {
                    self.show_rule(rows, lines, (list, entry), (agents, config));
                }
            }
        }
    }

    /// Finds what is wrong with the rules, if they may have changed.
    fn check(&mut self, agents: &RunsState, config: &AgentConfig) {
        if self.checked == Some(agents.revision()) {
            return;
        }
        let tools = agents.named_tools();
        self.faults.clear();
        for (list, rules) in RULE_LISTS.iter().enumerate() {
            for entry in (rules.entries)(&config.approval) {
                let fault = fault_of_entry(entry, list == ALLOW_LIST, config, &tools);
                self.faults.extend(fault.map(|fault| (list, entry.clone(), fault)));
            }
        }
        self.checked = Some(agents.revision());
    }

    fn show_new(
        &mut self,
        rows: &mut ConfigRows,
        lines: &mut SettingsRows<'_>,
        agents: &RunsState,
        config: &AgentConfig,
    ) {
        let about = "A tool, or shell: cargo test *. Deny wins over Ask, and Ask over Allow.";
        let typed = rows.show_row(lines, NEW_RULE_ROW, about, |ui| {
            let chosen = show_lists(ui, "a new rule", self.list);
            self.list = chosen.unwrap_or(self.list);
            text(ui, "New rule", &self.typed, "TOOL: PATTERN")
        });
        let Some(typed) = typed else { return };
        self.typed.clear();
        let (entry, list) = (typed.trim().to_owned(), self.list);
        if entry.is_empty() {
            return;
        }
        let is_known = (RULE_LISTS[list].entries)(&config.approval).contains(&entry);
        let known = is_known.then(|| format!("“{entry}” is already in the list."));
        match known.or_else(|| fault_of_entry(&entry, list == ALLOW_LIST, config, &agents.named_tools())) {
            Some(why) => {
                rows.refuse(NEW_RULE_ROW, &why);
                self.typed = typed;
            }
            None => change_rule(rows, lines, NEW_RULE_ROW, (None, Some((list, entry)))),
        }
    }

    fn show_rule(
        &self,
        rows: &mut ConfigRows,
        lines: &mut SettingsRows<'_>,
        (list, entry): (usize, &String),
        (agents, config): (&RunsState, &AgentConfig),
    ) {
        let RuleList { word, about, .. } = &RULE_LISTS[list];
        let fault = self.faults.iter().find(|(of, wrong, _)| *of == list && wrong == entry);
        let about = match fault {
            Some((.., fault)) => format!("No run can start: {fault}"),
            None => (*about).to_owned(),
        };
        let row = format!("{word} {entry}");
        let action = rows.show_row(lines, &row, &about, |ui| {
            let removed = icon_button(ui, icons::X, &format!("Remove the rule {row}"), None).clicked();
            let moved = show_lists(ui, entry, list).filter(|to| *to != list);
            let edited = text(ui, &format!("Rule {entry}"), entry, "TOOL: PATTERN");
            let edited = edited.map(|typed| RuleAction::Edit(typed.trim().to_owned()));
            removed.then_some(RuleAction::Remove).or(moved.map(RuleAction::Move)).or(edited)
        });
        let to = match action {
            None => return,
            Some(RuleAction::Remove) => None,
            Some(RuleAction::Move(to)) => Some((to, entry.clone())),
            Some(RuleAction::Edit(typed)) if typed == *entry => return,
            Some(RuleAction::Edit(typed)) => Some((list, typed)),
        };
        let fault = to
            .as_ref()
            .and_then(|(list, entry)| fault_of_entry(entry, *list == ALLOW_LIST, config, &agents.named_tools()));
        match fault {
            Some(why) => rows.refuse(&row, &why),
            None => change_rule(rows, lines, &row, (Some((list, entry.clone())), to)),
        }
    }
}

/// Draws what rules can say; `of` names the rule. Returns the clicked list.
fn show_lists(ui: &mut Ui, of: &str, chosen: usize) -> Option<usize> {
    let mut clicked = None;
    ui.spacing_mut().item_spacing.x = theme::space::XS;
    // The controls of a row go from right to left.
    for (at, list) in RULE_LISTS.iter().enumerate().rev() {
        if chip_button(ui, list.word, &format!("{} {of}", list.word), at == chosen, &theme::caption()) {
            clicked = Some(at);
        }
    }
    clicked
}

/// A rule: its list and its entry.
type ListedRule = (usize, String);

/// Replaces a rule by another one, in the configuration as it then is. `None` adds or removes one.
fn change_rule(
    rows: &mut ConfigRows,
    lines: &mut SettingsRows<'_>,
    row: &str,
    (from, to): (Option<ListedRule>, Option<ListedRule>),
) {
    let removed = from.as_ref().filter(|_| to.is_none());
    let removed = removed.map(|(list, entry)| format!("{} {entry}", RULE_LISTS[*list].word));
    let job = move |workspace: &Path| {
        let config = configuration::load_config(workspace)?;
        change_config(workspace, &changed_lists(&config.approval, from, to)).map(drop)
    };
    match removed {
        Some(removed) => rows.remove(lines.ui.ctx(), row, (NEW_RULE_ROW, removed), job),
        None => rows.run(lines.ui.ctx(), row, job),
    }
}

/// Returns the changes of the lists that replace a rule by another one.
fn changed_lists(approval: &ApprovalConfig, from: Option<ListedRule>, to: Option<ListedRule>) -> Vec<ConfigChange> {
    let mut lists: Vec<Vec<String>> = RULE_LISTS.iter().map(|list| (list.entries)(approval).clone()).collect();
    let mut place = None;
    if let Some((list, entry)) = from {
        place = lists[list].iter().position(|other| *other == entry).map(|at| (list, at));
        lists[list].retain(|other| *other != entry);
    }
    if let Some((list, entry)) = to.filter(|(list, entry)| !lists[*list].contains(entry)) {
        let last = lists[list].len();
        let at = place.filter(|(from, _)| *from == list).map_or(last, |(_, at)| at.min(last));
        lists[list].insert(at, entry);
    }
    let changed = RULE_LISTS.iter().zip(lists).filter(|(list, entries)| (list.entries)(approval) != entries);
    changed.map(|(list, entries)| config_value(&["approval", list.key], entries.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_is_replaced_where_it_stands() {
        let list = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>();
        let deny = list(&["shell: a; b", "git_push", "fetch_url"]);
        let approval = ApprovalConfig { deny, ..ApprovalConfig::default() };
        let changed = |from: Option<(usize, &str)>, to: Option<(usize, &str)>| -> Vec<(String, serde_json::Value)> {
            let owned = |rule: Option<(usize, &str)>| rule.map(|(list, entry)| (list, entry.to_owned()));
            let changes = changed_lists(&approval, owned(from), owned(to)).into_iter();
            changes.map(|(names, value)| (names.join("."), value.expect("a value"))).collect()
        };
        let edited = json!(["shell: a; b", "git_pull", "fetch_url"]);
        assert_eq!(changed(Some((2, "git_push")), Some((2, "git_pull"))), [("approval.deny".to_owned(), edited)]);
        let asks = ("approval.always_approve".to_owned(), json!(["git_push"]));
        let rest = ("approval.deny".to_owned(), json!(["shell: a; b", "fetch_url"]));
        assert_eq!(changed(Some((2, "git_push")), Some((1, "git_push"))), [asks, rest.clone()]);
        assert_eq!(changed(Some((2, "git_push")), None), [rest]);
        assert!(changed(None, Some((2, "git_push"))).is_empty(), "it's there already");
    }
}
