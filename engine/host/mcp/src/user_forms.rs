//! What a server may ask its client for. Forms that a server asks the user to fill in, and pages that it asks the user
//! to open (elicitation), for programs that have a user to ask.
#![expect(deprecated, reason = "servers of the protocol before 2026-07-28 ask for models in this way")]

use crate::project_root::ProjectRoot;
use crate::required_pages::{FinishedPages, PAGE_FINISHED_METHOD};
use crate::server_requests::ActiveCalls;
use agent::server_form::{FormAnswer, UserForm, UserFormError};
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams, CreateMessageResult,
    CustomNotification, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, Implementation,
    ListRootsResult, ProtocolVersion, RootsCapabilities,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::Value;
use std::sync::Arc;

/// Someone who can fill in forms.
pub trait FormUser: Send + Sync + 'static {
    /// Shows a form, and waits for the answer. If it's about a page, opens the page after the user has agreed.
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
    /// The pages of the server with which the user has finished.
    finished: FinishedPages,
    /// The server's root; `None` if it gets none.
    root: Option<ProjectRoot>,
}

impl McpClientSide {
    pub(crate) fn new(
        server: &str,
        users: ServerUsers,
        (calls, finished): (ActiveCalls, FinishedPages),
        root: Option<ProjectRoot>,
    ) -> McpClientSide {
        McpClientSide { server: server.to_owned(), users, calls, finished, root }
    }

    /// Asks the user, or has the run that calls a tool of the server ask.
    pub(crate) async fn ask_user(
        &self,
        form: &UserForm,
        canceled: impl Future<Output = ()> + Send,
    ) -> Result<FormAnswer, ErrorData> {
        let shown = form.clone();
        match self.users.forms.clone() {
            Some(forms) => {
                let answer = tokio::task::spawn_blocking(move || forms.fill_in(&shown)).await;
                Ok(answer.unwrap_or(FormAnswer::Closed))
            }
            None if self.users.has_runs => self.calls.fill_in(shown, canceled).await,
            None => Ok(FormAnswer::Declined),
        }
    }
}

impl ClientHandler for McpClientSide {
    fn get_info(&self) -> ClientConfig {
        let me = Implementation::new("tracebook", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        let asks = || ElicitationCapability::new().with_form(Default::default()).with_url(Default::default());
        capabilities.elicitation = (self.users.forms.is_some() || self.users.has_runs).then(asks);
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

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        let id = notification.params.as_ref().and_then(|params| params["elicitationId"].as_str());
        if let Some(id) = id.filter(|_| notification.method == PAGE_FINISHED_METHOD) {
            self.finished.add(id);
        }
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let unusable = |why: UserFormError| ErrorData::invalid_params(why.to_string(), None);
        let form = match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(&requested_schema).map_err(|_| unusable(UserFormError::Fields))?;
                UserForm::from_schema(&self.server, &message, &schema)
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                UserForm::for_page(&self.server, &message, &url)
            }
            _ => return Err(ErrorData::invalid_params("only forms and pages can be shown", None)),
        };
        let form = form.map_err(unusable)?;
        match self.ask_user(&form, context.ct.cancelled()).await? {
            FormAnswer::Filled(_) if form.page.is_some() => Ok(ElicitResult::new(ElicitationAction::Accept)),
            FormAnswer::Filled(filled) => {
                let wrong = |_| ErrorData::internal_error("the form is not filled in", None);
                // A run's session has completed it: defaults that the user has emptied must not come back.
                let answer = if self.users.forms.is_none() { filled } else { form.completed(filled).map_err(wrong)? };
                Ok(ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(answer)))
            }
            FormAnswer::Declined => Ok(ElicitResult::new(ElicitationAction::Decline)),
            FormAnswer::Closed => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }
}
