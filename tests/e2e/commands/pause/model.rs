//! Random histories of two projects against a plain model.

use serde_json::Value;

use crate::support::steps::{ok, sh, state};
use crate::support::test_vault::{Random, TestVault};
use crate::support::watchdog_fixture::{all_is_well, configured, moment};

/// What a task is thought to be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Ready,
    Assigned(usize),
    Running(usize),
    Over,
}

/// Two projects, two agents, told of in the plainest way.
struct Model {
    now: i64,
    paused: [bool; 2],
    drained: [usize; 2],
    waits: [bool; 2],
    /// Of each agent in each project: until when its session lasts.
    until: [[Option<i64>; 2]; 2],
    /// Project, and state.
    tasks: Vec<(usize, Is)>,
}

impl Model {
    /// Whether a paused project has come to rest with this.
    fn settle(&mut self, project: usize) {
        if self.paused[project] && self.waits[project] && (0..2).all(|agent| self.until[agent][project].is_none()) {
            self.waits[project] = false;
            self.drained[project] += 1;
        }
    }
}

const PROJECTS: [&str; 2] = ["main", "b"];
const AGENTS: [&str; 2] = ["x", "y"];

/// One random step of hive and model; gives what was done and what became of it, as expected and as it was.
fn step(hive: &mut TestVault, model: &mut Model, random: &mut Random) -> (String, String, String) {
    let (p, a) = (random.below(2) as usize, random.below(2) as usize);
    let (project, agent) = (PROJECTS[p], AGENTS[a]);
    let t = random.below(model.tasks.len() as u64) as usize;
    let (tp, is) = model.tasks[t];
    let task = format!("T-{:04}", t + 1);
    let leave = "EXIT_REQUESTED";
    // An agent without a session is judged by the project of what it is at.
    let of_task = |model: &Model, then: &str| if model.paused[tp] { leave } else { then }.to_owned();
    match random.below(9) {
        0 => {
            model.now += random.below(200) as i64;
            hive.at(&moment(model.now).to_string());
            (format!("+{}", model.now), String::new(), String::new())
        }
        1 => {
            let line = format!("hf-pause look --project {project}");
            let expected = if model.paused[p] { "DUPLICATE" } else { "PAUSED" };
            if !model.paused[p] {
                model.paused[p] = true;
                model.waits[p] = true;
                for agent in 0..2 {
                    model.until[agent][p] = model.until[agent][p].map(|until| until.min(model.now + 300));
                }
                model.settle(p);
            }
            (line.clone(), expected.to_owned(), sh(hive, &line).get("STATUS").to_owned())
        }
        2 | 3 => {
            let line = format!("hf-resume --project {project}");
            let expected = if model.paused[p] { "RESUMED" } else { "DUPLICATE" };
            model.paused[p] = false;
            model.waits[p] = false;
            (line.clone(), expected.to_owned(), sh(hive, &line).get("STATUS").to_owned())
        }
        4 => {
            let line = format!("hf-session login --agent {agent} --project {project} --create");
            let expected = if model.paused[p] { leave } else { "RECORDED" };
            if !model.paused[p] {
                model.until[a][p] = Some(model.now + 3600);
            }
            (line.clone(), expected.to_owned(), sh(hive, &line).get("STATUS").to_owned())
        }
        5 => {
            let line = format!("hf-session logout --agent {agent}");
            let any = model.until[a].iter().any(Option::is_some);
            for project in 0..2 {
                if model.until[a][project].take().is_some() {
                    model.settle(project);
                }
            }
            let expected = if any { "RECORDED" } else { "DUPLICATE" };
            (line.clone(), expected.to_owned(), sh(hive, &line).get("STATUS").to_owned())
        }
        6 => {
            let line = format!("hf-task claim {task} --actor agent:{agent}");
            let expected = match is {
                Is::Assigned(holder) if holder == a => of_task(model, "DUPLICATE"),
                Is::Ready => of_task(model, "CLAIMED"),
                _ => of_task(model, "REFUSED"),
            };
            if expected == "CLAIMED" {
                model.tasks[t].1 = Is::Assigned(a);
            }
            (line.clone(), expected, sh(hive, &line).get("STATUS").to_owned())
        }
        7 => {
            let line = format!("hf-task start {task} --actor agent:{agent}");
            let expected = match is {
                Is::Running(holder) if holder == a => of_task(model, "DUPLICATE"),
                Is::Assigned(holder) if holder == a => of_task(model, "RECORDED"),
                _ => of_task(model, "REFUSED"),
            };
            if expected == "RECORDED" {
                model.tasks[t].1 = Is::Running(a);
            }
            (line.clone(), expected, sh(hive, &line).get("STATUS").to_owned())
        }
        _ => {
            let fails = random.below(2) == 0;
            let how = if fails { "fail T --class permanent --reason x" } else { "succeed T" };
            let line = format!("hf-task {} --actor agent:{agent}", how.replace('T', &task));
            let mine = is == Is::Running(a);
            let expected = of_task(model, if mine { "RECORDED" } else { "REFUSED" });
            if expected == "RECORDED" {
                model.tasks[t].1 = Is::Over;
            }
            let is = sh(hive, &line).get("STATUS").to_owned();
            // What is over already may be called a repetition, too; that is not what this is about.
            match model.tasks[t].1 == Is::Over && !mine {
                true => (line, String::new(), String::new()),
                false => (line, expected, is),
            }
        }
    }
}

#[test]
fn random_histories_of_two_projects_match_a_plain_model() {
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let mut hive = configured("governance:\n  max_concurrent_tasks: 100\n  lease_seconds: 1000000\n");
        let mut tasks = Vec::new();
        for n in 0..8 {
            let project = n % 2;
            ok(&hive, &format!("hf-task propose t{n} --project {} --create", PROJECTS[project]));
            tasks.push((project, Is::Ready));
        }
        let mut model =
            Model { now: 0, paused: [false; 2], drained: [0; 2], waits: [false; 2], until: [[None; 2]; 2], tasks };
        let mut history = Vec::new();
        for _ in 0..70 {
            let (line, expected, is) = step(&mut hive, &mut model, &mut random);
            history.push(format!("{line} -> {is}"));
            assert_eq!(is, expected, "seed {seed}: {line}\n{history:#?}");
        }
        let drained = |project: &str| {
            let about = |event: &&Value| {
                event["event_type"] == "PauseDrained" && event["subject"] == format!("project:{project}")
            };
            hive.events().iter().filter(about).count()
        };
        assert_eq!(PROJECTS.map(drained), model.drained, "seed {seed}: {history:#?}");
        for (t, (_, is)) in model.tasks.iter().enumerate() {
            let at = state(&hive, &format!("T-{:04}", t + 1));
            let fits = match is {
                Is::Ready => at == "Ready",
                Is::Assigned(_) => at == "Assigned",
                Is::Running(_) => at == "Running",
                Is::Over => at == "Succeeded" || at == "Aborted",
            };
            assert!(fits, "seed {seed}: task {t} is {at}, thought {is:?}: {history:#?}");
        }
        // What is left of each session is what the model says.
        let open = |agent: usize, project: usize| {
            let next = ok(&hive, &format!("hf-session next --agent {} --project {}", AGENTS[agent], PROJECTS[project]));
            next.all("REASON") == ["already_running"]
        };
        for agent in 0..2 {
            for project in (0..2).filter(|project| !model.paused[*project]) {
                let holds = model.until[agent][project].is_some_and(|until| model.now <= until);
                assert_eq!(open(agent, project), holds, "seed {seed}: {history:#?}");
            }
        }
        all_is_well(&hive);
    }
}
