//! The files of an agent as plain data: what deeds change, and what the judge looks at.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    File(String),
    Link,
    Folder,
}

/// Everything in `ai-works/`, by path. Folders appear only where a file should be.
pub type Tree = BTreeMap<String, Entry>;

/// What an agent or a person does. Paths are relative to `ai-works/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    Write {
        path: String,
        text: String,
    },
    Remove(String),
    Rename {
        from: String,
        to: String,
    },
    /// A symbolic link to something in a folder next to `ai-works/`.
    Link {
        path: String,
        target: String,
    },
    Folder(String),
    /// The caches of the vault are deleted.
    Forget,
}

impl Deed {
    /// Does it to the data.
    pub fn apply(&self, tree: &mut Tree) {
        match self {
            Deed::Write { path, text } => drop(tree.insert(path.clone(), Entry::File(text.clone()))),
            Deed::Remove(path) => drop(tree.remove(path)),
            Deed::Rename { from, to } => rename(tree, from, to),
            Deed::Link { path, .. } => drop(tree.insert(path.clone(), Entry::Link)),
            Deed::Folder(path) => drop(tree.insert(path.clone(), Entry::Folder)),
            Deed::Forget => {}
        }
    }

    /// The deed as a line of a shell script, run in the folder of the vault.
    pub fn shown(&self) -> String {
        let quoted = |text: &str| {
            let short: String = text.chars().take(60).collect();
            let rest = text.chars().count() - short.chars().count();
            let more = if rest > 0 { format!("…{rest} more characters") } else { String::new() };
            format!("{}{more}", short.escape_debug().to_string().replace('\'', "’"))
        };
        match self {
            Deed::Write { path, text } => format!("printf '{}' >ai-works/{path}", quoted(text)),
            Deed::Remove(path) => format!("rm -r ai-works/{path}"),
            Deed::Rename { from, to } => format!("mv ai-works/{from} ai-works/{to}"),
            Deed::Link { path, target } => format!("ln -s $PWD/elsewhere/{target} ai-works/{path}"),
            Deed::Folder(path) => format!("mkdir ai-works/{path}"),
            Deed::Forget => "rm Vault/Akashic/*.json".to_owned(),
        }
    }
}

/// Renames a file, if it is there.
pub fn rename(tree: &mut Tree, from: &str, to: &str) {
    if let Some(entry) = tree.remove(from) {
        tree.insert(to.to_owned(), entry);
    }
}
