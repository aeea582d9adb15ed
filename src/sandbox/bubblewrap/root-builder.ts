// Builds images for bubblewrap: each instruction runs in a sandbox over the layers before it, and what it changed is the
// next layer.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { InputError } from "../../failure/errors.ts";
import { BuildContext } from "../../image/build-context.ts";
import { hashPlacements, placementsOf, readCopyPaths, readMode } from "../../image/copy-instruction.ts";
import { type Dockerfile, type Instruction, parseDockerfile } from "../../image/dockerfile.ts";
import type { BuildRequest, BuiltImage, ImageBuilder } from "../../image/image-builder.ts";
import {
  changeConfig,
  EMPTY_CONFIG,
  type ImageConfig,
  readArgs,
  type Scope,
} from "../../image/image-config.ts";
import type { ImageBase, Images } from "../../image/images-file.ts";
import { CARRIED_BYTES, carry, place } from "../../image/place-files.ts";
import { type Refuse, refusalOf } from "../../image/refuse.ts";
import { commandOf, endText, LAST_OUTPUT_BYTES, lastOutput } from "../../image/run-text.ts";
import { type Stage, StageList } from "../../image/stage-list.ts";
import type { RootImage, Sandbox, SandboxProvider } from "../sandbox.ts";
import { assertReachable, LayerStore } from "./layer-store.ts";
import { hashRoot } from "./root-hash.ts";

/** Part of every key: another number makes every layer anew. */
const FORMAT = 1;
/** Of the sandbox of an instruction beyond the build's own time. */
const SLACK_MS = 600_000;

export function createRootBuilder(images: Images, sandboxes: SandboxProvider): ImageBuilder {
  const layers = { store: undefined as LayerStore | undefined };
  const hashes = new Map<string, string>();
  return {
    usesHostPrograms: true,
    hasUsers: false,
    hasServices: false,
    build: async request => {
      layers.store ??= new LayerStore(images.cache);
      return new RootBuild({ images, sandboxes, store: layers.store, hashes }, request).run();
    },
  };
}

interface Services {
  readonly images: Images;
  readonly sandboxes: SandboxProvider;
  readonly store: LayerStore;
  /** Of the folders of bases. */
  readonly hashes: Map<string, string>;
}

/** An image so far. */
interface State {
  readonly folder: string;
  /** The uppermost first. */
  readonly layers: readonly string[];
  readonly key: string;
  readonly config: ImageConfig;
}

class RootBuild {
  readonly #services: Services;
  readonly #request: BuildRequest;
  readonly #deadlineMs: number;
  readonly #built = new Map<Stage, Promise<State>>();

  constructor(services: Services, request: BuildRequest) {
    this.#services = services;
    this.#request = request;
    this.#deadlineMs = Date.now() + request.timeoutMs;
  }

  async run(): Promise<BuiltImage> {
    const { source } = this.#request;
    if (source.kind === "image") {
      const { name, otherwise } = source;
      if (otherwise !== undefined && this.#services.images.find(name) === undefined)
        return this.#buildFile(otherwise);
      return builtImage(this.#base(name, name));
    }
    return this.#buildFile(source);
  }

  async #buildFile(source: { readonly dockerfile: string; readonly context: string }): Promise<BuiltImage> {
    const dockerfile = parseDockerfile(readFileSync(source.dockerfile, "utf8"), source.dockerfile);
    const build = new StageList(dockerfile);
    const context = new BuildContext(source.context, source.dockerfile);
    return builtImage(await this.#stage(build.last, build, context));
  }

  #stage(stage: Stage, build: StageList, context: BuildContext): Promise<State> {
    const begun = this.#built.get(stage) ?? this.#buildStage(stage, build, context);
    this.#built.set(stage, begun);
    return begun;
  }

  async #buildStage(stage: Stage, build: StageList, context: BuildContext): Promise<State> {
    const { dockerfile } = build;
    let state = await this.#from(stage, build, context);
    let args: Readonly<Record<string, string>> = {};
    for (const [index, instruction] of stage.instructions.entries()) {
      this.#request.signal?.throwIfAborted();
      const refuse = refusalOf(dockerfile, instruction);
      const scope = { config: state.config, args };
      const step = `${dockerfile.file}:${instruction.line} (${index + 1}/${stage.instructions.length})`;
      if (instruction.name === "ARG") {
        const lookup = (name: string) => state.config.env[name] ?? args[name];
        for (const [name, value] of readArgs(dockerfile, instruction, lookup, refuse)) {
          const known = value ?? build.globalArgs[name];
          if (known !== undefined) args = { ...args, [name]: known };
        }
        continue;
      }
      const config = changeConfig(dockerfile, instruction, scope, refuse);
      if (config !== undefined) {
        state = { ...state, config };
        if (instruction.name === "WORKDIR") state = await this.#makeWorkdir(state, step);
      } else if (instruction.name === "RUN") {
        state = await this.#run(instruction, dockerfile, state, scope, step, refuse);
      } else if (instruction.name === "COPY" || instruction.name === "ADD") {
        assertCopyFlags(instruction, refuse);
        state = instruction.flags.has("from")
          ? await this.#copyFrom(instruction, build, context, state, scope, step, refuse)
          : await this.#copy(instruction, dockerfile, context, state, scope, step, refuse);
      } else throw refuse(`${instruction.name} is not supported`, SUPPORTED);
    }
    return state;
  }

  async #from({ from }: Stage, build: StageList, context: BuildContext): Promise<State> {
    const refuse = refusalOf(build.dockerfile, from);
    const { name, earlier } = build.baseOf(from, refuse);
    if (earlier !== undefined) return this.#stage(earlier, build, context);
    if (name === "scratch")
      throw refuse("FROM scratch", "an image that an entry of the images file stands for");
    return this.#base(name, `${build.dockerfile.file}:${from.line}`);
  }

  #base(name: string, where: string): State {
    const base = this.#services.images.base(name, where);
    const { folder, env, workdir, entrypoint } = base;
    return {
      folder,
      layers: [],
      key: keyOf(["base", this.#rootHash(base, where)]),
      config: { ...EMPTY_CONFIG, env, workdir, entrypoint },
    };
  }

  #rootHash({ folder }: ImageBase, where: string): string {
    const known = this.#services.hashes.get(folder);
    if (known !== undefined) return known;
    const hash = hashRoot(folder, where);
    assertReachable(folder);
    this.#services.hashes.set(folder, hash);
    return hash;
  }

  /** Every sandbox makes its working directory; the layer makes it also for those that work elsewhere. */
  #makeWorkdir(state: State, step: string): Promise<State> {
    const { workdir } = state.config;
    return this.#layer(state, ["WORKDIR", workdir], step, `WORKDIR ${workdir}`, async () => undefined);
  }

  async #run(
    instruction: Instruction,
    dockerfile: Dockerfile,
    state: State,
    { config, args }: Scope,
    step: string,
    refuse: Refuse,
  ): Promise<State> {
    const unknown = [...instruction.flags].find(([flag, value]) => flag !== "network" || value === "host");
    if (unknown !== undefined) throw refuse(`RUN --${unknown[0]} is not supported`, SUPPORTED);
    const { images } = this.#services;
    const network = instruction.flags.get("network") === "none" ? "none" : images.build.network;
    const command = commandOf(instruction, config);
    const env = { ...args, ...config.env };
    const details = ["RUN", command, Object.entries(env).sort(), config.workdir, network];
    return this.#layer(state, details, step, `RUN ${instruction.text}`, async sandbox => {
      const result = await sandbox.exec(command, {
        timeoutMs: Math.max(1, this.#deadlineMs - Date.now()),
        // Variables of the machine, which no image keeps.
        env: { ...images.build.env, ...env },
        ...(network === "host" && { network }),
        outputLimitBytes: 2 * LAST_OUTPUT_BYTES,
        ...(this.#request.signal && { signal: this.#request.signal }),
      });
      if (result.end.kind === "exited" && result.end.exitCode === 0) return;
      throw new InputError({
        what: `RUN ${endText(result, this.#request.timeoutMs)}`,
        where: `${dockerfile.file}:${instruction.line}`,
        expected: `exit code 0; its last output was\n${lastOutput(result)}`,
        fix:
          network === "host"
            ? "change the line, or the base image"
            : "change the line, or, if it needs the network, set build.network: host in the images file",
      });
    });
  }

  async #copy(
    instruction: Instruction,
    dockerfile: Dockerfile,
    context: BuildContext,
    state: State,
    scope: Scope,
    step: string,
    refuse: Refuse,
  ): Promise<State> {
    const placements = placementsOf(dockerfile, instruction, context, scope, refuse);
    const details = [instruction.name, await hashPlacements(placements)];
    return this.#layer(state, details, step, `${instruction.name} ${instruction.text}`, async sandbox => {
      for (const placement of placements) await place(sandbox, placement, refuse);
    });
  }

  async #copyFrom(
    instruction: Instruction,
    build: StageList,
    context: BuildContext,
    state: State,
    scope: Scope,
    step: string,
    refuse: Refuse,
  ): Promise<State> {
    const { dockerfile } = build;
    const named = `${instruction.flags.get("from")}`;
    const earlier = build.find(named, instruction);
    const other =
      earlier === undefined
        ? this.#base(named, `${dockerfile.file}:${instruction.line}`)
        : await this.#stage(earlier, build, context);
    const { sources, destination, isFolder } = readCopyPaths(dockerfile, instruction, scope, refuse);
    const mode = readMode(instruction, refuse);
    const details = ["COPY --from", other.key, sources, destination, isFolder, mode ?? null];
    return this.#layer(state, details, step, `COPY --from=${named} ${instruction.text}`, async sandbox => {
      const from = await this.#sandbox(other, `from.${other.key}`);
      try {
        for (const source of sources)
          await carry(from, sandbox, { source, destination, isFolder, mode }, refuse);
      } finally {
        await from[Symbol.asyncDispose]();
      }
    });
  }

  /** The layer of an instruction, from the store or made now. */
  async #layer(
    state: State,
    details: readonly unknown[],
    step: string,
    title: string,
    change: (sandbox: Sandbox) => Promise<void>,
  ): Promise<State> {
    const { store } = this.#services;
    const key = keyOf([state.key, ...details]);
    const [line = ""] = title.split("\n", 1);
    const report = (text: string): void =>
      this.#request.onProgress?.(`${step} ${line.slice(0, 100)}: ${text}`);
    let path = store.find(key);
    if (path === undefined) {
      report("begun");
      const startedAt = performance.now();
      path = await store.make(key, async changes => {
        const sandbox = await this.#sandbox(state, `build.${key}`, changes);
        try {
          await change(sandbox);
          // What a command left running would go on to write.
          await sandbox.killAgents();
        } finally {
          await sandbox[Symbol.asyncDispose]();
        }
      });
      report(`${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
    }
    return { ...state, key, layers: [path, ...state.layers] };
  }

  #sandbox({ folder, layers, config }: State, id: string, changes?: string): Promise<Sandbox> {
    const image: RootImage = {
      kind: "root",
      folder,
      layers,
      files: [],
      ...(changes !== undefined && { changes }),
    };
    const { network } = this.#services.images.build;
    const spec = { image, workdir: config.workdir, env: config.env, network, diskBytes: CARRIED_BYTES };
    return this.#services.sandboxes.create(spec, {
      id: `${id}.${process.pid}.${lastSandbox++}`,
      generation: 1,
      deadlineMs: this.#deadlineMs + SLACK_MS,
    });
  }
}

let lastSandbox = 0;

const SUPPORTED =
  "FROM, WORKDIR, ENV, ARG, COPY, ADD of files, RUN, USER root, ENTRYPOINT, CMD, SHELL, LABEL, EXPOSE, VOLUME, HEALTHCHECK";

const COPY_FLAGS = new Set(["from", "chown", "chmod", "link"]);

function assertCopyFlags({ name, flags }: Instruction, refuse: Refuse): void {
  for (const [flag, value] of flags) {
    if (!COPY_FLAGS.has(flag)) throw refuse(`${name} --${flag} is not supported`, SUPPORTED);
    if (flag === "chown" && !/^(root|0)(:(root|0))?$/.test(`${value}`)) {
      throw refuse(
        `${name} --chown=${value}: the image wants several users`,
        "root: one user is mapped into a bubblewrap sandbox, and all files are its own",
      );
    }
  }
}

function builtImage({ folder, layers, key, config }: State): BuiltImage {
  const { env, workdir, entrypoint, healthcheck } = config;
  return {
    image: { kind: "root", folder, layers, files: [], ...(entrypoint !== undefined && { entrypoint }) },
    workdir,
    env,
    healthcheck,
    hash: key,
  };
}

function keyOf(details: readonly unknown[]): string {
  return createHash("sha256")
    .update(JSON.stringify([FORMAT, ...details]))
    .digest("hex")
    .slice(0, 32);
}
