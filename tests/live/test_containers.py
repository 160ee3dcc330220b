#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The files for containers: checked by their linters, and against the program's real libraries and Kubernetes' own
schemas."""

import copy
import json
import re
import shutil
import subprocess
from pathlib import Path

from harness import BUILD, ROOT, SAFESCOPED, Skip, check, run
from test_rights import CAPS

MODULES = BUILD / "npm" / "node_modules"
CONTAINERFILE = ROOT / "scripts" / "Containerfile"
MANIFEST = ROOT / "scripts" / "kubernetes.yaml"


def module(name):
    if not (MODULES / name).is_dir() or not shutil.which("node"):
        raise Skip(f"no node, or no {name} (npm)")
    return MODULES / name


def objects():
    """All objects of the manifest, read by the YAML reader of the system's Python."""
    done = subprocess.run(["/usr/bin/python3", "-c", "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))"],
                          input=MANIFEST.read_text(), capture_output=True, text=True)
    if done.returncode:
        raise Skip(f"no python3-yaml: {done.stderr}")
    return json.loads(done.stdout)


def of_kind(kind):
    found = [o for o in objects() if o["kind"] == kind]
    check(len(found) == 1, f"{len(found)} of kind {kind}")
    return found[0]


def against_schemas(what):
    module("kubernetes-models")
    done = subprocess.run(["node", ROOT / "tests" / "live" / "check_kubernetes.cjs", MODULES], input=json.dumps(what),
                          capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_manifest(t):
    """Its objects match Kubernetes' schemas, and an invalid one is rejected."""
    code, lines = against_schemas(objects())
    check(code == 0 and lines == ["Namespace ConfigMap DaemonSet"], f"{lines}")
    wrong = copy.deepcopy(of_kind("DaemonSet"))
    wrong["spec"]["template"]["spec"]["containers"][0]["args"] = "--config"
    code, lines = against_schemas([wrong])
    check(code == 1 and "args" in lines[0], f"what is wrong is accepted: {lines}")


def test_manifest_rights(t):
    """The container has the host's processes and the capabilities that tests show to be needed, and nothing else."""
    pod = of_kind("DaemonSet")["spec"]["template"]["spec"]
    allowed = pod["containers"][0]["securityContext"]
    check(pod["hostPID"] is True and not {"hostNetwork", "hostIPC"} & set(pod), f"{pod.keys()}")
    check(allowed["capabilities"]["drop"] == ["ALL"], f"{allowed}")
    check([f"CAP_{c}" for c in allowed["capabilities"]["add"]] == CAPS, f"{allowed}")
    check(not allowed["privileged"] and not allowed["allowPrivilegeEscalation"] and allowed["readOnlyRootFilesystem"], f"{allowed}")


def test_manifest_configuration(t):
    """The configuration in it is valid, and is mounted where the container looks for it."""
    files = of_kind("ConfigMap")["data"]
    path = t.dir / "safescoped.conf"
    path.write_text(files["safescoped.conf"])
    done = subprocess.run([SAFESCOPED, "--check-config", "--config", path], capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    container = of_kind("DaemonSet")["spec"]["template"]["spec"]["containers"][0]
    mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    node, = container["env"]
    check(node["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName", f"{node}")
    check(container["args"] == ["--config", f"{mounts['config']}/safescoped.conf", "--host-name", f"$({node['name']})"],
          f"{container['args']}")
    conf = dict(line.split(" ", 1) for line in files["safescoped.conf"].splitlines() if not line.startswith("#"))
    check(conf["output"] == mounts["state"] and conf["push-queue"].startswith(mounts["state"]), "what it keeps is lost with it")
    port, = container["ports"]
    # IPv6, too: a pod may have no IPv4 address
    check(conf["metrics"] == f"[::]:{port['containerPort']}", f"{conf}, {port}")
    asks = {probe: (container[probe]["httpGet"]["path"], container[probe]["httpGet"]["port"])
            for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    check(asks == {"startupProbe": ("/healthz", port["name"]), "livenessProbe": ("/healthz", port["name"]),
                   "readinessProbe": ("/readyz", port["name"])}, f"{asks}")
    template = of_kind("DaemonSet")["spec"]["template"]["metadata"]
    check(template["annotations"]["prometheus.io/port"] == str(port["containerPort"]), f"{template}")


def packages(text):
    """What each `apt-get install` of the Containerfile installs."""
    found = re.findall(r"apt-get install -y --no-install-recommends ((?:.|\\\n)*?)&&", text)
    return [set(words.replace("\\", " ").split()) for words in found]


def test_containerfile(t):
    done = subprocess.run(["node", module("dockerfilelint") / "bin" / "dockerfilelint", "-o", "json", CONTAINERFILE],
                          capture_output=True, text=True)
    found = json.loads(done.stdout)
    check(found["totalIssues"] == 0, f"{found}")


def test_containerfile_packages(t):
    """The build stage installs what Debian's package needs to build; the final image has the libraries that the program
    needs."""
    build, runs = packages(CONTAINERFILE.read_text())
    control = (ROOT / "scripts" / "debian" / "control").read_text()
    wanted = re.search(r"^Build-Depends: (.*(?:\n .*)*)", control, re.M).group(1)
    wanted = {re.sub(r" .*", "", w.strip()) for w in wanted.split(",")} - {"debhelper-compat"}
    check(build - wanted == {"gcc", "libc6-dev", "linux-libc-dev", "make"} and wanted <= build, f"{build ^ wanted}")
    if 'VERSION_ID="12"' not in Path("/etc/os-release").read_text():
        raise Skip("another release than the image's")
    dynamic = subprocess.run(["readelf", "-d", SAFESCOPED], capture_output=True, text=True, check=True).stdout
    libraries = set(re.findall(r"\(NEEDED\).*\[(\S+)\]", dynamic)) - {"libc.so.6", "libm.so.6"}
    owners = subprocess.run(["dpkg", "-S", *(f"/*/{name}" for name in libraries)], capture_output=True, text=True).stdout
    have = {line.split(":")[0] for line in owners.splitlines() if "/x86_64-linux-gnu/" in line}
    # not a linked library: the certificates that a server's is verified with
    check(have | {"ca-certificates"} == runs, f"the program needs {have}, the image has {runs}")


if __name__ == "__main__":
    run(globals(), kernel=False)
