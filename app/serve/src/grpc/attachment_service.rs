//! `tracebook.v1.AttachmentService`: the files of volumes that aren't notes.

use super::generated::v1::attachment_service_server::AttachmentService;
use super::generated::v1::read_attachment_response::Part as SentPart;
use super::generated::v1::write_attachment_request::Part as ReceivedPart;
use super::generated::v1::{
    Attachment, DeleteAttachmentRequest, DeleteAttachmentResponse, ListAttachmentsRequest, ListAttachmentsResponse,
    ReadAttachmentRequest, ReadAttachmentResponse, WriteAttachmentRequest, WriteAttachmentResponse,
};
use super::json_fields::timestamp;
use super::request_checks::{
    PageRequest, checked_name, note_address, refused, scoped_caller, tag_header, unwritten, wanted_tag, whole_number,
    wrong_field,
};
use crate::access_tokens::TokenScope;
use crate::http_state::HttpState;
use crate::list_pages::{DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS};
use crate::rest_attachments::{self, AttachmentInfo, MAX_RECEIVED_BYTES, SentAttachment, media_type};
use crate::rest_notes::WriteCondition;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use std::sync::Arc;
use tonic::{Request, Response, Status, Streaming};

/// The service.
pub(super) struct AttachmentGrpcService {
    pub(super) state: Arc<HttpState>,
}

fn attachment_message(known: AttachmentInfo) -> Attachment {
    let (media_type, _) = media_type(&known.path);
    Attachment {
        volume: known.volume,
        path: known.path,
        size_bytes: whole_number(known.bytes),
        update_time: Some(timestamp(known.modified)),
        etag: known.version,
        media_type,
    }
}

/// Returns the first byte that a request wants of a file of `size` bytes, and the one after the last.
fn wanted_part(offset: i64, length: i64, size: u64) -> Result<(u64, u64), Status> {
    let positive = |number: i64, field: &'static str| {
        u64::try_from(number).map_err(|_| wrong_field(field, format!("`{field}` isn't negative")))
    };
    let (first, length) = (positive(offset, "offset")?, positive(length, "length")?);
    if first > size {
        return Err(Status::out_of_range(format!("the attachment has {size} bytes; `offset` is behind them")));
    }
    let end = if length == 0 { size } else { first.saturating_add(length).min(size) };
    Ok((first, end))
}

/// Receives the bytes that follow the first message.
async fn receive_content(messages: &mut Streaming<WriteAttachmentRequest>) -> Result<Vec<u8>, Status> {
    let mut bytes = Vec::new();
    while let Some(message) = messages.message().await? {
        match message.part {
            Some(ReceivedPart::Content(part)) if bytes.len() + part.len() <= MAX_RECEIVED_BYTES => {
                bytes.extend_from_slice(&part);
            }
            Some(ReceivedPart::Content(_)) => {
                let why = format!("an attachment that is sent has at most {MAX_RECEIVED_BYTES} bytes");
                return Err(Status::resource_exhausted(why));
            }
            Some(ReceivedPart::Target(_)) => return Err(wrong_field("target", "only the first message has `target`")),
            None => {}
        }
    }
    Ok(bytes)
}

#[tonic::async_trait]
impl AttachmentService for AttachmentGrpcService {
    async fn list_attachments(
        &self,
        request: Request<ListAttachmentsRequest>,
    ) -> Result<Response<ListAttachmentsResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        checked_name(&asked.volume, "volume")?;
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let found = rest_attachments::find_attachments(&caller, &asked.volume, &asked.path_prefix).await;
        let page = page.cut(found.map_err(refused)?, |attachment| attachment.path.clone())?;
        Ok(Response::new(ListAttachmentsResponse {
            attachments: page.items.into_iter().map(attachment_message).collect(),
            next_page_token: page.next_token,
            total_size: page.total,
        }))
    }

    type ReadAttachmentStream = BoxStream<'static, Result<ReadAttachmentResponse, Status>>;

    async fn read_attachment(
        &self,
        request: Request<ReadAttachmentRequest>,
    ) -> Result<Response<Self::ReadAttachmentStream>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let address = note_address(&caller, asked.volume, asked.path)?;
        let wanted = wanted_tag(&asked.if_match)?;
        let known = rest_attachments::read_about(&caller, &address).await.map_err(refused)?;
        if wanted.is_some_and(|wanted| wanted != known.etag()) {
            return Err(Status::aborted("the attachment has changed; read it again"));
        }
        let (next, end) = wanted_part(asked.offset, asked.length, known.bytes)?;
        let sent = SentAttachment { caller, address, version: known.version.clone(), next, end };
        let parts = stream::unfold(sent, SentAttachment::next_part).map(|part| match part {
            Ok(bytes) => Ok(ReadAttachmentResponse { part: Some(SentPart::Content(bytes.into())) }),
            Err(problem) => Err(unwritten(problem, Status::aborted)),
        });
        let about = ReadAttachmentResponse { part: Some(SentPart::Attachment(attachment_message(known))) };
        Ok(Response::new(stream::once(async { Ok(about) }).chain(parts).boxed()))
    }

    async fn write_attachment(
        &self,
        request: Request<Streaming<WriteAttachmentRequest>>,
    ) -> Result<Response<WriteAttachmentResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Write)?;
        let mut messages = request.into_inner();
        let first = messages.message().await?.and_then(|message| message.part);
        let Some(ReceivedPart::Target(target)) = first else {
            return Err(wrong_field("target", "the first message has `target`, which says where the bytes go"));
        };
        let address = note_address(&caller, target.volume, target.path)?;
        let (condition, conflict): (WriteCondition, fn(String) -> Status) = match target.if_match.as_str() {
            "" => (WriteCondition::Creates, Status::already_exists),
            etag => (WriteCondition::Replaces(tag_header(etag)?), Status::aborted),
        };
        caller.needed_volume(address.volume()).await.map_err(refused)?;
        let bytes = receive_content(&mut messages).await?;
        let stored = rest_attachments::store_attachment(&caller, address, condition, bytes).await;
        let (_, written) = stored.map_err(|problem| unwritten(problem, conflict))?;
        Ok(Response::new(WriteAttachmentResponse { attachment: Some(attachment_message(written)) }))
    }

    async fn delete_attachment(
        &self,
        request: Request<DeleteAttachmentRequest>,
    ) -> Result<Response<DeleteAttachmentResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Write)?;
        let asked = request.into_inner();
        let address = note_address(&caller, asked.volume, asked.path)?;
        let tags = wanted_tag(&asked.if_match)?;
        let removed = rest_attachments::remove_attachment(&caller, address, tags).await;
        removed.map_err(|problem| unwritten(problem, Status::aborted))?;
        Ok(Response::new(DeleteAttachmentResponse {}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;

    #[test]
    fn parts_end_with_the_file() {
        for (offset, length, wanted) in
            [(0, 0, (0, 100)), (10, 0, (10, 100)), (10, 5, (10, 15)), (90, i64::MAX, (90, 100)), (100, 0, (100, 100))]
        {
            assert_eq!(wanted_part(offset, length, 100).expect("a part"), wanted);
        }
        for (offset, length, code) in
            [(101, 0, Code::OutOfRange), (-1, 0, Code::InvalidArgument), (0, -1, Code::InvalidArgument)]
        {
            assert_eq!(wanted_part(offset, length, 100).expect_err("refused").code(), code);
        }
    }
}
