//! What a server may ask its client for. Forms that a server asks the user to fill in (elicitation), for programs that
//! have a user to ask.
#![expect(deprecated, reason = "servers of the protocol before 2026-07-28 ask for models in this way")]

use crate::project_root::ProjectRoot;
use crate::server_requests::ActiveCalls;
use agent::server_form::{FormAnswer, UserForm, UserFormError};
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, Implementation, ListRootsResult, ProtocolVersion,
    RootsCapabilities,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::Value;
use std::sync::Arc;

/// Somebody who can fill in forms.
pub trait FormUser: Send + Sync + 'static {
    /// Shows a form, and waits for the answer.
    fn fill_in(&self, form: &UserForm) -> FormAnswer;
}

/// Those whom servers may ask.
#[derive(Clone, Default)]
pub(crate) struct ServerUsers {
    /// Who fills in forms; `None` if nobody does.
    pub(crate) forms: Option<Arc<dyn FormUser>>,
    /// Whether runs pass requests on to their models and users.
    pub(crate) has_runs: bool,
}

/// This program as a client of one server.
pub(crate) struct McpClientSide {
    server: String,
    users: ServerUsers,
    calls: ActiveCalls,
    /// The server's root; `None` if it gets none.
    root: Option<ProjectRoot>,
}

impl McpClientSide {
    pub(crate) fn new(
        server: &str,
        users: ServerUsers,
        calls: ActiveCalls,
        root: Option<ProjectRoot>,
    ) -> McpClientSide {
        McpClientSide { server: server.to_owned(), users, calls, root }
    }
}

impl ClientHandler for McpClientSide {
    fn get_info(&self) -> ClientConfig {
        let me = Implementation::new("tracebook", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = (self.users.forms.is_some() || self.users.has_runs).then(Default::default);
        capabilities.sampling = self.users.has_runs.then(Default::default);
        capabilities.roots = self.root.is_some().then(|| {
            let mut roots = RootsCapabilities::default();
            roots.list_changed = Some(true);
            roots
        });
        // Later versions have no handshake.
        ClientConfig::new(capabilities, me).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.root.as_ref().map(ProjectRoot::listed).unwrap_or_default())
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        if !self.users.has_runs {
            return Err(ErrorData::method_not_found::<CreateMessageRequestMethod>());
        }
        self.calls.create_message(params, context.ct.cancelled()).await
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return Err(ErrorData::invalid_params("only forms can be shown", None));
        };
        let unusable = |why: UserFormError| ErrorData::invalid_params(why.to_string(), None);
        let schema = serde_json::to_value(&requested_schema).map_err(|_| unusable(UserFormError::Fields))?;
        let form = UserForm::from_schema(&self.server, &message, &schema).map_err(unusable)?;
        let shown = form.clone();
        let (answer, is_completed) = match self.users.forms.clone() {
            Some(forms) => {
                let answer = tokio::task::spawn_blocking(move || forms.fill_in(&shown)).await;
                (answer.unwrap_or(FormAnswer::Closed), false)
            }
            // The session has completed it: defaults that the user has emptied must not come back.
            None if self.users.has_runs => (self.calls.fill_in(shown, context.ct.cancelled()).await?, true),
            None => (FormAnswer::Declined, false),
        };
        match answer {
            FormAnswer::Filled(filled) => {
                let wrong = |_| ErrorData::internal_error("the form is not filled in", None);
                let answer = if is_completed { filled } else { form.completed(filled).map_err(wrong)? };
                Ok(ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(answer)))
            }
            FormAnswer::Declined => Ok(ElicitResult::new(ElicitationAction::Decline)),
            FormAnswer::Closed => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }
}
