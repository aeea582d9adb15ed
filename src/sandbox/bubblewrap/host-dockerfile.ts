// Dockerfiles simple enough to need no image: a working directory, variables and files, put over this machine's own
// programs. Everything else is refused by name; nothing is skipped, because a task would then run in another place
// than its author wrote it for.
// Reference: https://docs.docker.com/reference/dockerfile/
import { existsSync, lstatSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { InputError } from "../../failure/errors.ts";
import type { SandboxFile } from "../sandbox.ts";
import {
  type DockerfileInstruction,
  splitAssignments,
  splitDockerfile,
  splitPaths,
} from "./dockerfile-text.ts";

export interface HostDockerfile {
  readonly workdir: string;
  readonly files: readonly SandboxFile[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * @param file    the Dockerfile
 * @param context the folder that COPY copies from
 * @throws InputError naming line and instruction
 */
export function readHostDockerfile(file: string, context: string): HostDockerfile {
  const source = readFileSync(file, "utf8");
  const reader = new HostDockerfileReader(file, context);
  const [directive] = /^#\s*escape\s*=\s*[^\\\s].*/im.exec(source) ?? [];
  if (directive !== undefined && source.startsWith("#")) reader.refuseDirective(directive);
  for (const instruction of splitDockerfile(source)) reader.take(instruction);
  return reader.finish();
}

class HostDockerfileReader {
  readonly #file: string;
  readonly #context: string;
  #isBegun = false;
  #workdir = "/";
  readonly #files: SandboxFile[] = [];
  readonly #env: Record<string, string> = {};
  /** Folders that exist by now: a file copied onto one goes into it. */
  readonly #folders = new Set([
    "/",
    "/home",
    "/mnt",
    "/opt",
    "/root",
    "/run",
    "/srv",
    "/tmp",
    "/var",
    "/var/tmp",
    "/etc",
  ]);

  constructor(file: string, context: string) {
    this.#file = file;
    this.#context = context;
  }

  take(instruction: DockerfileInstruction): void {
    const { name } = instruction;
    if (name === "FROM") this.#from(instruction);
    else if (!this.#isBegun) throw this.#refuse(instruction, `${name} before FROM`, "FROM first");
    else if (name === "WORKDIR") this.#changeFolder(instruction);
    else if (name === "ENV") this.#setVariables(instruction);
    else if (name === "COPY") this.#copy(instruction);
    else throw this.#needsBuilder(instruction, name);
  }

  refuseDirective(directive: string): never {
    throw this.#needsBuilder({ name: "#", text: directive, line: 1 }, directive);
  }

  finish(): HostDockerfile {
    if (!this.#isBegun)
      throw new InputError({ what: "no FROM", where: this.#file, fix: "start it with FROM and an image" });
    return { workdir: this.#workdir, files: this.#files, env: this.#env };
  }

  /** Whatever image it names, this machine's programs stand in for it. */
  #from(instruction: DockerfileInstruction): void {
    if (this.#isBegun) throw this.#needsBuilder(instruction, "a second FROM");
    this.#isBegun = true;
  }

  #changeFolder(instruction: DockerfileInstruction): void {
    const [path, ...rest] = this.#words(instruction, splitPaths);
    if (path === undefined || rest.length > 0)
      throw this.#refuse(instruction, "WORKDIR with other than one path");
    this.#workdir = withoutSlash(posix.resolve(this.#workdir, path));
    this.#addFolder(this.#workdir);
  }

  #setVariables(instruction: DockerfileInstruction): void {
    const words = this.#words(instruction, splitAssignments);
    const [first = ""] = words;
    if (words.length === 0) throw this.#refuse(instruction, "ENV without a variable");
    if (!first.includes("=")) throw this.#refuse(instruction, "ENV without =", "ENV NAME=value");
    for (const word of words) {
      const at = word.indexOf("=");
      if (at < 1) throw this.#refuse(instruction, `ENV with ${JSON.stringify(word)}`, "ENV NAME=value");
      this.#env[word.slice(0, at)] = word.slice(at + 1);
    }
  }

  #copy(instruction: DockerfileInstruction): void {
    const words = this.#words(instruction, splitPaths);
    const flag = words.find(word => word.startsWith("--"));
    if (flag !== undefined) throw this.#needsBuilder(instruction, `COPY ${flag.split("=")[0]}`);
    const sources = words.slice(0, -1);
    const [destination] = words.slice(-1);
    if (destination === undefined || sources.length === 0)
      throw this.#refuse(instruction, "COPY without source and destination");
    const to = posix.resolve(this.#workdir, destination);
    const isFolder = /(^|\/)\.{0,2}$/.test(destination) || this.#folders.has(to);
    if (sources.length > 1 && !isFolder)
      throw this.#refuse(instruction, "COPY of several files to one", "a destination that ends in /");
    for (const source of sources) this.#copyOne(instruction, source, to, isFolder);
  }

  #copyOne(instruction: DockerfileInstruction, source: string, to: string, isFolder: boolean): void {
    if (/[*?[]/.test(source)) throw this.#needsBuilder(instruction, `COPY with a pattern (${source})`);
    // A leading slash means the context, and nothing leads out of it.
    const inside = posix.normalize(`./${source}`);
    if (inside === ".." || inside.startsWith("../"))
      throw this.#refuse(instruction, `COPY from outside the context (${source})`);
    if (existsSync(join(this.#context, ".dockerignore")) || existsSync(`${this.#file}.dockerignore`))
      throw this.#needsBuilder(instruction, "COPY with a .dockerignore");
    const from = join(this.#context, inside).replace(/\/$/, "");
    const stats = lstatSync(from, { throwIfNoEntry: false });
    if (stats === undefined) throw this.#refuse(instruction, `COPY of a missing file (${source})`);
    if (stats.isSymbolicLink()) throw this.#needsBuilder(instruction, `COPY of a symbolic link (${source})`);
    if (stats.isDirectory()) {
      this.#addFolder(to);
      this.#files.push({ from, to });
    } else {
      const place = isFolder ? posix.join(to, posix.basename(inside)) : to;
      this.#addFolder(posix.dirname(place));
      this.#files.push({ from, to: place });
    }
  }

  #words(
    instruction: DockerfileInstruction,
    split: (text: string) => readonly string[] | undefined,
  ): readonly string[] {
    const words = split(instruction.text);
    if (words === undefined)
      throw this.#needsBuilder(
        instruction,
        `${instruction.name} with variables, here-documents or open quotes`,
      );
    return words;
  }

  #addFolder(path: string): void {
    for (let folder = path; folder !== "/"; folder = posix.dirname(folder)) this.#folders.add(folder);
  }

  #needsBuilder(instruction: DockerfileInstruction, what: string): InputError {
    return this.#refuse(
      instruction,
      `${what} needs the image builder, which this provider does not have yet`,
      "FROM, WORKDIR, ENV and COPY of plain files and folders",
    );
  }

  #refuse({ line }: DockerfileInstruction, what: string, expected?: string): InputError {
    return new InputError({
      what,
      where: `${this.#file}:${line}`,
      ...(expected !== undefined && { expected }),
      fix: "change the line, or leave the task out of the pool",
    });
  }
}

function withoutSlash(path: string): string {
  return path === "/" ? path : path.replace(/\/+$/, "");
}
