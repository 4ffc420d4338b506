//! hf-append: one event, or many.

mod batch;
mod single;
