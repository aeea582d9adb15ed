import { describe, expect, it } from "vitest";
import type { FileChange } from "../sandbox/sandbox.ts";
import { findSuspects } from "./tampering.ts";

const PATH = "/usr/local/bin:/usr/bin:/bin";

function find(
  changes: readonly (readonly [path: string, change?: FileChange["change"], kind?: FileChange["kind"]])[],
) {
  return findSuspects(
    changes.map(([path, change = "added", kind = "file"]) => ({ path, change, kind })),
    { workdir: "/app", path: PATH },
  );
}

describe("what a hardened verifier does without", () => {
  it.each([
    ["/etc/ld.so.preload", "loader_file"],
    ["/etc/ld.so.conf.d/x.conf", "loader_file"],
    ["/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3/libc.so.6", "loader_file"],
    ["/root/.bashrc", "shell_startup"],
    ["/etc/profile.d/a.sh", "shell_startup"],
    ["/usr/lib/python3/dist-packages/sitecustomize.py", "interpreter_hook"],
    ["/usr/local/lib/python3.12/site-packages/evil.pth", "interpreter_hook"],
    ["/usr/local/lib/python3.12/site-packages/e-1.dist-info/entry_points.txt", "interpreter_hook"],
    ["/root/.local/lib/python3.12/site-packages/pytest/__init__.py", "interpreter_hook"],
    ["/app/pytest.py", "interpreter_hook"],
    ["/conftest.py", "test_settings"],
    ["/pyproject.toml", "test_settings"],
    ["/root/.config/pip/pip.conf", "tool_settings"],
    ["/logs/verifier/reward.txt", "planted_report"],
    ["/tests/test.sh", "planted_tests"],
  ])("%s: %s", (path, kind) => {
    const { evidence, without } = find([[path]]);
    expect(evidence).toEqual([{ kind, path, change: "added" }]);
    expect(without.some(left => path === left || path.startsWith(`${left}/`))).toBe(true);
  });

  it.each([
    ["/usr/bin/python3", "file"],
    ["/usr/lib/x86_64-linux-gnu/libc.so.6", "link"],
    ["/bin/sh", "file"],
    ["/usr/local/lib/python3.12/json/__init__.py", "file"],
    ["/etc/alternatives/awk", "link"],
  ] as const)("the image's own %s, changed", (path, kind) => {
    const { evidence, without } = find([[path, "modified", kind]]);
    expect(evidence).toEqual([{ kind: "replaced_program", path, change: "modified" }]);
    expect(without).toContain(path);
  });

  it.each(["/etc", "/usr/local/bin", "/root/.local", "/logs/verifier", "/tests", "/lib"])(
    "a link in the place of %s",
    path => {
      const { evidence, without } = find([[path, "modified", "link"]]);
      expect(evidence).toEqual([{ kind: "redirected_folder", path, change: "modified" }]);
      expect(without).toContain(path);
    },
  );
});

describe("what is carried, because it is work", () => {
  it.each([
    ["/etc/nginx/nginx.conf", "modified"],
    ["/etc/hosts", "modified"],
    ["/usr/sbin/nginx", "added"],
    ["/usr/lib/nginx/modules/x.so", "added"],
    ["/usr/share/nginx/html/index.html", "modified"],
    ["/var/lib/dpkg/status", "modified"],
    ["/usr/local/lib/python3.12/site-packages/requests/api.py", "added"],
    ["/usr/local/lib/python3.12/site-packages/requests-2.dist-info/METADATA", "added"],
    ["/app/conftest.py", "added"],
    ["/app/venv/lib/python3.12/site-packages/x.pth", "added"],
    ["/root/.ssh/config", "added"],
    ["/opt/tool/bin/tool", "added"],
    ["/usr/bin/telnet", "deleted"],
    ["/root/.bashrc", "deleted"],
  ] as const)("%s, %s", (path, change) => {
    const { evidence, without } = find([[path, change]]);
    expect(evidence).toEqual([]);
    expect(without.filter(left => path === left || path.startsWith(`${left}/`))).toEqual([]);
  });

  it("but compiled files of system libraries stay behind without a word", () => {
    const path = "/usr/lib/python3.12/__pycache__/json.cpython-312.pyc";
    const { evidence, without } = find([[path]]);
    expect([evidence, without.includes(path)]).toEqual([[], true]);
  });

  it("and a program new in PATH is looked at", () => {
    expect(find([["/usr/bin/nginx"], ["/app/x"]]).newPrograms.map(({ path }) => path)).toEqual([
      "/usr/bin/nginx",
    ]);
  });
});
