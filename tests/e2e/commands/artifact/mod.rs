//! hf-artifact: what work brings forth.

mod content;
mod declare;
mod manifest;
