#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The package for Debian: lintian accepts it, and in clean roots of several releases it installs, works and purges.

DEB_SUITES: the releases (bookworm trixie). Each root is debootstrapped once and kept in ~/.cache/safescoped."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

from collector import Collector, free_port  # noqa: E402 pylint: disable=wrong-import-position
from harness import BUILD, ROOT, SAFESCOPED, Skip, cases, check, run  # noqa: E402 pylint: disable=wrong-import-position

SUITES = os.environ.get("DEB_SUITES", "bookworm trixie").split()
CLEAN_ROOT = Path(__file__).resolve().parent / "clean-root"
CAPS = re.search(r"^CapabilityBoundingSet=(.*)$", (ROOT / "scripts" / "safescoped.service").read_text(), re.M).group(1).split()
CAP_NUMBERS = {"CAP_DAC_READ_SEARCH": 2, "CAP_SYS_PTRACE": 19, "CAP_SYSLOG": 34, "CAP_PERFMON": 38, "CAP_BPF": 39,
               "CAP_CHECKPOINT_RESTORE": 40, "CAP_LEASE": 28}  # linux/capability.h
PATHS = ("usr/bin/safescoped", "lib/systemd/system/safescoped.service", "etc/safescoped.conf",
         "usr/share/man/man8/safescoped.8.gz", "usr/share/bash-completion/completions/safescoped",
         "usr/share/zsh/vendor-completions/_safescoped", "usr/share/safescoped/safescoped.schema.json")
MADE = []


def package():
    """(the .deb, the output of make-deb), made once."""
    if not MADE:
        done = subprocess.run([ROOT / "scripts" / "make-deb"], capture_output=True, text=True)
        check(done.returncode == 0, f"make-deb ended with {done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
        MADE.append((Path(done.stdout.splitlines()[-1]), done.stdout))
    return MADE[0]


class Debian:
    """A clean root, removed when the test ends; each command mounts what it needs in its own mount namespace."""

    def __init__(self, t, suite):
        self.root = t.dir / "root"
        done = subprocess.run([CLEAN_ROOT, suite, self.root], capture_output=True, text=True)
        if done.returncode == 2:
            raise Skip(done.stderr.strip())
        check(done.returncode == 0, done.stderr)
        t.finally_do(lambda: shutil.rmtree(self.root))

    def run(self, *command, code=0, timeout=900):
        """Run a command in the root; return its standard output."""
        inside = 'mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
               **{k: v for k, v in os.environ.items() if k.endswith("_proxy")}}
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", inside, self.root, *map(str, command)],
                              capture_output=True, text=True, timeout=timeout, env=env)
        check(done.returncode == code, f"{command}: ended with {done.returncode}: {done.stdout[-1500:]} {done.stderr[-1500:]}")
        return done.stdout

    def apt(self, *args):
        return self.run("apt-get", "-qq", "-o", "Acquire::Retries=3", "-o", "Acquire::Check-Valid-Until=false", *args)

    def ours(self):
        """All files with our name, except apt's own lists and cache."""
        found = [p.relative_to(self.root) for top in ("etc", "usr", "lib", "var", "run") for p in (self.root / top).rglob("*safescoped*")
                 if not (self.root / top).is_symlink()]
        return sorted({str(p) for p in found if not str(p).startswith(("var/cache/apt", "var/lib/apt/lists"))})


def test_lintian(t):
    """lintian finds no error and gives no warning."""
    deb, said = package()
    if not shutil.which("lintian"):
        raise Skip("no lintian")
    check(not re.search(r"^[EW]: ", said, re.M), f"it printed {said}")
    check("/etc/safescoped.conf" in subprocess.run(["dpkg-deb", "-I", deb, "conffiles"], capture_output=True, text=True).stdout,
          "the configuration is no conffile")


@cases(*SUITES)
def test_in_a_clean_root(t, suite):
    """The package installs with its dependencies, profiles a program of this host, and leaves nothing when it is
    purged."""
    deb = package()[0]
    debian = Debian(t, suite)
    check(not debian.ours(), f"the root is not clean: {debian.ours()}")
    shutil.copy(deb, debian.root / "safescoped.deb")
    debian.apt("update")
    debian.apt("install", "-y", "--no-install-recommends", "/safescoped.deb")
    for path in PATHS:
        check((debian.root / path).is_file(), f"{path} is not there")
    check("safescoped 0" in debian.run("safescoped", "--version"), "it does not run")
    debian.run("safescoped", "--check-config")
    check("--weight" in debian.run("bash", "-c", ". /usr/share/bash-completion/completions/safescoped; COMP_WORDS=(safescoped --wei); "
                                   "COMP_CWORD=1; _safescoped; echo ${COMPREPLY[@]}"), "bash completes nothing")
    target = t.target("Server", ready="waiting")
    debian.run("safescoped", "--pid", target.pid, "-d", "1", "-f", "json", "-o", "/report.json")
    report = json.loads((debian.root / "report.json").read_text())
    check(report["targets"][0]["pid"] == target.pid, "it profiled another process")
    config = debian.root / "etc" / "safescoped.conf"
    config.write_text("window 5\n")
    debian.apt("remove", "-y", "safescoped")
    check(config.is_file() and not (debian.root / PATHS[0]).exists(), "the configuration is gone, or the program is not")
    # as the service does, whose user is a dynamic one
    for place in ("lib", "cache"):
        made = debian.root / "var" / place / "private" / "safescoped"
        made.mkdir(parents=True)
        (made / "file").write_text("")
        (debian.root / "var" / place / "safescoped").symlink_to("private/safescoped")
    debian.apt("purge", "-y", "safescoped")
    left = [p for p in debian.ours() if not p.startswith("var/log/")]
    check(not left, f"left behind: {left}")


# Run by the booted system; each line `= NAME` begins a section of the output.
SCRIPT = r"""
show() { echo "= $1"; shift; "$@" 2>&1; }
show before systemctl is-enabled safescoped
sed -i 's/^window 60/window 1/' /etc/safescoped.conf
printf 'push %s\nmetrics 127.0.0.1:%s\n' $URL $PORT >>/etc/safescoped.conf
mkdir -p /etc/systemd/system/safescoped.service.d
printf '[Service]\nWatchdogSec=6\nRestartSec=1\nEnvironment=LD_PRELOAD=/usr/lib/host_pids.so\n' >/etc/systemd/system/safescoped.service.d/test.conf
show enable systemctl enable --now safescoped
show status systemctl show safescoped -p ActiveState -p StatusText -p User
processes() {
	for p in $(cat /sys/fs/cgroup/system.slice/safescoped.service/cgroup.procs); do
		awk '/^(Uid|CapEff|Seccomp):/ { printf "%s%s ", $1, $2 } END { print "" }' /proc/$p/status 2>/dev/null # some helpers live only for a moment
	done
}
show processes processes
for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1; done
show windows ls /var/lib/safescoped/
ask() { bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT; printf 'GET $1 HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"; }
show ready ask /readyz
show metrics ask /metrics
show queued find /var/lib/safescoped/push/ -name '*.push'
echo 'windw 3' >>/etc/safescoped.conf
show wrong systemctl reload safescoped
sed -i '/windw/d; s/^frequency 19/frequency 29/' /etc/safescoped.conf
show reload systemctl reload safescoped
touch /run/safescoped/off
sleep 3
show off systemctl show safescoped -p StatusText
rm /run/safescoped/off
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
	sleep 1
	systemctl show safescoped -p StatusText | grep -q Profiling && break
done
show on systemctl show safescoped -p StatusText -p NRestarts
child=$(cat /proc/$(systemctl show -P MainPID safescoped)/task/*/children)
kill -STOP $child
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 1; done
show watchdog systemctl show safescoped -p NRestarts -p ActiveState -p StatusText
show stop systemctl stop safescoped
show stopped systemctl show safescoped -p ActiveState -p Result
show windows_at_end ls /var/lib/safescoped/
show journal journalctl -u safescoped --no-pager -o cat -p 3
show all journalctl -u safescoped --no-pager -o short-precise
"""


def boot(debian, script, **variables):
    """{section: the lines that it printed}"""
    path = debian.root / "script"
    path.write_text("#!/bin/sh\n" + "".join(f"{name}={value}\n" for name, value in variables.items()) + script)
    done = subprocess.run([Path(__file__).resolve().parent / "boot", debian.root, path], capture_output=True, text=True)
    if done.returncode == 2:
        raise Skip(done.stderr.strip())
    said = {}
    for line in (debian.root / "out" / "log").read_text().splitlines():
        if line.startswith("= "):
            said[line[2:]] = lines = []
        else:
            lines.append(line)
    return said


def queue_windows(t, debian, url):
    """Windows that an earlier session left in the queue because no server accepted them; returns their number."""
    queue, files = debian.root / "var/lib/safescoped/push", t.dir / "files"
    files.mkdir()
    queue.mkdir(parents=True)
    replay = subprocess.Popen([SAFESCOPED, "--replay", ROOT / "tests" / "data" / "capture" / "calls", "--window", "0.2", "-f", "json",
                               "-o", files, "--push", url, "--push-queue", queue], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    t.finally_do(lambda: (replay.kill(), replay.wait()))
    check("are kept" in replay.stderr.readline(), "somebody took them")
    deadline = time.monotonic() + 60
    while len(list(queue.rglob("*.push"))) < 4:
        check(time.monotonic() < deadline, "they are not in the queue")
        time.sleep(0.2)
    replay.terminate()
    replay.communicate(timeout=60)
    return len(list(queue.rglob("*.push")))


def test_under_systemd(t):
    """The unit under a real service manager: its user, its privileges, reload, off file, watchdog, stop, its lines in
    the journal; it sends what is queued to a real collector, and serves metrics."""
    collector = Collector(t)
    collector.stop()
    debian = Debian(t, SUITES[0])
    shutil.copy(package()[0], debian.root / "safescoped.deb")
    debian.apt("update")
    debian.apt("install", "-y", "--no-install-recommends", "systemd", "systemd-sysv", "/safescoped.deb")
    (debian.root / "usr/sbin/policy-rc.d").unlink()
    # systemd must be process 1, which takes a PID namespace, in which the daemon refuses to work
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", debian.root / "usr/lib/host_pids.so",
                    Path(__file__).resolve().parent / "host_pids.c"], check=True)
    n = queue_windows(t, debian, collector.url)
    collector.start()
    said = boot(debian, SCRIPT, URL=collector.url, PORT=free_port())
    # windows in which nothing happened are not queued
    check(collector.sink.seen.qsize() == n and not said["queued"],
          f"of {n} windows {collector.sink.seen.qsize()} came; {said['queued']} are left; {said['all']}")
    check(all(said[what][0].split()[1] == "200" for what in ("ready", "metrics")), f"{said['ready']} {said['metrics']}")
    delivered = [line.split()[-1] for line in said["metrics"] if line.startswith("safescoped_push_delivered_total{")]
    check(len(delivered) == 1 and int(delivered[0]) >= n, f"{delivered} of {n} were delivered: {said['metrics']}")
    check(said["before"] == ["disabled"], f"it began by itself: {said['before']}")
    check(set(said["status"]) == {"ActiveState=active", "StatusText=Profiling", "User=safescoped"}, f"{said['status']} {said['all']}")
    caps = sum(1 << CAP_NUMBERS[c] for c in CAPS)
    processes = [dict(word.split(":") for word in line.split()) for line in said["processes"] if line]
    check(len(processes) >= 3 and all(p["Uid"] != "0" and p["Seccomp"] == "2" for p in processes), f"{processes}")
    check(any(int(p["CapEff"], 16) == caps for p in processes), f"no process has its capabilities: {processes}")
    check(all(int(p["CapEff"], 16) & ~caps == 0 for p in processes), f"{processes}")
    first, last = set(said["windows"]), set(said["windows_at_end"])
    check(len(first) >= 4 and first < last, f"windows: {said['windows']}, {said['windows_at_end']}")
    check(not said["wrong"] and not said["reload"], f"{said['wrong']} {said['reload']}")
    check(said["off"] == ["StatusText=Switched off"] and set(said["on"]) == {"StatusText=Profiling", "NRestarts=0"},
          f"{said['off']} {said['on']}")
    check(set(said["watchdog"]) == {"NRestarts=1", "ActiveState=active", "StatusText=Profiling"}, f"{said['watchdog']} {said['all']}")
    check(set(said["stopped"]) == {"ActiveState=inactive", "Result=success"}, f"{said['stopped']} {said['all']}")
    check(any(line.startswith("/etc/safescoped.conf:") and "windw" in line for line in said["journal"]), f"{said['journal']}")


if __name__ == "__main__":
    check(BUILD.is_dir(), "nothing is built")
    run(globals())
