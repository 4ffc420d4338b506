//! Ways to be wrong. A judge that believes one of them plays the part of a faulty watchdog, so that it can be shown that
//! the true judge disagrees (`--self-test`).

macro_rules! lies {
    ($($(#[$about:meta])* $lie:ident,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Lie { $($(#[$about])* $lie,)* }
        /// All of them.
        pub const LIES: &[Lie] = &[$(Lie::$lie,)*];
    };
}

lies! {
    /// A limit fails in its own second.
    LimitsEarly,
    /// A limit fails a second too late.
    LimitsLate,
    /// Nobody is watched.
    NobodyWatched,
    /// A file counts from the tick that finds it.
    TickTime,
    /// Of several new logs only the newest counts.
    NewestOnly,
    /// A file with an older id than a known one is dropped.
    LateDropped,
    /// A log in the same beat ends a declaration.
    EqualEnds,
    /// A declaration that its agent renamed or deleted stays open.
    RenamedStaysOpen,
    /// A declaration that is found renamed was never there.
    RenamedUnseen,
    /// Strict deep work is not ended by a newer declaration.
    StrictStays,
    /// A log after the deadline completes strict deep work.
    LateLogCompletes,
    /// Strict deep work that ran out says so in every tick.
    ExpiredAgain,
    /// Checks stay suspended after strict deep work ran out.
    ExpiredSuspends,
    /// Flexible deep work needs no checkpoints.
    FlexibleUnchecked,
    /// Flexible deep work does not suspend the introspection.
    FlexibleIntrospects,
    /// Strict deep work does not suspend silence.
    StrictSilence,
    /// A broken duty is reported in strict deep work.
    StrictDuty,
    /// Checkpoints are no sign of life.
    CheckpointsIgnored,
    /// Without a log, an introspection is never overdue.
    CheckpointsAlone,
    /// The end of deep work does not put off the introspection.
    EndIgnored,
    /// The end of expired deep work puts off the introspection.
    ExpiredPutsOff,
    /// There is no duty.
    NoDuty,
    /// A closing log that is an introspection does not meet the duty.
    ClosingNeverMeets,
    /// The closing log itself must be an introspection.
    ClosingMustMeet,
    /// Only a log that ended the deep work is a closing log.
    OnlyEndingCloses,
    /// A broken duty is never met.
    DutyStays,
    /// An emergency puts off the duty every time.
    EmergencyTwice,
    /// An emergency is never one.
    EmergencyNever,
    /// An emergency may be anywhere in a log.
    EmergencyAnywhere,
    /// An emergency meets the duty.
    EmergencyMeets,
    /// The word 内省 means nothing.
    NoWord,
    /// The number after the id is compared as text.
    NumbersAsText,
    /// Logs under one id have no order.
    NumbersReversed,
    /// Subthemes are not read.
    NoSubthemes,
    /// A link hides everything else.
    LinkHidesAll,
    /// What cannot be read is not reported.
    UnreadableSilent,
    /// What cannot be read is reported once.
    UnreadableOnce,
    /// A malformed declaration is not reported.
    MalformedSilent,
    /// Strict deep work may take any time.
    NoStrictLimit,
    /// Ids from the future count at once.
    FutureCounts,
    /// Ids from the future are not reported.
    FutureSilent,
    /// An id from the future hides older ones.
    FutureHides,
    /// An id slightly ahead counts only when its time has come.
    AheadWaits,
    /// Ids are always UTC.
    AlwaysUtc,
    /// In the hour that occurs twice, the first reading is true.
    FirstReading,
    /// In the hour that occurs twice, the second reading is true.
    LastReading,
    /// Suspended time counts.
    SleepCounts,
    /// A boot changes nothing.
    BootIgnored,
    /// A gap between ticks is taken for sleep.
    GapIsSleep,
    /// Everything in an old tree counts.
    OldCounts,
    /// Theme histories are activity logs.
    ThemeHistoriesCount,
    /// Without caches, everything counts again.
    CachesMatter,
}
