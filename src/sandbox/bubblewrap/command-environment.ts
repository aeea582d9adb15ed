// The environment that commands of a bubblewrap sandbox start in.
import { InvariantError } from "../../failure/errors.ts";
import type { CommandContext, CommandDefaults } from "../command-request.ts";
import type { ExecOptions, SandboxSpec } from "../sandbox.ts";
import type { Command } from "./entry-process.ts";

/** What every command starts with, unless the spec or the command says otherwise: as Docker has it. */
const BASE_ENV = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/root",
} as const;

/** The same with a locale, so that shells count characters; which ones an image has, only its author knows. */
const HOST_IMAGE_ENV = { ...BASE_ENV, LANG: "C.UTF-8" } as const;

export function commandDefaults({ workdir, image, env }: SandboxSpec): CommandDefaults {
  return { workdir, env: { ...(image.kind === "host" ? HOST_IMAGE_ENV : BASE_ENV), ...env } };
}

/** As the entry process takes it. */
export function enteredWith(
  spec: SandboxSpec,
  { cwd, env }: CommandContext,
  network: ExecOptions["network"],
): Pick<Command, "cwd" | "env" | "network"> {
  if (network === "host" && spec.network !== "host")
    throw new InvariantError("the sandbox has no network to give to a command", { cwd });
  return { cwd, env: Object.entries(env).map(([name, value]) => `${name}=${value}`), network };
}
