// Dockerfiles that need no image: a working directory, variables and files, put over this machine's own programs. Only
// those that say so in their FROM line, because a task would else run in another place than its author wrote it for; and
// for the same reason whatever needs an image is refused by name.
// Reference: https://docs.docker.com/reference/dockerfile/
import { existsSync, lstatSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { InputError } from "../../failure/errors.ts";
import { type Dockerfile, type Instruction, jsonWords, parseDockerfile } from "../../image/dockerfile.ts";
import { assignments, expand, WordError } from "../../image/dockerfile-words.ts";
import { HOST_STAGE } from "../../task/generate/write-task.ts";
import type { SandboxFile } from "../sandbox.ts";

export interface HostDockerfile {
  readonly workdir: string;
  readonly files: readonly SandboxFile[];
  readonly env: Readonly<Record<string, string>>;
}

/** Whether any image with the usual programs will do, which the name of its only stage says. */
export function isHostDockerfile(file: string): boolean {
  const { instructions } = parseDockerfile(readFileSync(file, "utf8"), file);
  const stages = instructions.filter(({ name }) => name === "FROM");
  return stages.length === 1 && stages[0]?.text.split(/\s+/)[2] === HOST_STAGE;
}

/**
 * @param file    the Dockerfile
 * @param context the folder that COPY copies from
 * @throws InputError naming line and instruction
 */
export function readHostDockerfile(file: string, context: string): HostDockerfile {
  const dockerfile = parseDockerfile(readFileSync(file, "utf8"), file);
  const reader = new HostDockerfileReader(dockerfile, context);
  for (const instruction of dockerfile.instructions) reader.take(instruction);
  return reader.finish();
}

class HostDockerfileReader {
  readonly #dockerfile: Dockerfile;
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

  constructor(dockerfile: Dockerfile, context: string) {
    this.#dockerfile = dockerfile;
    this.#context = context;
  }

  take(instruction: Instruction): void {
    const { name } = instruction;
    if (name === "FROM") this.#from(instruction);
    else if (!this.#isBegun) throw this.#refuse(instruction, `${name} before FROM`, "FROM first");
    else if (name === "WORKDIR") this.#changeFolder(instruction);
    else if (name === "ENV") this.#setVariables(instruction);
    else if (name === "COPY") this.#copy(instruction);
    else throw this.#needsBuilder(instruction, name);
  }

  finish(): HostDockerfile {
    if (!this.#isBegun)
      throw new InputError({
        what: "no FROM",
        where: this.#dockerfile.file,
        fix: "start it with FROM and an image",
      });
    return { workdir: this.#workdir, files: this.#files, env: this.#env };
  }

  /** Whatever image it names, this machine's programs stand in for it. */
  #from(instruction: Instruction): void {
    if (this.#isBegun) throw this.#needsBuilder(instruction, "a second FROM");
    this.#isBegun = true;
  }

  #changeFolder(instruction: Instruction): void {
    const [path, ...rest] = this.#paths(instruction);
    if (path === undefined || rest.length > 0)
      throw this.#refuse(instruction, "WORKDIR with other than one path");
    this.#workdir = withoutSlash(posix.resolve(this.#workdir, path));
    this.#addFolder(this.#workdir);
  }

  #setVariables(instruction: Instruction): void {
    const list = this.#read(instruction, lookup => {
      const { escapeCharacter } = this.#dockerfile;
      return assignments(instruction.text, { escapeCharacter, lookup });
    });
    Object.assign(this.#env, Object.fromEntries(list));
  }

  #copy(instruction: Instruction): void {
    const [flag] = instruction.flags.keys();
    if (flag !== undefined) throw this.#needsBuilder(instruction, `COPY --${flag}`);
    if (instruction.heredocs.length > 0) throw this.#needsBuilder(instruction, "COPY of a here-document");
    const words = this.#paths(instruction);
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

  #copyOne(instruction: Instruction, source: string, to: string, isFolder: boolean): void {
    if (/[*?[]/.test(source)) throw this.#needsBuilder(instruction, `COPY with a pattern (${source})`);
    // A leading slash means the context, and nothing leads out of it.
    const inside = posix.normalize(`./${source}`);
    if (inside === ".." || inside.startsWith("../"))
      throw this.#refuse(instruction, `COPY from outside the context (${source})`);
    if (
      existsSync(join(this.#context, ".dockerignore")) ||
      existsSync(`${this.#dockerfile.file}.dockerignore`)
    )
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

  #paths(instruction: Instruction): readonly string[] {
    const { escapeCharacter } = this.#dockerfile;
    const raw = jsonWords(instruction.text) ?? instruction.text.split(/\s+/).filter(word => word !== "");
    return this.#read(instruction, lookup => raw.map(word => expand(word, { escapeCharacter, lookup })));
  }

  #read<Result>(instruction: Instruction, read: (lookup: (name: string) => undefined) => Result): Result {
    const { name } = instruction;
    try {
      return read(variable => {
        throw this.#needsBuilder(instruction, `${name} with a variable (${variable})`);
      });
    } catch (error) {
      if (error instanceof WordError) throw this.#refuse(instruction, `${name} ${error.message}`);
      throw error;
    }
  }

  #addFolder(path: string): void {
    for (let folder = path; folder !== "/"; folder = posix.dirname(folder)) this.#folders.add(folder);
  }

  #needsBuilder(instruction: Instruction, what: string): InputError {
    return this.#refuse(
      instruction,
      `${what} needs an image, and the Dockerfile says that it needs none`,
      `FROM, WORKDIR, ENV and COPY of plain files and folders, or a FROM line without AS ${HOST_STAGE}`,
    );
  }

  #refuse({ line }: Instruction, what: string, expected?: string): InputError {
    return new InputError({
      what,
      where: `${this.#dockerfile.file}:${line}`,
      ...(expected !== undefined && { expected }),
      fix: "change the line, or leave the task out of the pool",
    });
  }
}

function withoutSlash(path: string): string {
  return path === "/" ? path : path.replace(/\/+$/, "");
}
