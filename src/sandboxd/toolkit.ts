// The folder that brings the daemon into any Linux image: Node with its loader and libraries, the daemon's sources without
// their types, and the packages these need. It is made once per content and mounted read-only.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { findPackageJSON, stripTypeScriptTypes } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { InputError } from "../failure/errors.ts";
import { makeFolders } from "../files/make-folders.ts";

/** Directly below the root: a mount point itself cannot be renamed or removed there, but a folder above one could be. */
export const TOOLKIT_MOUNT = "/.t1";
/** An empty folder of the toolkit, over which the way to the driver is mounted. */
export const LISTENER_MOUNT = `${TOOLKIT_MOUNT}/listener`;
const RUN = [`${TOOLKIT_MOUNT}/ld.so`, "--inhibit-cache", "--library-path", `${TOOLKIT_MOUNT}/lib`] as const;

/** @param words of sandboxd.ts. SIGUSR1 would open Node's debugger to whoever sends it. */
export function daemonWords(...words: readonly string[]): readonly string[] {
  const main = `${TOOLKIT_MOUNT}/app/sandboxd/sandboxd.js`;
  return [...RUN, `${TOOLKIT_MOUNT}/bin/node`, "--disable-sigusr1", "--no-warnings", main, ...words];
}

/** Does nothing, for ever. */
export const HOLD_WORDS: readonly string[] = [...RUN, `${TOOLKIT_MOUNT}/bin/sleep`, "infinity"];

const CACHE = "cache";

/** Ours, and those of an image that would change what our Node does. */
export const DAEMON_ENV: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: `${TOOLKIT_MOUNT}/${CACHE}`,
  NODE_COMPILE_CACHE_PORTABLE: "1",
  LD_PRELOAD: "",
  LD_LIBRARY_PATH: "",
  NODE_OPTIONS: "",
  NODE_PATH: "",
  NODE_EXTRA_CA_CERTS: "",
  NODE_V8_COVERAGE: "",
  NODE_DEBUG: "",
  OPENSSL_CONF: "",
};

const MACHINES = ["x64", "arm64"] as const;
type ToolkitMachine = (typeof MACHINES)[number];

/** Packages of the daemon, with those of them that hold machine code. */
function packagesFor(machine: ToolkitMachine): readonly string[] {
  const native = [`@lydell/node-pty-linux-${machine}`, `@koromix/koffi-linux-${machine}`];
  return ["@lydell/node-pty", "@xterm/headless", "koffi", "tar-stream", "zod", ...native];
}

/** Files that Node loads; the rest of a package is for people and other tools. */
const LOADED = /\.(?:js|cjs|mjs|json|node)$/;
/** Loading zod's error texts in all languages takes as long as the rest of it (40 ms of a start). */
const SHORTENED = new Map([
  ["node_modules/zod/v4/locales/index.js", 'export { default as en } from "./en.js";\n'],
]);

/** For another JavaScript engine or C library, or for people. */
const LEFT_OUT = /^(?:bare-|musl_)|^(?:vendor|doc)$/;

/**
 * @param parent folder for toolkits, one per content
 * @returns the toolkit's folder
 * @throws InputError when this machine cannot make one
 */
export function openToolkit(parent: string, machine: string = process.arch): string {
  const files = collectFiles(machine);
  const folder = join(parent, `sandboxd-${hashOf(files)}`);
  if (existsSync(folder)) return folder;
  makeFolders(parent, { mode: 0o755 });
  const aside = mkdtempSync(join(parent, "sandboxd-new-"));
  try {
    writeToolkit(aside, files);
    // Another driver may have been first; what it made is the same.
    if (!existsSync(folder)) renameSync(aside, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
  return folder;
}

/** Content by its path in the toolkit, or the path of a large file of this machine. */
type Files = ReadonlyMap<string, Buffer | string>;

function collectFiles(machine: string): Files {
  assertMachine(machine);
  const node = process.execPath;
  const files = new Map<string, Buffer | string>([["bin/node", node]]);
  const sleep = ["/usr/bin/sleep", "/bin/sleep"].find(path => existsSync(path)) ?? "/bin/sleep";
  files.set("bin/sleep", readFileSync(sleep));
  for (const [path, content] of collectPackages(machine)) files.set(path, content);
  const modules = [...files.keys()].filter(path => path.endsWith(".node"));
  const native = modules.map(path => join(packageRoot(), relative("node_modules", path)));
  const { loader, libraries } = linkedFiles([node, sleep, ...native]);
  files.set("ld.so", readFileSync(loader));
  for (const library of libraries) files.set(`lib/${basename(library)}`, readFileSync(library));
  for (const [path, text] of [...collectSources(), ...SHORTENED]) files.set(path, Buffer.from(text));
  files.set("app/package.json", Buffer.from('{ "type": "module" }\n'));
  return files;
}

function assertMachine(machine: string): asserts machine is ToolkitMachine {
  const isKnown = MACHINES.some(known => known === machine);
  if (isKnown && machine === process.arch && process.platform === "linux") return;
  throw new InputError({
    what: `no sandbox toolkit can be made here for ${machine}`,
    where: `${process.platform} ${process.arch}`,
    expected: `Linux on one of ${MACHINES.join(", ")}, and the same machine as the sandboxes run on`,
    fix: "make the toolkit on such a machine",
  });
}

/** The daemon's modules and what they import of ours, without types. */
function collectSources(): ReadonlyMap<string, string> {
  const root = fileURLToPath(new URL("../", import.meta.url));
  const sources = new Map<string, string>();
  const waiting = [join(root, "sandboxd/sandboxd.ts")];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const name = `app/${relative(root, path).replace(/\.ts$/, ".js")}`;
    if (sources.has(name)) continue;
    const text = stripTypes(readFileSync(path, "utf8"));
    const from = dirname(path);
    const rewritten = text.replace(/(\bfrom\s*")(\.[^"]+)\.ts(")/g, (_, before, imported, after) => {
      waiting.push(join(from, `${imported}.ts`));
      return `${before}${imported}.js${after}`;
    });
    sources.set(name, rewritten);
  }
  return sources;
}

/** Node says at each first use that the function is new. */
function stripTypes(source: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}

function collectPackages(machine: ToolkitMachine): ReadonlyMap<string, Buffer> {
  const files = new Map<string, Buffer>();
  const waiting = [...packagesFor(machine)];
  const seen = new Set<string>();
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (seen.has(name) || LEFT_OUT.test(name)) continue;
    seen.add(name);
    const folder = join(packageRoot(), name);
    if (!existsSync(folder)) {
      throw new InputError({
        what: `a package of the sandbox daemon is missing: ${name}`,
        where: folder,
        fix: "npm ci, without --omit=optional",
      });
    }
    const { dependencies = {} } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    waiting.push(...Object.keys(dependencies));
    addFolder(files, folder, `node_modules/${name}`);
  }
  return files;
}

/** The folder that packages are in: `node_modules`, wherever npm has put it. */
function packageRoot(): string {
  const found = findPackageJSON("koffi", import.meta.url);
  if (found === undefined) throw new InputError({ what: "npm packages are missing", fix: "npm ci" });
  return dirname(dirname(found));
}

function addFolder(files: Map<string, Buffer>, folder: string, name: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!LEFT_OUT.test(entry.name) && entry.name !== "node_modules")
        addFolder(files, path, `${name}/${entry.name}`);
    } else if (LOADED.test(entry.name)) files.set(`${name}/${entry.name}`, readFileSync(path));
  }
}

/** What `ldd` prints, without the need for ldd (ld.so(8)). */
function linkedFiles(programs: readonly string[]): {
  readonly loader: string;
  readonly libraries: ReadonlySet<string>;
} {
  const [first = ""] = programs;
  const libraries = new Set<string>();
  const [, loader] = /^\s*(\/\S+) \(0x/m.exec(traceLibraries([first])) ?? [];
  if (loader === undefined) {
    throw new InputError({
      what: "cannot find the loader and libraries of a program",
      where: first,
      expected: "a dynamically linked program of a system with glibc",
      fix: "use a distribution such as Debian, Ubuntu or Fedora",
    });
  }
  for (const program of programs)
    for (const [, path = ""] of traceLibraries([loader, "--list", program]).matchAll(/=> (\/\S+) \(0x/g))
      if (path !== loader) libraries.add(path);
  return { loader, libraries };
}

function traceLibraries([program = "", ...args]: readonly string[]): string {
  const env = args.length === 0 ? { LD_TRACE_LOADED_OBJECTS: "1" } : {};
  return execFileSync(program, args, { env, encoding: "utf8" });
}

function hashOf(files: Files): string {
  const hash = createHash("sha256");
  for (const [name, content] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`${name}\0`);
    if (typeof content === "string") {
      // Reading Node's 120 MB each time would take longer than starting a sandbox.
      const { size, mtimeMs } = statSync(content);
      hash.update(`${process.version} ${size} ${mtimeMs}\0`);
    } else hash.update(`${content.length}\0`).update(content);
  }
  return hash.digest("hex").slice(0, 16);
}

function writeToolkit(folder: string, files: Files): void {
  mkdirSync(join(folder, basename(LISTENER_MOUNT)), { mode: 0o755 });
  for (const [name, content] of files) {
    const path = join(folder, name);
    makeFolders(dirname(path), { mode: 0o755 });
    if (typeof content === "string") linkOrCopy(content, path);
    else writeFileSync(path, content, { mode: 0o755 });
  }
  chmodSync(folder, 0o755); // mkdtemp makes it private
  warmUp(folder);
}

/**
 * Starts the daemon once, which leaves what it compiled for all later starts.
 *
 * @throws InputError when programs cannot be run from there
 */
function warmUp(folder: string): void {
  const words = [...daemonWords("stdio")].map(word => word.replaceAll(TOOLKIT_MOUNT, folder));
  const [program = "", ...args] = words;
  const env = { ...DAEMON_ENV, NODE_COMPILE_CACHE: join(folder, CACHE) };
  try {
    execFileSync(program, args, { env, input: "", stdio: ["pipe", "ignore", "pipe"] });
  } catch (error) {
    throw new InputError(
      {
        what: "programs cannot be run from the folder for sandboxes",
        where: folder,
        expected: "a file system mounted without noexec",
        fix: "set TMPDIR to such a folder",
      },
      { cause: error },
    );
  }
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to); // on another file system, or a file of another user
  }
}
