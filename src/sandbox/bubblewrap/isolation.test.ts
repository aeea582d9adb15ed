import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { isolationProblem } from "./isolation.ts";

const NOTHING = {
  isContainer: false,
  isCloneForbidden: false,
  isAppArmorRestricted: false,
  isLimitZero: false,
};

// Each cause, and the words a person can paste.
test.each([
  [
    { isContainer: true },
    "docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined",
  ],
  [{ isCloneForbidden: true }, "sysctl -w kernel.unprivileged_userns_clone=1"],
  [{ isAppArmorRestricted: true }, "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"],
  [{ isLimitZero: true }, "sysctl -w user.max_user_namespaces="],
  [{}, "allow unprivileged user namespaces"],
])("%j is answered by what allows it, and by nothing else", (facts, fix) => {
  const { name, message } = isolationProblem("bwrap: setting up uid map: Permission denied", {
    ...NOTHING,
    ...facts,
  });
  expect(name).toBe("InputError");
  expect(message).toContain("setting up uid map: Permission denied");
  expect(message).toContain(fix);
  expect(message.match(/sysctl|docker run|allow unprivileged/g)).toHaveLength(1);
});

test("several causes are all named", () => {
  const { message } = isolationProblem("x", { ...NOTHING, isContainer: true, isAppArmorRestricted: true });
  expect(message).toMatch(/apparmor_restrict_unprivileged_userns=0; .*docker run/);
});

test("where user namespaces are forbidden nothing is run, and the machine's setting is named", () => {
  const runParent = mkdtempSync(join(tmpdir(), "t1-forbidden-"));
  chmodSync(runParent, 0o755);
  const hold = fileURLToPath(new URL("../../../test/sandbox/hold-sandbox.ts", import.meta.url));
  const forbid = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"';
  const driver = [process.execPath, hold, runParent, "forbidden", "60000", "echo ran"];
  const { status, stdout, stderr } = spawnSync("unshare", ["-Ur", "sh", "-c", forbid, "sh", ...driver], {
    encoding: "utf8",
  });
  rmSync(runParent, { recursive: true, force: true });
  expect(stdout).toBe("");
  expect(status).not.toBe(0);
  expect(stderr).toContain("this machine does not let bubblewrap isolate a sandbox: bwrap");
  expect(stderr).toContain("sysctl -w user.max_user_namespaces=15000");
});
