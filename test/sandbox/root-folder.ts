// A small root file system made of this machine's own programs, for tests that need an image and no network.
import { spawnSync } from "node:child_process";
import { chownSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sandboxUser } from "../../src/sandbox/bubblewrap/sandbox-user.ts";

const PROGRAMS = [
  ...[
    "cat",
    "chown",
    "dd",
    "env",
    "id",
    "ln",
    "ls",
    "mkdir",
    "printf",
    "rm",
    "setsid",
    "sh",
    "sleep",
    "stty",
    "touch",
  ],
  ...["uname", "wc", "yes", "true", "chmod", "mv", "mknod", "grep", "tr", "readlink", "cp"],
];

const PLACES = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

/**
 * @param folder is created, and belongs to this user with all it holds; to bubblewrap's own when none is given
 * @param more names of further programs, and paths of files that they need beside their libraries
 */
export function makeRootFolder(
  folder: string,
  user = sandboxUser(),
  more: { readonly programs?: readonly string[]; readonly files?: readonly string[] } = {},
): void {
  const { programs = [], files: others = [] } = more;
  const files = new Map<string, string>(others.map(path => [path, path]));
  for (const name of [...PROGRAMS, ...programs]) {
    const program = PLACES.map(place => join(place, name)).find(path => existsSync(path));
    if (program === undefined) throw new Error(`${name} is missing on this machine`);
    files.set(`/bin/${name}`, program);
  }
  for (const path of [...files.values()])
    for (const library of librariesOf(path)) files.set(library, library);
  const made = new Set<string>([folder]);
  mkdirSync(folder, { recursive: true });
  for (const [place, source] of files) {
    const path = join(folder, place);
    for (let parent = dirname(path); parent.length > folder.length; parent = dirname(parent))
      made.add(parent);
    mkdirSync(dirname(path), { recursive: true });
    copyFileSync(source, path);
    made.add(path);
  }
  for (const name of ["etc", "tmp"]) {
    mkdirSync(join(folder, name));
    made.add(join(folder, name));
  }
  writeFileSync(join(folder, "etc", "os-release"), "NAME=hand-made\n");
  made.add(join(folder, "etc", "os-release"));
  if (user !== undefined) for (const path of made) chownSync(path, user.uid, user.gid);
}

/** Of a program or a library; of a file that is neither there are none. */
function librariesOf(path: string): readonly string[] {
  const { status, stdout } = spawnSync("ldd", [path], { encoding: "utf8" });
  return status === 0 ? [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, library = ""]) => library) : [];
}
