//! Two hosts on one machine: network namespaces with a link between them, where root may make them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, process};

/// Two namespaces, in each of which one rank runs; removed when this is dropped.
pub struct Hosts {
    names: [String; 2],
    folder: PathBuf,
}

const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

impl Hosts {
    /// `None` where they cannot be made.
    pub fn new() -> Option<Self> {
        let id = process::id();
        let names = [format!("ag{id}a"), format!("ag{id}b")];
        let folder = env::temp_dir().join(format!("autograd-mpi-hosts-{id}"));
        fs::create_dir_all(&folder).ok()?;
        let hosts = Self { names, folder };
        let [a, b] = &hosts.names;
        let agent = format!("#!/bin/sh\nshift\nexec ip netns exec {b} sh -c \"$*\"\n");
        fs::write(hosts.agent(), agent).ok()?;
        run("chmod", &format!("+x {}", hosts.agent().display()))?;
        for name in [a, b] {
            run("ip", &format!("netns add {name}"))?;
        }
        run("ip", &format!("link add agv1 netns {a} type veth peer name agv2 netns {b}"))?;
        for (i, name) in [a, b].into_iter().enumerate() {
            let (link, address) = (format!("agv{}", i + 1), ADDRESSES[i]);
            run("ip", &format!("-n {name} addr add {address}/24 dev {link}"))?;
            run("ip", &format!("-n {name} link set lo up"))?;
            run("ip", &format!("-n {name} link set {link} up"))?;
        }
        Some(hosts)
    }

    /// Limits the rate of the link in both directions.
    #[allow(dead_code, reason = "only the benchmark does")]
    pub fn limit(&self, rate: &str) -> Option<()> {
        for (i, name) in self.names.iter().enumerate() {
            let link = format!("netns exec {name} tc qdisc replace dev agv{}", i + 1);
            run("ip", &format!("{link} root tbf rate {rate} burst 1mb latency 50ms"))?;
        }
        Some(())
    }

    /// Cuts the link.
    #[allow(dead_code, reason = "only the tests do")]
    pub fn cut(&self) -> Option<()> {
        run("ip", &format!("-n {} link set agv2 down", self.names[1]))
    }

    /// A command that starts a program with one rank on each host, and ends it after so many seconds.
    pub fn command(&self, seconds: u64, program: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", &seconds.to_string(), "ip", "netns", "exec", &self.names[0]]);
        let open = "mpirun --allow-run-as-root --oversubscribe --bind-to none --mca btl tcp,self \
                    --mca mpi_yield_when_idle 1 --mca plm_rsh_agent";
        command.args(open.split_whitespace()).arg(self.agent());
        let [a, b] = ADDRESSES;
        command.args(["--host", &format!("{a}:1,{b}:1"), "-n", "2"]);
        for name in ["AUTOGRAD_MPI_JOB", "AUTOGRAD_MPI_THREADS"] {
            command.args(["-x", name]);
        }
        command.arg(program);
        command
    }

    fn agent(&self) -> PathBuf {
        self.folder.join("agent.sh")
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // Behind a cut link, daemons of the launcher do not end by themselves.
            let inside = Command::new("ip").args(["netns", "pids", name]).output();
            let inside = inside.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
            for process in inside.unwrap_or_default().split_whitespace() {
                run("kill", &format!("-9 {process}"));
            }
            run("ip", &format!("netns del {name}"));
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn run(program: &str, arguments: &str) -> Option<()> {
    let output = Command::new(program).args(arguments.split_whitespace()).output().ok()?;
    output.status.success().then_some(())
}
