// This machine's tar with its loader and libraries, mounted read-only into every sandbox. It carries files in and out, so
// it may not come from a file system that the agent can write; and an image need not have it. Beside it lie the files
// from which a fresh /etc is made.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { InputError } from "../../failure/errors.ts";
import { ETC_FILES } from "./fresh-etc.ts";
import type { HostTools } from "./host-tools.ts";
import type { SandboxUser } from "./sandbox-user.ts";

/**
 * Directly below the root of a sandbox: a mount point itself cannot be renamed or removed there, but a folder above one
 * could be.
 */
export const TOOLKIT_MOUNT = "/.t1";

export const TOOLKIT_LOADER = `${TOOLKIT_MOUNT}/ld.so`;

/** Words that run tar inside. */
export const TOOLKIT_TAR: readonly string[] = tarWords(TOOLKIT_MOUNT);

/**
 * Copies the toolkit once per content. The name is the hash of the content, and what is found is compared with it.
 *
 * @returns the folder
 * @throws InputError when its programs cannot be run from there
 */
export function openToolkit(parent: string, tools: HostTools, user: SandboxUser | undefined): string {
  const files = collectFiles(tools);
  const folder = join(parent, `toolkit-${hashOf(files)}`);
  if (!holds(folder, files)) write(parent, folder, files);
  try {
    const [loader = "", ...rest] = tarWords(folder);
    execFileSync(loader, [...rest, "--version"], { stdio: ["ignore", "ignore", "pipe"], ...user });
  } catch (error) {
    throw new InputError(
      {
        what: "programs cannot be run from the folder for sandboxes",
        where: folder,
        expected: "a file system mounted without noexec, in a folder that everybody may pass",
        fix: "set TMPDIR to such a folder",
      },
      { cause: error },
    );
  }
  return folder;
}

function tarWords(folder: string): readonly string[] {
  return [`${folder}/ld.so`, "--library-path", `${folder}/lib`, `${folder}/bin/tar`];
}

type Files = ReadonlyMap<string, Buffer>;

function collectFiles(tools: HostTools): Files {
  const { loader, libraries } = linkedFiles(tools.tar);
  const files = new Map([
    ["bin/tar", readFileSync(tools.tar)],
    ["ld.so", readFileSync(loader)],
  ]);
  for (const library of libraries) files.set(`lib/${basename(library)}`, readFileSync(library));
  for (const [name, text] of Object.entries(ETC_FILES)) files.set(`etc/${name}`, Buffer.from(text));
  return files;
}

/** What `ldd` prints, without the need for ldd (ld.so(8), LD_TRACE_LOADED_OBJECTS). */
function linkedFiles(program: string): { readonly loader: string; readonly libraries: readonly string[] } {
  const listing = execFileSync(program, { env: { LD_TRACE_LOADED_OBJECTS: "1" }, encoding: "utf8" });
  const libraries = [...listing.matchAll(/=> (\/\S+) \(0x/g)].map(([, path = ""]) => path);
  const [, loader] = /^\s*(\/\S+) \(0x/m.exec(listing) ?? [];
  if (loader === undefined) {
    throw new InputError({
      what: "cannot find the loader and libraries of a program",
      where: program,
      expected: "a dynamically linked program of a system with glibc",
      fix: "use a distribution such as Debian, Ubuntu or Fedora, or another sandbox provider",
    });
  }
  return { loader, libraries };
}

function hashOf(files: Files): string {
  const hash = createHash("sha256");
  for (const [name, bytes] of [...files].sort(([a], [b]) => (a < b ? -1 : 1)))
    hash.update(`${name}\0${bytes.length}\0`).update(bytes);
  return hash.digest("hex").slice(0, 16);
}

function holds(folder: string, files: Files): boolean {
  return [...files].every(([name, bytes]) => {
    const path = join(folder, name);
    return existsSync(path) && readFileSync(path).equals(bytes);
  });
}

/** Written aside and renamed, because other drivers start at the same time. */
function write(parent: string, folder: string, files: Files): void {
  const aside = mkdtempSync(join(parent, "toolkit-new-"));
  for (const child of ["bin", "etc", "lib"]) mkdirSync(join(aside, child), { mode: 0o755 });
  for (const [name, bytes] of files) writeFileSync(join(aside, name), bytes, { mode: 0o555 });
  chmodSync(aside, 0o755);
  for (let attempt = 0; ; attempt++) {
    try {
      renameSync(aside, folder);
      return;
    } catch (error) {
      // Another driver was first, or somebody changed it: sandboxes that run keep the one they mounted.
      if (attempt > 3 || holds(folder, files)) {
        rmSync(aside, { recursive: true });
        if (attempt > 3) throw error;
        return;
      }
      rmSync(folder, { recursive: true, force: true });
    }
  }
}
