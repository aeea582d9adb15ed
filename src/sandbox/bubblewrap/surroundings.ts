// Where commands of a sandbox start, and in which environment.
import { InvariantError } from "../../failure/errors.ts";
import { assertEnvironment } from "../command-words.ts";
import type { ExecOptions, SandboxSpec } from "../sandbox.ts";
import type { Command } from "./porter.ts";

/** What every command starts with, unless the spec or the command says otherwise: as Docker has it. */
const BASE_ENV = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/root",
} as const;

/** The same with a locale, so that shells count characters; which ones an image has, only its author knows. */
const HOST_IMAGE_ENV = { ...BASE_ENV, LANG: "C.UTF-8" } as const;

/** @throws InputError for an environment that no process can have */
export function surroundings(
  spec: SandboxSpec,
  { cwd = spec.workdir, env = {}, network }: Partial<Pick<ExecOptions, "cwd" | "env" | "network">>,
): Pick<Command, "cwd" | "env" | "network"> {
  assertEnvironment(env, "environment of a command");
  if (network === "host" && spec.network !== "host")
    throw new InvariantError("the sandbox has no network to give to a command", { cwd });
  const base = spec.image.kind === "host" ? HOST_IMAGE_ENV : BASE_ENV;
  // A shell believes PWD when it names the folder it is in, and so keeps the name of a link.
  const variables = { ...base, PWD: cwd, ...spec.env, ...env };
  return { cwd, env: Object.entries(variables).map(([name, value]) => `${name}=${value}`), network };
}
