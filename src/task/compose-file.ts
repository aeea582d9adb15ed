// Reads the docker-compose.yaml of a task: the agent's container, `main`, and the services beside it. It refuses by name
// what our sandboxes cannot give, and leaves out settings that only matter on the author's machine (published ports,
// names of networks, restarts of containers).
// Reference: https://github.com/compose-spec/compose-spec/blob/main/05-services.md
import { dirname, join } from "node:path";
import { parseDocument } from "yaml";
import type { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { valueOfYaml } from "../settings/yaml-value.ts";
import { type Build, File, Service } from "./compose-schema.ts";
import { parseDuration, parseSize, splitCommand } from "./compose-values.ts";
import { readText } from "./read-text.ts";

/** Settings of `main`, the sandbox. Its limits, user and network are those of task.toml. */
interface ComposeMain {
  /** Replaces the environment's own Dockerfile. */
  readonly build: ComposeBuild | undefined;
  readonly env: Readonly<Record<string, string>>;
}

export interface ComposeService {
  readonly name: string;
  readonly source:
    | ({ readonly kind: "build" } & ComposeBuild)
    | { readonly kind: "image"; readonly name: string };
  /** The image's own by default. */
  readonly command: readonly string[] | undefined;
  readonly entrypoint: readonly string[] | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string | undefined;
  readonly user: string | undefined;
  readonly healthcheck: ComposeHealthcheck | undefined;
  readonly dependsOn: readonly Dependency[];
  readonly memoryBytes: number | undefined;
  readonly cpus: number | undefined;
}

export interface ComposeBuild {
  readonly dockerfile: string;
  readonly context: string;
}

/** Docker's form: the first word says how to run the others, CMD, CMD-SHELL or NONE. */
interface ComposeHealthcheck {
  readonly test: readonly string[];
  readonly intervalMs: number | undefined;
  readonly timeoutMs: number | undefined;
  readonly startPeriodMs: number | undefined;
  readonly retries: number | undefined;
}

export interface Dependency {
  readonly service: string;
  readonly condition: "service_started" | "service_healthy" | "service_completed_successfully";
}

export interface ComposeFile {
  readonly main: ComposeMain;
  /** Sorted: each service after those that it depends on. */
  readonly services: readonly ComposeService[];
}

/** Variables that Harbor gives to a task's file (environments/docker/docker.py, 0.26), as far as they matter here. */
const HARBOR_VARIABLES = (context: string): Readonly<Record<string, string>> => ({
  CONTEXT_DIR: context,
  MAIN_IMAGE_NAME: "main",
  NETWORK_MODE: "bridge",
  CPUS: "1",
  MEMORY: "1G",
  HOST_VERIFIER_LOGS_PATH: "/logs/verifier",
  ENV_VERIFIER_LOGS_PATH: "/logs/verifier",
  HOST_AGENT_LOGS_PATH: "/logs/agent",
  ENV_AGENT_LOGS_PATH: "/logs/agent",
  HOST_ARTIFACTS_PATH: "/logs/artifacts",
  ENV_ARTIFACTS_PATH: "/logs/artifacts",
});

/**
 * @param env values of `${NAME}`; like Compose, we take a missing name as empty
 * @throws InputError naming the service and key that is wrong, or that a sandbox cannot give
 */
export function readComposeFile(
  file: string,
  env: Readonly<Record<string, string | undefined>>,
): ComposeFile {
  const folder = dirname(file);
  const document = parseDocument(readText(file), { merge: true });
  const [error] = document.errors;
  if (error !== undefined)
    throw refusal(file, (error.message.split("\n")[0] ?? "").replace(/:$/, ""), "valid YAML");
  const variables = { ...env, ...HARBOR_VARIABLES(folder) };
  const parsed = File.safeParse(
    interpolate(withoutExtensions(valueOfYaml(document, file)), name => variables[name]),
  );
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const keys = issue?.code === "unrecognized_keys" ? issue.keys : [];
    const where = [...(issue?.path ?? []), ...keys.slice(0, 1)].join(".");
    const what = keys.length > 0 ? `${where}: sandboxes do not have it` : `${where}: ${issue?.message}`;
    throw refusal(file, what, "services of images, commands, variables and health checks");
  }
  const { main, ...others } = parsed.data.services;
  for (const [name, service] of Object.entries(parsed.data.services)) assertPossible(file, name, service);
  const services = Object.entries(others).map(([name, service]) => readService(file, name, service, env));
  assertPorts(file, others);
  const awaited = dependenciesOf(main ?? Service.parse({}));
  assertKnown(file, [...services, { name: "main", dependsOn: awaited }], services);
  return {
    main: {
      build: main?.build === undefined ? undefined : readBuild(folder, main.build),
      env: readEnvironment(main?.environment ?? [], env),
    },
    services: inOrder(file, services),
  };
}

/** Keys that begin with x- are the author's own, often for anchors. */
function withoutExtensions(content: unknown): unknown {
  if (typeof content !== "object" || content === null) return content;
  return Object.fromEntries(Object.entries(content).filter(([key]) => !key.startsWith("x-")));
}

function readService(
  file: string,
  name: string,
  service: Service,
  env: Readonly<Record<string, string | undefined>>,
): ComposeService {
  const { build, image, command, entrypoint, healthcheck, deploy } = service;
  if (build === undefined && image === undefined)
    throw refusal(file, `services.${name}: neither build nor image`, "one of them");
  const limits = deploy?.resources?.limits ?? {};
  const where = (key: string): string => `${file}: services.${name}.${key}`;
  const duration = (key: "interval" | "timeout" | "start_period"): number | undefined =>
    healthcheck?.[key] === undefined
      ? undefined
      : parseDuration(healthcheck[key], where(`healthcheck.${key}`));
  const test = healthcheck?.disable ? ["NONE"] : healthcheck?.test;
  return {
    name,
    source:
      build !== undefined
        ? { kind: "build", ...readBuild(dirname(file), build) }
        : { kind: "image", name: image ?? "" },
    command: command === undefined ? undefined : splitCommand(command, where("command")),
    entrypoint: entrypoint === undefined ? undefined : splitCommand(entrypoint, where("entrypoint")),
    env: readEnvironment(service.environment, env),
    workdir: service.working_dir,
    user: service.user,
    healthcheck:
      test === undefined
        ? undefined
        : {
            test: typeof test === "string" ? ["CMD-SHELL", test] : test,
            intervalMs: duration("interval"),
            timeoutMs: duration("timeout"),
            startPeriodMs: duration("start_period"),
            retries: healthcheck?.retries,
          },
    dependsOn: dependenciesOf(service),
    memoryBytes: limits.memory == null ? undefined : parseSize(`${limits.memory}`, where("memory")),
    cpus: limits.cpus == null ? undefined : Number(limits.cpus),
  };
}

function readBuild(folder: string, build: z.infer<typeof Build>): ComposeBuild {
  const { context, dockerfile = "Dockerfile" } =
    typeof build === "string" ? { context: build, dockerfile: undefined } : build;
  const path = context.startsWith("/") ? context : join(folder, context);
  return { context: path, dockerfile: join(path, dockerfile) };
}

/** A name without a value takes it from the environment, where it has one. */
function readEnvironment(
  environment: Service["environment"],
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  const pairs: readonly (readonly [string, unknown])[] = Array.isArray(environment)
    ? environment.map(text => {
        const at = text.indexOf("=");
        return at < 0 ? ([text, null] as const) : ([text.slice(0, at), text.slice(at + 1)] as const);
      })
    : Object.entries(environment);
  return Object.fromEntries(
    pairs.flatMap(([name, value]) => {
      const known = value ?? env[name];
      return known === undefined ? [] : [[name, `${known}`]];
    }),
  );
}

function dependenciesOf({ depends_on }: Pick<Service, "depends_on">): readonly Dependency[] {
  if (Array.isArray(depends_on))
    return depends_on.map(service => ({ service, condition: "service_started" }));
  return Object.entries(depends_on).map(([service, { condition }]) => ({ service, condition }));
}

function assertPossible(file: string, name: string, { volumes, network_mode, command }: Service): void {
  const at = `services.${name}`;
  for (const volume of volumes) {
    const target = typeof volume === "string" ? volume.split(":")[1] : undefined;
    // Every sandbox has its own log folders.
    if (name === "main" && target?.startsWith("/logs")) continue;
    const text = typeof volume === "string" ? volume : JSON.stringify(volume);
    throw refusal(file, `${at}.volumes: ${text}`, "no folder of this machine and no volume in a sandbox");
  }
  if (network_mode !== undefined && network_mode !== "bridge")
    throw refusal(file, `${at}.network_mode: ${network_mode}`, "the network of the task");
  const words = typeof command === "string" ? command : (command ?? []).join(" ");
  if (name === "main" && words !== "" && !/\bsleep infinity$/.test(words.trim()))
    throw refusal(file, `${at}.command: ${words}`, "a container that waits: sleep infinity");
}

/** All containers of a sandbox share one network, so two services cannot use the same port. */
function assertPorts(file: string, services: Readonly<Record<string, Service>>): void {
  const owners = new Map<string, string>();
  for (const [name, { expose }] of Object.entries(services))
    for (const port of expose) {
      const owner = owners.get(port);
      if (owner !== undefined)
        throw refusal(file, `services.${name}.expose: ${port} is ${owner}'s too`, "a port for each service");
      owners.set(port, name);
    }
}

function assertKnown(
  file: string,
  dependents: readonly Pick<ComposeService, "name" | "dependsOn">[],
  services: readonly ComposeService[],
): void {
  const names = new Set(services.map(({ name }) => name));
  for (const { name, dependsOn } of dependents)
    for (const { service } of dependsOn)
      if (!names.has(service))
        throw refusal(file, `services.${name}.depends_on: ${service}`, `one of ${[...names].join(", ")}`);
}

function inOrder(file: string, services: readonly ComposeService[]): readonly ComposeService[] {
  const ordered: ComposeService[] = [];
  for (let waiting = [...services]; waiting.length > 0; ) {
    const done = new Set(ordered.map(({ name }) => name));
    const ready = waiting.filter(({ dependsOn }) => dependsOn.every(({ service }) => done.has(service)));
    if (ready.length === 0)
      throw refusal(
        file,
        `services.${waiting[0]?.name}.depends_on: a circle`,
        "services that begin somewhere",
      );
    ordered.push(...ready);
    waiting = waiting.filter(service => !ready.includes(service));
  }
  return ordered;
}

function refusal(file: string, what: string, expected: string): InputError {
  return new InputError({
    what,
    where: file,
    expected,
    fix: "change the file, or leave the task out of the pool",
  });
}

/**
 * Variables of a Compose file: $$, ${NAME}, ${NAME:-otherwise}, ${NAME-otherwise}, $NAME
 * Source: https://github.com/compose-spec/compose-spec/blob/main/12-interpolation.md
 */
const VARIABLE = /\$(?:(\$)|\{([A-Za-z_]\w*)(?:(:?-)([^}]*))?\}|([A-Za-z_]\w*))/g;

/** Replaces variables in every text of a value, but not in keys. Like Compose, it takes an unknown one as empty. */
export function interpolate(value: unknown, lookup: (name: string) => string | undefined): unknown {
  if (typeof value === "string") return replaceIn(value, lookup);
  if (Array.isArray(value)) return value.map(item => interpolate(item, lookup));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, interpolate(item, lookup)]));
}

function replaceIn(text: string, lookup: (name: string) => string | undefined): string {
  return text.replace(VARIABLE, (_, dollar, braced, operator, otherwise, plain) => {
    if (dollar !== undefined) return "$";
    const value = lookup(braced ?? plain);
    const isMissing = value === undefined || (operator === ":-" && value === "");
    return isMissing ? (otherwise ?? "") : value;
  });
}
