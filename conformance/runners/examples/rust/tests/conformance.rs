// Each case as a test of its own, in a project in Rust: cargo test frames/
//
// RUNNER is the program kspec-runner; by default the one on the path.
use libtest_mimic::{Arguments, Failed, Trial};
use std::{collections::HashMap, env, fs, process::Command, process::ExitCode};

/// What starts your broker stands here; in this example it was started before, and BROKER is its address.
fn start_broker() -> String {
    env::var("BROKER").expect("BROKER=HOST:PORT is the broker under test")
}

fn runner() -> Command {
    Command::new(env::var("RUNNER").unwrap_or("kspec-runner".into()))
}

/// Names with their reasons.
fn known_failures() -> HashMap<String, String> {
    let lines = fs::read_to_string("../known-failures.txt").expect("known-failures.txt");
    let pairs = lines.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    pairs.map(|(name, reason)| (name.to_string(), reason.to_string())).collect()
}

fn run_case(name: &str, address: &str, known: Option<&String>) -> Result<(), Failed> {
    let done = runner().args(["--bootstrap-server", address, "--case", name, "--timeout", "5s"]).output()?;
    match (done.status.code(), known) {
        (Some(0), None) => Ok(()),
        (Some(0), Some(_)) if done.stdout.starts_with(b"pass") => Err("it passes, and known-failures.txt says that it fails".into()),
        (Some(0), Some(_)) => Ok(()),
        (Some(1), Some(_)) => Ok(()),
        _ => Err(String::from_utf8_lossy(&done.stderr).into_owned().into()),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let listed = runner().arg("--list").output().expect("kspec-runner is on the path, or RUNNER is its place");
    let names = String::from_utf8(listed.stdout).expect("names");
    let address = if arguments.list { String::new() } else { start_broker() };
    let known = known_failures();
    let trials = names.lines().map(|name| {
        let (name, address, known) = (name.to_string(), address.clone(), known.get(name).cloned());
        Trial::test(name.clone(), move || run_case(&name, &address, known.as_ref()))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
