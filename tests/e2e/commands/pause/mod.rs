//! hf-pause and hf-resume --project: a project is held up, and goes on where it was.

mod agents;
mod allowed;
mod forged;
mod jobs;
mod managed;
mod model;
mod races;
mod replies;
mod stop;
mod time;
