//! Why a run of another device isn't carried out here, or a decision about it isn't applied.

use crate::send_errors::SentRunError;
use engine::CommandError;
use host::OwnerGone;
use host::peers::work::SignedTextError;

/// Why a run of another device isn't carried out here, or a decision about it isn't applied.
#[derive(Debug, thiserror::Error)]
pub enum CarryOutError {
    /// A run has the order's id although nobody has claimed it before.
    #[error("there is a run with this id that nobody has carried out")]
    NotCarriedOut,
    /// The run's document is about something else.
    #[error("the run's document isn't about what was ordered, so it isn't continued")]
    OtherOrder,
    /// The run only follows a trace, which ends with its worker.
    #[error("its worker has failed, and in the mode follower no other one continues")]
    FollowerLost,
    /// Another device signed the decision, or it's about another run.
    #[error("it isn't from the device that sent the run")]
    OtherOwner,
    /// No call waits for the decision.
    #[error("nothing waits for it")]
    NothingWaits,
    /// The call has changed since the owner saw it.
    #[error("it's about another request than the one here")]
    OtherRequest,
    /// The run's document can't be read.
    #[error("{why}")]
    Unreadable {
        /// The reason, as a clause.
        why: String,
    },
    /// The run's document wasn't read in time.
    #[error("the run could not be read in a minute")]
    Unread,
    /// The run isn't loaded.
    #[error("the run was closed meanwhile")]
    Closed,
    /// The signature of a decision doesn't hold.
    #[error(transparent)]
    Signature(#[from] SignedTextError),
    /// A decision can't be read.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    /// An agent isn't available, or the setup can't be read.
    #[error(transparent)]
    Setup(Box<SentRunError>),
    /// A command was refused.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// What happens can't be told.
    #[error(transparent)]
    Output(#[from] std::io::Error),
    /// The program is closing.
    #[error(transparent)]
    Gone(#[from] OwnerGone),
}

impl From<SentRunError> for CarryOutError {
    fn from(error: SentRunError) -> CarryOutError {
        CarryOutError::Setup(Box::new(error))
    }
}
