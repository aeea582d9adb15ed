// Installs what is missing before `npm run demo` and `npm test`, and says what it does. Plain JavaScript without
// dependencies: it runs on the host's own Node, before anything is installed.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const say = text => process.stderr.write(`setup: ${text}\n`);
const stop = text => {
  say(text);
  process.exit(2);
};

if (Number(process.versions.node.split(".")[0]) < 20)
  stop(`Node 20 or newer is needed, this is ${process.versions.node}`);
if (process.platform !== "linux") stop(`sandboxes need Linux (user namespaces), this is ${process.platform}`);

installPackages();
installPrograms();
checkNamespaces();

/** Installs the npm packages, unless they were installed from this lock file already. */
function installPackages() {
  const lock = readFileSync(join(root, "package-lock.json"), "utf8");
  const stamp = join(root, "node_modules/.t1-installed");
  const node = join(root, "node_modules/.bin/node");
  if (existsSync(node) && existsSync(stamp) && readFileSync(stamp, "utf8") === lock) return;
  say("installing npm packages (npm ci; about 1 GB in node_modules, some minutes)");
  // The CUDA libraries of onnxruntime-node come from another registry and are of no use on a CPU.
  const env = { ...process.env, ONNXRUNTIME_NODE_INSTALL: "skip" };
  // Warnings are about the host's Node, which runs none of them: t1 runs on the one in node_modules.
  const result = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
    env,
  });
  if (result.status !== 0) stop("npm ci failed");
  if (spawnSync(node, ["--version"]).status !== 0)
    stop("the pinned Node was not installed: npm has to run install scripts of the package `node`");
  writeFileSync(stamp, lock);
}

/** Installs the programs of the system that sandboxes are made of. */
function installPrograms() {
  const packages = [
    ["bwrap", "bubblewrap"],
    ["perl", "perl-base"],
    ["tar", "tar"],
  ];
  const missing = [...new Set(packages.filter(([program]) => !isThere(program)).map(([, name]) => name))];
  if (missing.length === 0) return;
  const asRoot = process.getuid() === 0 ? [] : ["sudo", "-n"];
  const command = ["apt-get", "install", "-y", "--no-install-recommends", ...missing];
  const byHand = `${asRoot.length > 0 ? "sudo " : ""}apt-get update && ${asRoot.length > 0 ? "sudo " : ""}${command.join(" ")}`;
  if (!isThere("apt-get")) stop(`missing: ${missing.join(", ")}; install it with your package manager`);
  if (asRoot.length > 0 && (!isThere("sudo") || spawnSync("sudo", ["-n", "true"]).status !== 0))
    stop(`missing: ${missing.join(", ")}; run: ${byHand}`);
  say(`installing ${missing.join(", ")}: ${byHand}`);
  const run = words =>
    spawnSync(words[0], words.slice(1), {
      stdio: ["ignore", "ignore", "inherit"],
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    });
  run([...asRoot, "apt-get", "update"]);
  if (run([...asRoot, ...command]).status !== 0)
    stop(`could not install ${missing.join(", ")}; run: ${byHand}`);
}

/** Stops where user namespaces are forbidden, as in a default Docker container: every sandbox is made of them. */
function checkNamespaces() {
  const probe = spawnSync(
    "bwrap",
    ["--unshare-all", "--uid", "0", "--gid", "0", "--ro-bind", "/", "/", "--proc", "/proc", "true"],
    { encoding: "utf8" },
  );
  if (probe.status === 0) return;
  stop(
    `user namespaces are blocked here: ${probe.stderr.trim()}\n` +
      "  in a container: docker run --privileged, or --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined --cap-add SYS_ADMIN\n" +
      "  on Ubuntu 24.04 and later: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\n" +
      "  on Debian 10: sudo sysctl -w kernel.unprivileged_userns_clone=1",
  );
}

function isThere(program) {
  return spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
}
