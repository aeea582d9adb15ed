// The stages of a Dockerfile, and the arguments that stand before them.
import { InputError } from "../failure/errors.ts";
import type { Dockerfile, Instruction } from "./dockerfile.ts";
import { expand } from "./dockerfile-words.ts";
import { readArgs, readWords } from "./image-config.ts";
import { type Refuse, refusalOf } from "./refuse.ts";

export interface Stage {
  readonly name: string | undefined;
  readonly from: Instruction;
  readonly instructions: readonly Instruction[];
}

/** Arguments that every build has (https://docs.docker.com/reference/dockerfile/#automatic-platform-args-in-the-global-scope). */
const ARCHITECTURE = process.arch === "arm64" ? "arm64" : "amd64";
const PLATFORM_ARGS: Readonly<Record<string, string>> = {
  TARGETPLATFORM: `linux/${ARCHITECTURE}`,
  TARGETOS: "linux",
  TARGETARCH: ARCHITECTURE,
  BUILDPLATFORM: `linux/${ARCHITECTURE}`,
  BUILDOS: "linux",
  BUILDARCH: ARCHITECTURE,
};

export class StageList {
  readonly dockerfile: Dockerfile;
  readonly globalArgs: Readonly<Record<string, string>>;
  readonly #stages: readonly Stage[];

  constructor(dockerfile: Dockerfile) {
    this.dockerfile = dockerfile;
    const args: Record<string, string> = { ...PLATFORM_ARGS };
    const stages: (Stage & { readonly instructions: Instruction[] })[] = [];
    for (const instruction of dockerfile.instructions) {
      const refuse = refusalOf(dockerfile, instruction);
      const stage = stages.at(-1);
      if (instruction.name === "FROM") {
        const [, name] = /\s+AS\s+(\S+)$/i.exec(instruction.text) ?? [];
        stages.push({ name: name?.toLowerCase(), from: instruction, instructions: [] });
      } else if (stage !== undefined) stage.instructions.push(instruction);
      else if (instruction.name === "ARG") {
        for (const [name, value] of readArgs(dockerfile, instruction, variable => args[variable], refuse))
          if (value !== undefined) args[name] = value;
      } else throw refuse(`${instruction.name} before FROM`, "FROM first");
    }
    this.globalArgs = args;
    this.#stages = stages;
  }

  get last(): Stage {
    const last = this.#stages.at(-1);
    if (last !== undefined) return last;
    throw new InputError({
      what: "no FROM",
      where: this.dockerfile.file,
      fix: "start it with FROM and an image",
    });
  }

  /** Names of the images that its stages start from, with the line of each; other stages and `scratch` are none. */
  bases(): readonly { readonly name: string; readonly where: string }[] {
    return this.#stages.flatMap(({ from }) => {
      const { name, earlier } = this.baseOf(from, refusalOf(this.dockerfile, from));
      if (earlier !== undefined || name === "scratch") return [];
      return [{ name, where: `${this.dockerfile.file}:${from.line}` }];
    });
  }

  /** The stage before `user` that a name or number means. */
  find(name: string, user: Instruction): Stage | undefined {
    const before = this.#stages
      .filter(({ from }) => from.line < user.line)
      .filter(stage => stage.from !== user && !stage.instructions.includes(user));
    return (
      before.findLast(stage => stage.name === name.toLowerCase()) ??
      (/^\d+$/.test(name) ? before[Number(name)] : undefined)
    );
  }

  baseOf(from: Instruction, refuse: Refuse): { readonly name: string; readonly earlier: Stage | undefined } {
    const { escapeCharacter } = this.dockerfile;
    const lookup = (variable: string) => this.globalArgs[variable];
    const platform = from.flags.get("platform");
    if (platform !== undefined) {
      const wanted = readWords("FROM", refuse, () => expand(`${platform}`, { escapeCharacter, lookup }));
      if (wanted !== PLATFORM_ARGS.TARGETPLATFORM)
        throw refuse(`FROM --platform=${wanted}`, `${PLATFORM_ARGS.TARGETPLATFORM}, which this machine is`);
    }
    const [image = "", as, , ...more] = from.text.split(/\s+/);
    if (image === "" || more.length > 0 || (as !== undefined && as.toUpperCase() !== "AS"))
      throw refuse("FROM with other than an image and a name", "FROM image, or FROM image AS name");
    const name = readWords("FROM", refuse, () => expand(image, { escapeCharacter, lookup }));
    return { name, earlier: this.find(name, from) };
  }
}
