//! hf-config: the settings in force, where each comes from, how the file differs from them, and an operator's acts: to
//! set a value, to adopt the settings, to trust the vault.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::Context;
use super::authorize::authorize_draft;
use super::kernel::{Transaction, View, with_view};
use crate::base::{Actor, Error, Reason, Result, Subject, Ulid, names};
use crate::event::kind::{CHANGED, FROM, SETTINGS, TO};
use crate::event::{Draft, Kind};
use crate::policy::clock;
use crate::policy::settings::{Regime, Setting, Settings};
use crate::state::State;
use crate::vault::config::unknown_setting;
use crate::vault::{Notices, TrustedVault, Vault};

names! {
    /// Where the value of a setting comes from.
    pub enum Source {
        Default = "default",
        /// The file; not recorded yet.
        File = "file",
        /// The file, and recorded.
        Recorded = "recorded",
        Adopted = "adopted",
    }
}

/// One setting in force.
#[derive(Debug)]
pub struct SettingView {
    /// Its name in the file, with dots between the sections.
    pub name: String,
    pub value: Value,
    pub source: Source,
}

/// The settings in force.
#[derive(Debug)]
pub struct ConfigOutcome {
    pub settings: Vec<SettingView>,
    /// The regime of the log; `Unrecorded` also if the file changed since the settings were recorded.
    pub regime: Regime,
    /// The file that was read, if there is one.
    pub file: Option<PathBuf>,
}

/// Which settings to show.
#[derive(Clone, Debug, Default)]
pub struct ShowConfigRequest {
    /// One setting or one section; default: all.
    pub name: Option<String>,
}

/// Returns the settings in force.
pub fn show(ctx: &Context, request: ShowConfigRequest) -> Result<ConfigOutcome> {
    let vault = ctx.open()?;
    // Unlike everywhere else, a file that cannot be read is an error.
    let file = vault.config_file()?;
    let view = View::open(ctx, &vault)?;
    let (recorded, in_force) = (view.recorded(), view.config());
    let regime = match (Regime::of(recorded), recorded.settings() == Some(file.to_json())) {
        (Regime::Recorded, false) => Regime::Unrecorded,
        (regime, _) => regime,
    };
    let mut settings = in_force.by_name();
    if let Some(name) = &request.name {
        let section = format!("{name}.");
        settings.retain(|known, _| known == name || known.starts_with(&section));
        if settings.is_empty() {
            return Err(unknown_setting(name));
        }
    }
    let (defaults, known) = (Settings::default().by_name(), view.recorded_settings().unwrap_or_default().by_name());
    let source = |name: &str, value: &Value| match Setting::parse(name) {
        Some(setting) if !in_force.values.contains_key(&setting) => Source::Default,
        Some(_) if regime.is_strict() && defaults.get(name) == Some(value) => Source::Default,
        _ if regime.is_strict() => Source::Adopted,
        _ if known.get(name) == Some(value) => Source::Recorded,
        _ => Source::File,
    };
    let settings = settings.into_iter();
    let settings = settings.map(|(name, value)| SettingView { source: source(&name, &value), name, value }).collect();
    Ok(ConfigOutcome { settings, regime, file: file.file })
}

/// One setting that differs between the file and the log.
#[derive(Debug)]
pub struct SettingDifference {
    pub name: String,
    pub recorded: Option<Value>,
    pub file: Option<Value>,
}

/// The differences between two versions of the settings.
fn differences(before: &Settings, after: &Settings) -> Vec<SettingDifference> {
    let value = |change: &Value, member: &str| change.get(member).filter(|value| !value.is_null()).cloned();
    let changes = before.changes_to(after).into_iter();
    changes
        .map(|(name, change)| SettingDifference { name, recorded: value(&change, FROM), file: value(&change, TO) })
        .collect()
}

#[derive(Debug)]
pub struct ConfigDiffOutcome {
    pub regime: Regime,
    pub differences: Vec<SettingDifference>,
}

/// Returns how the file differs from the log. Unless settings were adopted, the next command that writes records those
/// in the file.
pub fn diff(ctx: &Context) -> Result<ConfigDiffOutcome> {
    let vault = ctx.open()?;
    let file = vault.config_file()?;
    let view = View::open(ctx, &vault)?;
    let recorded = view.recorded_settings();
    let differences = match &recorded {
        Some(recorded) => differences(recorded, &file.settings),
        None => {
            let all = file.by_name().into_iter();
            all.map(|(name, value)| SettingDifference { name, recorded: None, file: Some(value) }).collect()
        }
    };
    Ok(ConfigDiffOutcome { regime: Regime::of(view.recorded()), differences })
}

/// Settings that were put in force.
#[derive(Debug)]
pub struct ChangeConfigOutcome {
    /// The event; none if these settings were in force already.
    pub event: Option<Ulid>,
    pub regime: Regime,
    /// What changed.
    pub changes: Vec<SettingDifference>,
    pub warnings: Vec<String>,
}

/// Puts the settings in the file in force. From then on only adopted settings are.
pub fn adopt(ctx: &Context) -> Result<ChangeConfigOutcome> {
    // That the file is not in force is true only until it is adopted.
    let ctx = &Context { notices: Notices::default(), ..ctx.clone() };
    let vault = ctx.open()?;
    vault.config_file()?;
    let view =
        |state: &State| (Settings::recorded(state).unwrap_or_default(), state.tally().is_keyed(), in_force(state));
    let (before, is_keyed, in_force) = with_view(&vault, |_, state| Ok(view(state)))?;
    let is_new = in_force != Some(vault.config_file()?.to_json());
    let plan = |tx: &Transaction<'_>| plan_adoption(ctx, &vault, tx);
    let signed = authorize_draft(ctx, "adopting settings", &vault, is_keyed && is_new, &plan)?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    // As it is now: this command may have waited for the lock.
    let settings = vault.config_file()?.settings;
    let (event, mut warnings) = match adoption(ctx, &tx, &settings) {
        None => (None, std::mem::take(&mut tx.warnings)),
        Some(draft) => record(tx, with_members(draft, signed))?,
    };
    warnings.extend(trust_adopted(&vault, &settings));
    Ok(ChangeConfigOutcome { event, regime: Regime::Adopted, changes: differences(&before, &settings), warnings })
}

/// The settings in force, if they are adopted.
fn in_force(state: &State) -> Option<Value> {
    state.settings().filter(|_| Regime::of(state).is_strict())
}

/// The event that adopts the settings in the file.
pub(super) fn plan_adoption(ctx: &Context, vault: &Vault, tx: &Transaction<'_>) -> Result<Option<Draft>> {
    Ok(adoption(ctx, tx, &vault.config_file()?.settings))
}

fn with_members(draft: Draft, members: Map<String, Value>) -> Draft {
    let payload = draft.payload.into_iter().chain(members).collect();
    Draft { payload, ..draft }
}

/// A setting to change.
#[derive(Clone, Debug, Default)]
pub struct SetConfigRequest {
    /// Its full name, with dots between the sections.
    pub name: String,
    /// The value as it would appear in the file.
    pub value: String,
}

/// Changes a setting in the file and puts it in force: if settings were adopted by adopting, else by recording.
pub fn set(ctx: &Context, request: SetConfigRequest) -> Result<ChangeConfigOutcome> {
    let vault = ctx.open()?;
    let planned = vault.plan_edit(&request.name, &request.value)?;
    let is_keyed = with_view(&vault, |_, state| {
        Ok(state.tally().is_keyed() && in_force(state) != Some(planned.settings.to_json()))
    })?;
    let plan = |tx: &Transaction<'_>| Ok(adoption(ctx, tx, &planned.settings));
    let signed = authorize_draft(ctx, "changing settings", &vault, is_keyed, &plan)?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    let (regime, before) = (Regime::of(tx.state()), Settings::recorded(tx.state()).unwrap_or_default());
    // What others wrote into the file must not be adopted with it.
    if let Some(what) = tx.config.deviation() {
        let why = format!("the settings file {what}; compare them with hf-config diff, and adopt or restore the file");
        return Err(Error::refused(Reason::Changed, why));
    }
    let edit = vault.plan_edit(&request.name, &request.value)?;
    let draft = match regime.is_strict() {
        true => adoption(ctx, &tx, &edit.settings).map(|draft| with_members(draft, signed)),
        false => tx.changed_settings(&edit.settings, &ctx.caller.actor).map(|(kind, payload)| {
            let actor = Actor::core(clock::KERNEL);
            draft(&tx, kind, actor, payload)
        }),
    };
    vault.make_edit(&edit)?;
    let (event, mut warnings) = match draft {
        None => (None, std::mem::take(&mut tx.warnings)),
        Some(draft) => record(tx, draft).inspect_err(|_| {
            // Best effort: if it fails, too, the file differs from what is in force, and every command says so.
            let _ = vault.undo_edit(&edit);
        })?,
    };
    if regime.is_strict() {
        warnings.extend(trust_adopted(&vault, &edit.settings));
    }
    Ok(ChangeConfigOutcome { event, regime, changes: differences(&before, &edit.settings), warnings })
}

/// A vault whose commands are run from here on.
#[derive(Debug)]
pub struct TrustOutcome {
    pub trusted: TrustedVault,
    /// The commands in the settings.
    pub commands: Vec<SettingView>,
}

/// Lets the commands in the settings of this vault be run by this user on this machine.
pub fn trust(ctx: &Context) -> Result<TrustOutcome> {
    ctx.check_operator("trusting a vault")?;
    let vault = ctx.open()?;
    let config = vault.config();
    let trusted = vault.make_trusted(config.adopted.as_ref())?;
    let (names, source) = (config.commands(), if config.adopted.is_some() { Source::Adopted } else { Source::File });
    let commands = config.by_name().into_iter().filter(|(name, _)| names.contains(name));
    let commands = commands.map(|(name, value)| SettingView { name, value, source }).collect();
    Ok(TrustOutcome { trusted, commands })
}

/// The event by which an operator adopts settings; none if these are adopted already.
fn adoption(ctx: &Context, tx: &Transaction<'_>, settings: &Settings) -> Option<Draft> {
    let (recorded, adopted) = (tx.state().settings(), settings.to_json());
    if Regime::of(tx.state()).is_strict() && recorded.as_ref() == Some(&adopted) {
        return None;
    }
    let changed = recorded.as_ref().map(Settings::from_json).unwrap_or_default().changes_to(settings);
    let payload = json!({SETTINGS: adopted, CHANGED: changed});
    Some(draft(tx, Kind::SettingsAdopted, ctx.caller.actor.clone(), payload))
}

fn draft(tx: &Transaction<'_>, kind: Kind, actor: Actor, payload: Value) -> Draft {
    let parents = tx.state().entity(&Subject::SYSTEM).map(|system| system.last_event).into_iter().collect();
    let payload = payload.as_object().cloned().unwrap_or_default();
    Draft { kind, subject: Subject::SYSTEM, actor, parents, key: None, payload }
}

/// Records an event about settings. Returns its id and the warnings.
fn record(mut tx: Transaction<'_>, draft: Draft) -> Result<(Option<Ulid>, Vec<String>)> {
    let kind = draft.kind;
    tx.add(draft)?;
    let asked = tx.batch().events().iter().find(|event| event.event_type.known() == Some(kind)).map(|event| event.id);
    let committed = tx.commit(asked.unwrap_or_default())?;
    Ok((asked, committed.warnings))
}

/// Trusts a vault whose settings this operator adopted. Returns what went wrong.
pub(super) fn trust_adopted(vault: &Vault, settings: &Settings) -> Option<String> {
    let failed = vault.make_trusted(Some(&settings.to_json())).err()?;
    Some(format!("adopted, but commands in the settings are not run until hf-config trust: {failed}"))
}
