// A sandbox whose programs are those of this machine: /usr read-only, everything else made anew on one tmpfs.
import { lstatSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { InputError } from "../../failure/errors.ts";
import type { SandboxSpec } from "../sandbox.ts";
import { type BwrapSetup, fileDescriptor, ISOLATION_OPTIONS, systemOptions } from "./bwrap-options.ts";
import { ETC_FILES } from "./fresh-etc.ts";
import type { Host } from "./host.ts";
import type { ImageEntry } from "./image-content.ts";
import { TOOLKIT_MOUNT } from "./toolkit.ts";

/** On most distributions links into /usr. */
const SYSTEM_FOLDERS = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/** The part of /etc that programs under /usr need; the rest would tell about this machine. */
const SHARED_ETC = ["alternatives", "ld.so.cache", "protocols", "services", "ssl"];

/** The folders of a fresh Debian container, plus those that Harbor's tasks expect. */
const FOLDERS: readonly (readonly [path: string, mode: string])[] = [
  ["/etc", "0755"],
  ["/home", "0755"],
  ["/logs/agent", "0755"],
  ["/logs/artifacts", "0755"],
  ["/logs/verifier", "0755"],
  ["/mnt", "0755"],
  ["/opt", "0755"],
  ["/root", "0700"],
  ["/run", "0755"],
  ["/srv", "0755"],
  ["/tmp", "1777"],
  ["/var/log", "0755"],
  ["/var/tmp", "1777"],
];

/** Read-only or not kept: a working directory there would be of no use. */
const NOT_FOR_WORK = ["usr", "proc", "dev", ".t1", ...SYSTEM_FOLDERS];

const OS_RELEASE = "../usr/lib/os-release";

/** The content of a fresh root, by path as in an archive of it, and its mounts. */
export function hostImageContent(): {
  readonly entries: readonly (readonly [path: string, entry: ImageEntry])[];
  readonly mounts: readonly string[];
} {
  const links: (readonly [string, ImageEntry])[] = [["etc/os-release", { kind: "link", target: OS_RELEASE }]];
  const mounts = [
    "usr",
    "proc",
    "dev",
    "sys",
    TOOLKIT_MOUNT.slice(1),
    ...SHARED_ETC.map(name => `etc/${name}`),
  ];
  for (const name of SYSTEM_FOLDERS) {
    const stats = lstatSync(`/${name}`, { throwIfNoEntry: false });
    if (stats?.isSymbolicLink()) links.push([name, { kind: "link", target: readlinkSync(`/${name}`) }]);
    else if (stats?.isDirectory()) mounts.push(name);
  }
  const folders = FOLDERS.map(
    ([path, mode]) => [path.slice(1), { kind: "folder", mode: Number.parseInt(mode, 8) }] as const,
  );
  const files = Object.entries(ETC_FILES).map(
    ([name, text]) => [`etc/${name}`, { kind: "file", mode: 0o644, content: Buffer.from(text) }] as const,
  );
  return { entries: [...folders, ...files, ...links], mounts };
}

/** @throws InputError for a working directory that could not be written */
export function hostImageSetup(host: Host, spec: SandboxSpec): BwrapSetup {
  const [, top = ""] = spec.workdir.split("/");
  if (NOT_FOR_WORK.includes(top)) {
    throw new InputError({
      what: "the working directory cannot be written in a sandbox of host programs",
      where: spec.workdir,
      expected: `a folder outside ${NOT_FOR_WORK.map(name => `/${name}`).join(", ")}`,
      fix: "set WORKDIR, or workdir in task.toml, to another folder such as /app",
    });
  }
  const etc = Object.keys(ETC_FILES);
  return {
    options: [
      ...ISOLATION_OPTIONS,
      ...["--size", `${spec.diskBytes}`, "--tmpfs", "/"],
      ...["--ro-bind", "/usr", "/usr"],
      ...SYSTEM_FOLDERS.flatMap(systemFolder),
      ...FOLDERS.flatMap(([path, mode]) => ["--perms", mode, "--dir", path]),
      ...SHARED_ETC.flatMap(name => ["--ro-bind-try", `/etc/${name}`, `/etc/${name}`]),
      ...etc.flatMap((name, index) => ["--perms", "0644", "--file", fileDescriptor(index), `/etc/${name}`]),
      ...["--symlink", OS_RELEASE, "/etc/os-release"],
      ...(spec.workdir === "/" ? [] : ["--dir", spec.workdir]),
      ...systemOptions(host, spec),
    ],
    files: etc.map(name => join(host.toolkit, "etc", name)),
    sizeBytes: spec.diskBytes,
    network: spec.network,
  };
}

function systemFolder(name: string): readonly string[] {
  const path = `/${name}`;
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isSymbolicLink()) return ["--symlink", readlinkSync(path), path];
  return stats?.isDirectory() ? ["--ro-bind", path, path] : [];
}
