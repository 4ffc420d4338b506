//! Replies about documents: files that have a reference.

use super::{Key, Replies, Reply, Status, row};
use crate::base::text::count_noun;
use crate::op::document::{AddOutcome, DocumentStanding, DocumentView, DocumentsOutcome};

fn about(status: Status, view: &DocumentView) -> Reply {
    Reply::new(status, format!("{} is {}", view.reference, view.path.display()))
        .with(Key::Ref, view.reference.as_str())
        .with(Key::Path, view.path.display().to_string())
        .with(Key::Sha256, view.sha256.as_str())
}

impl Replies for DocumentView {
    fn reply(&self) -> Reply {
        about(Status::Ok, self)
    }
}

impl Replies for AddOutcome {
    fn reply(&self) -> Reply {
        let status = if self.recorded.duplicate { Status::Duplicate } else { Status::Recorded };
        about(status, &self.view).with_texts(Key::EventId, &self.recorded.ids).warn(self.recorded.warnings.clone())
    }
}

impl Replies for DocumentsOutcome {
    fn reply(&self) -> Reply {
        let all = &self.documents;
        let wrong = all.iter().filter(|view| view.standing != DocumentStanding::Same).count();
        let status = if wrong == 0 { Status::Ok } else { Status::Failed };
        let document = |view: &DocumentView| {
            row![view.reference.as_str(), view.standing.as_str(), view.path.display().to_string()]
        };
        Reply::new(status, format!("{} of {} unchanged", all.len() - wrong, count_noun(all.len(), "document")))
            .with_rows(Key::Document, all.iter().map(document))
    }
}
