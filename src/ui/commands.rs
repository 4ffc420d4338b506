//! The commands of the toolkit, each with one line.

/// A command's name without `hf-`, and what it is for.
pub const COMMANDS: &[(&str, &str)] = &[
    ("activity", "log an activity that is over"),
    ("append", "record events"),
    ("artifact", "store, read and judge what work brings forth"),
    ("backup", "make a consistent, verified copy of the vault"),
    ("checkpoint", "say in one short line what you are doing"),
    ("constraint", "ask for a constraint to hold, or no longer"),
    ("decide", "ask an operator, and answer as one"),
    ("deepwork", "declare deep work, look at it, end it"),
    ("init", "make a vault"),
    ("job", "fire commands that outlive their caller, and look after them"),
    ("lineage", "ask why something is as it is, and what came of it"),
    ("log", "read events"),
    ("poll", "wait for a job, and say what to run next"),
    ("project", "show the state, list it, rebuild or check its caches"),
    ("ref", "name files by short references that carry their hash"),
    ("require", "put requirements in, analyse and verify them"),
    ("resume", "let work start again after a stop"),
    ("review", "have a spec reviewed in turn, round by round"),
    ("state", "keep the state of a mission in 200 words, and do its work"),
    ("status", "show how everything stands"),
    ("stop", "stop everything"),
    ("task", "propose, claim and do work, and ask why it stands where it stands"),
    ("verify", "check the hash chain and what it proves"),
    ("watchdog", "look for what has fallen silent or is overdue"),
];
