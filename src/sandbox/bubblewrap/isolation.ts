// Why this machine cannot isolate, and what would allow it. Nothing is ever run unisolated instead.
import { existsSync, readFileSync } from "node:fs";
import { InputError } from "../../failure/errors.ts";

/** As found on a machine; an argument, so that each cause can be tested on a machine that has none. */
export interface IsolationFacts {
  readonly isContainer: boolean;
  /** `/proc/sys/kernel/unprivileged_userns_clone` is 0 (Debian up to 10, some hardened kernels). */
  readonly isCloneForbidden: boolean;
  /** `/proc/sys/kernel/apparmor_restrict_unprivileged_userns` is 1 (Ubuntu since 23.10). */
  readonly isAppArmorRestricted: boolean;
  /** `/proc/sys/user/max_user_namespaces` is 0 (RHEL 7, and inside our own sandboxes). */
  readonly isLimitZero: boolean;
}

function readIsolationFacts(): IsolationFacts {
  return {
    isContainer:
      existsSync("/.dockerenv") ||
      existsSync("/run/.containerenv") ||
      "KUBERNETES_SERVICE_HOST" in process.env,
    isCloneForbidden: setting("kernel/unprivileged_userns_clone") === "0",
    isAppArmorRestricted: setting("kernel/apparmor_restrict_unprivileged_userns") === "1",
    isLimitZero: setting("user/max_user_namespaces") === "0",
  };
}

/** @param detail what bwrap or the kernel said */
export function isolationProblem(detail: string, facts = readIsolationFacts()): InputError {
  const ways: string[] = [];
  if (facts.isLimitZero) ways.push("sysctl -w user.max_user_namespaces=15000");
  if (facts.isCloneForbidden) ways.push("sysctl -w kernel.unprivileged_userns_clone=1");
  if (facts.isAppArmorRestricted) ways.push("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
  // Tried on Docker 20.10: the default seccomp profile forbids namespaces, and with the covered paths of /proc the
  // kernel refuses a new /proc inside (mount_too_revealing), whatever capabilities are added.
  if (facts.isContainer) {
    ways.push(
      "start the container by: docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined" +
        " --security-opt apparmor=unconfined …",
    );
  }
  return new InputError({
    what: "this machine does not let bubblewrap isolate a sandbox",
    where: detail,
    expected: "user, mount, pid and network namespaces",
    fix:
      ways.length > 0
        ? ways.join("; ")
        : "allow unprivileged user namespaces, or use another sandbox provider",
  });
}

function setting(name: string): string | undefined {
  try {
    return readFileSync(`/proc/sys/${name}`, "utf8").trim();
  } catch {
    return undefined;
  }
}
