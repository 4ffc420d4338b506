//! The log behind one seam: operations run the same over a log that is kept in memory, and the vault's own files are
//! only one place to keep it.

use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use hiveforge::base::{Actor, Result, Timestamp, Ulid};
use hiveforge::chain::Head;
use hiveforge::event::Event;
use hiveforge::op::agent::{self, CheckpointRequest};
use hiveforge::op::session::{self, LoginRequest};
use hiveforge::op::task::{self, ClaimRequest, HeartbeatRequest, ProposeTaskRequest, StartTaskRequest, SucceedRequest};
use hiveforge::op::{self, Caller, Context, Shell};
use hiveforge::policy::audit::Audit;
use hiveforge::state::State;
use hiveforge::vault::{Append, Batch, Log, LogStore, LogView, LogWatch, Visited, WriteOptions, head_moved};

use crate::support::test_vault::TestVault;

/// A log in memory.
#[derive(Debug, Default)]
struct Memory {
    events: Mutex<Vec<Event>>,
    grown: Condvar,
}

#[derive(Debug)]
struct Part(Vec<Event>);

impl Log for Part {
    fn head(&self) -> Option<Head> {
        self.0.last().map(Head::at)
    }

    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_from(&self, id: Ulid, visit: &mut dyn FnMut(Event) -> Visited) -> Result<()> {
        for event in self.0.iter().filter(|event| event.id >= id) {
            if visit(event.clone())? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn read_back(&self, visit: &mut dyn FnMut(Event) -> Visited) -> Result<()> {
        for event in self.0.iter().rev() {
            if visit(event.clone())? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn batch_of(&self, id: Ulid) -> Result<Option<(Vec<Event>, usize)>> {
        let Some(at) = self.0.iter().position(|event| event.id == id) else { return Ok(None) };
        let (no, of) = self.0[at].batch.map_or((1, 1), |batch| (batch.no as usize, batch.of as usize));
        let first = at + 1 - no;
        Ok(Some((self.0[first..first + of].to_vec(), no - 1)))
    }
}

impl Memory {
    fn part(&self) -> Part {
        Part(self.events.lock().unwrap().clone())
    }

    fn kinds(&self) -> Vec<String> {
        self.part().0.iter().map(|event| event.event_type.as_str().to_owned()).collect()
    }
}

fn fold(part: Part) -> LogView {
    let mut state = State::default();
    part.0.iter().for_each(|event| state.apply(event));
    (Box::new(part), state)
}

/// The second writer is refused, where the vault's own files would make it wait.
#[derive(Debug)]
struct Optimist<'a>(&'a Memory);

impl Append for Optimist<'_> {
    fn view(&mut self) -> Result<LogView> {
        Ok(fold(self.0.part()))
    }

    fn append(&mut self, head: Option<Head>, unit: Batch, _: usize) -> Result<Vec<Event>> {
        let mut events = self.0.events.lock().unwrap();
        if events.last().map(Head::at) != head {
            return Err(head_moved());
        }
        let (new, ..) = unit.seal(head)?;
        events.extend(new.iter().cloned());
        self.0.grown.notify_all();
        Ok(new)
    }

    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
}

struct Waiter<'a>(&'a Memory, usize);

impl LogWatch for Waiter<'_> {
    fn wait(&mut self) {
        let events = self.0.events.lock().unwrap();
        let (events, _) =
            self.0.grown.wait_timeout_while(events, Duration::from_secs(1), |events| events.len() == self.1).unwrap();
        self.1 = events.len();
    }
}

impl LogStore for Memory {
    fn view(&self) -> Result<LogView> {
        Ok(fold(self.part()))
    }

    fn append(&self, _: WriteOptions) -> Result<Box<dyn Append + '_>> {
        Ok(Box::new(Optimist(self)))
    }

    fn watch(&self) -> Box<dyn LogWatch + '_> {
        Box::new(Waiter(self, self.part().0.len()))
    }
}

fn caller(name: &str) -> Caller {
    Caller { actor: Actor::parse(&format!("agent:{name}")).unwrap(), shell: Shell::Agents(name.to_owned()) }
}

/// A day at work, and what is late at its end.
fn life(person: &Context) -> Vec<String> {
    let moved = |ctx: &Context, seconds: u64| Context {
        now: hiveforge::base::Now { millis: ctx.now.millis + seconds * 1000 },
        ..ctx.clone()
    };
    let a = Context { caller: caller("a"), ..person.clone() };
    let mut said = Vec::new();
    for title in ["One", "Two"] {
        let request = ProposeTaskRequest { title: Some(title.to_owned()), ..ProposeTaskRequest::default() };
        said.push(task::propose(person, request).unwrap().entity.unwrap().name());
    }
    session::login(&a, LoginRequest::default()).unwrap();
    let claim = |reference: &str, lease| ClaimRequest {
        reference: Some(reference.to_owned()),
        lease_seconds: Some(lease),
        ..ClaimRequest::default()
    };
    task::claim(&a, claim("T-0001", 600)).unwrap();
    task::claim(&a, claim("T-0002", 60)).unwrap();
    let start = StartTaskRequest { reference: "T-0001".to_owned(), ..StartTaskRequest::default() };
    task::start(&a, start.clone()).unwrap();
    let here = CheckpointRequest { activity: "Here".to_owned(), ..CheckpointRequest::default() };
    agent::checkpoint(&moved(&a, 30), here).unwrap();
    // The short lease has passed, and somebody else takes it.
    let b = Context { caller: caller("b"), ..moved(person, 120) };
    task::claim(&b, ClaimRequest::default()).unwrap();
    let beat = HeartbeatRequest { reference: "T-0002".to_owned(), ..HeartbeatRequest::default() };
    said.push(task::heartbeat(&moved(&a, 121), beat).unwrap_err().message);
    let done = SucceedRequest { reference: "T-0001".to_owned(), ..SucceedRequest::default() };
    task::succeed(&moved(&a, 122), done).unwrap();
    let status = op::status(&moved(person, 123), op::StatusRequest::default()).unwrap();
    said.extend(status.tasks.iter().map(|(phase, count)| format!("{phase} {count}")));
    said
}

#[test]
fn the_same_operations_on_files_and_in_memory_leave_the_same_log() {
    let (files, memory) = (TestVault::new(), TestVault::new());
    let store = Arc::new(Memory::default());
    store.events.lock().unwrap().extend(memory.recorded());
    let kept: Arc<dyn LogStore> = Arc::clone(&store) as Arc<dyn LogStore>;
    let over_memory = Context { store: Some(kept), ..memory.context() };
    let before = memory.lines();
    assert_eq!(life(&files.context()), life(&over_memory));
    let kinds: Vec<String> =
        files.events().iter().map(|event| event["event_type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(store.kinds(), kinds);
    assert_eq!(memory.lines(), before, "nothing was written to the files");
    let mut audit = Audit::default();
    let wrong: Vec<_> = store.part().0.iter().flat_map(|event| audit.check(event)).collect();
    assert_eq!(wrong, []);
}

#[test]
fn a_unit_is_refused_after_a_stale_head() {
    let hive = TestVault::new();
    let store = Arc::new(Memory::default());
    store.events.lock().unwrap().extend(hive.recorded());
    let head = store.part().head();
    let unit = |n: u64| {
        let (log, state) = LogStore::view(&*store).unwrap();
        let mut unit = Batch::new(state, log.head(), hive.context().now);
        unit.push(crate::rules::log_in_memory::proposal(n)).unwrap();
        unit
    };
    let (first, second) = (unit(1), unit(2));
    let mut writer = LogStore::append(&*store, hive.context_options()).unwrap();
    assert_eq!(writer.append(head, first, 0).unwrap().len(), 1);
    let error = writer.append(head, second, 0).unwrap_err();
    assert_eq!(error.kind, hiveforge::base::ErrorKind::Busy);
    assert_eq!(store.part().count(), 2);
}

#[test]
fn a_watcher_is_woken_when_the_log_grows() {
    let hive = TestVault::new();
    let store = Arc::new(Memory::default());
    store.events.lock().unwrap().extend(hive.recorded());
    let grown = thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let mut watch = LogStore::watch(&*store);
            while store.part().count() < 2 {
                watch.wait();
            }
            store.part().count()
        });
        let (log, state) = LogStore::view(&*store).unwrap();
        let mut unit = Batch::new(state, log.head(), hive.context().now);
        unit.push(proposal(1)).unwrap();
        let mut writer = LogStore::append(&*store, hive.context_options()).unwrap();
        writer.append(log.head(), unit, 0).unwrap();
        waits.join().unwrap()
    });
    assert_eq!(grown, 2);
}

pub fn proposal(n: u64) -> hiveforge::event::Draft {
    let payload = serde_json::json!({"title": format!("x{n}")});
    hiveforge::event::Draft {
        kind: hiveforge::event::Kind::RequirementProposed,
        subject: hiveforge::base::Subject::parse(&format!("requirement:r{n}")).unwrap(),
        actor: Actor::parse("user:jo").unwrap(),
        parents: Vec::new(),
        key: None,
        payload: payload.as_object().unwrap().clone(),
    }
}

impl TestVault {
    fn context_options(&self) -> WriteOptions {
        assert!(Timestamp::parse(self.now()).is_some());
        WriteOptions { lock_timeout: Duration::ZERO, now: self.context().now, segment_max_bytes: 1 << 20 }
    }
}
