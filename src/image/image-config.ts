// An image's settings of how it is run, and the instructions that only change those.
import { posix } from "node:path";
import { type Dockerfile, type Instruction, jsonWords } from "./dockerfile.ts";
import { assignments, expand, WordError, words } from "./dockerfile-words.ts";
import type { Refuse } from "./refuse.ts";

export interface ImageConfig {
  readonly env: Readonly<Record<string, string>>;
  /** Absolute. */
  readonly workdir: string;
  /** Runs the shell form of RUN, CMD and ENTRYPOINT. */
  readonly shell: readonly string[];
  readonly entrypoint: readonly string[] | undefined;
  readonly healthcheck: ImageHealthcheck | undefined;
}

/** As HEALTHCHECK has it; Docker's defaults are filled in. */
export interface ImageHealthcheck {
  readonly command: string;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly startPeriodMs: number;
  readonly startIntervalMs: number;
  readonly retries: number;
}

export const EMPTY_CONFIG: ImageConfig = {
  env: {},
  workdir: "/",
  shell: ["/bin/sh", "-c"],
  entrypoint: undefined,
  healthcheck: undefined,
};

/** Variables that an instruction sees. */
export interface Scope {
  readonly config: ImageConfig;
  /** Of ARG. They hide behind ENV. */
  readonly args: Readonly<Record<string, string>>;
}

/** @throws InputError of `refuse` for texts that cannot be read */
export function expandText(
  { escapeCharacter }: Dockerfile,
  { text, name }: Pick<Instruction, "text" | "name">,
  { config, args }: Scope,
  refuse: Refuse,
): string {
  return readWords(name, refuse, () =>
    expand(text, { escapeCharacter, lookup: variable => config.env[variable] ?? args[variable] }),
  );
}

/** Without meaning for a sandbox; a folder of VOLUME is one like any other. */
const IGNORED = new Set(["CMD", "EXPOSE", "LABEL", "MAINTAINER", "STOPSIGNAL", "VOLUME"]);

/**
 * @returns undefined for an instruction that does more than change the config
 * @throws InputError of `refuse`
 */
export function changeConfig(
  dockerfile: Dockerfile,
  instruction: Instruction,
  scope: Scope,
  refuse: Refuse,
): ImageConfig | undefined {
  const { name, text } = instruction;
  const { config, args } = scope;
  if (IGNORED.has(name)) return config;
  switch (name) {
    case "ENV": {
      const lookup = (variable: string) => config.env[variable] ?? args[variable];
      const list = readWords(name, refuse, () =>
        assignments(text, { escapeCharacter: dockerfile.escapeCharacter, lookup }),
      );
      return { ...config, env: { ...config.env, ...Object.fromEntries(list) } };
    }
    case "WORKDIR": {
      const path = expandText(dockerfile, instruction, scope, refuse).trim();
      if (path === "") throw refuse("WORKDIR without a path");
      const workdir = posix.resolve(config.workdir, path);
      return { ...config, workdir: workdir === "/" ? workdir : workdir.replace(/\/+$/, "") };
    }
    case "USER": {
      const user = expandText(dockerfile, instruction, scope, refuse).trim();
      if (/^(root|0)(:(root|0))?$/.test(user)) return config;
      throw refuse(
        `USER ${user}: the image wants several users`,
        "root: one user is mapped into a bubblewrap sandbox, and inside that is root",
      );
    }
    case "SHELL": {
      const shell = jsonWords(text);
      if (shell === undefined || shell.length === 0) throw refuse("SHELL without a JSON array of words");
      return { ...config, shell };
    }
    case "ENTRYPOINT": {
      const listed = jsonWords(text);
      if (listed?.length === 0) return { ...config, entrypoint: undefined };
      return { ...config, entrypoint: listed ?? [...config.shell, text] };
    }
    case "HEALTHCHECK":
      return { ...config, healthcheck: readHealthcheck(instruction, config, refuse) };
    default:
      return undefined;
  }
}

/** @returns variables with their default; undefined where there is none */
export function readArgs(
  { escapeCharacter }: Dockerfile,
  { text }: Instruction,
  lookup: (name: string) => string | undefined,
  refuse: Refuse,
): readonly (readonly [string, string | undefined])[] {
  return readWords("ARG", refuse, () =>
    words(text, escapeCharacter).map(word => {
      if (!word.includes("=")) return [expand(word, { escapeCharacter, lookup }), undefined] as const;
      const [assigned] = assignments(word, { escapeCharacter, lookup });
      return assigned ?? ([word, undefined] as const);
    }),
  );
}

export function readWords<Result>(name: string, refuse: Refuse, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (error instanceof WordError) throw refuse(`${name} ${error.message}`);
    throw error;
  }
}

function readHealthcheck(
  { flags, text }: Instruction,
  { shell }: ImageConfig,
  refuse: Refuse,
): ImageHealthcheck | undefined {
  if (text.toUpperCase() === "NONE") return undefined;
  const [, rest] = /^CMD\s+([\s\S]+)$/i.exec(text) ?? [];
  if (rest === undefined) throw refuse("HEALTHCHECK with neither CMD nor NONE");
  const duration = (flag: string, otherwise: number): number => {
    const value = flags.get(flag);
    if (value === undefined) return otherwise;
    const parts = [...`${value}`.matchAll(/(\d+(?:\.\d+)?)(h|ms|us|ns|m|s)/g)];
    if (value === true || parts.length === 0 || parts.map(([part]) => part).join("") !== value)
      throw refuse(`HEALTHCHECK --${flag}=${value}`, "a duration such as 30s or 1m30s");
    return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_MS[unit ?? ""] ?? 0), 0);
  };
  const argv = jsonWords(rest) ?? (isPlainShell(shell) ? undefined : [...shell, rest]);
  return {
    command: argv === undefined ? rest : argv.map(quoteWord).join(" "),
    intervalMs: duration("interval", 30_000),
    timeoutMs: duration("timeout", 30_000),
    startPeriodMs: duration("start-period", 0),
    startIntervalMs: duration("start-interval", 5_000),
    retries: Number(flags.get("retries") ?? 3),
  };
}

const UNIT_MS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  ns: 1e-6,
};

/** Whether commands of a sandbox run by it anyway. */
export function isPlainShell(shell: readonly string[]): boolean {
  return shell.length === 2 && shell[0] === "/bin/sh" && shell[1] === "-c";
}

/** A word for a POSIX shell. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
