//! Every setting works, or is named as unused.

mod file;
