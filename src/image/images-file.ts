// The file that says what images mean on this machine: which folder stands for which name, and which of a task's phases
// may have this machine's network. It is the machine's, not the project's: paths, proxies and indexes belong there.
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseDocument } from "yaml";
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { readUserText } from "../files/user-files.ts";
import { valueOfYaml } from "../settings/yaml-value.ts";
import { patternSource } from "./ignore-file.ts";

/** How messages speak of it. */
export const IMAGES_FILE = { what: "the file of images", expected: "a YAML file (docs/images.md)" } as const;

/** Names the file where no `--images` does. */
export const IMAGES_VARIABLE = "T1_IMAGES";

const Variables = z.record(z.string(), z.coerce.string());
const BuildNetwork = z.enum(["none", "host"]);
const Network = z.enum(["none", "host", "public"]);

const Base = z.union([
  z.string(),
  z.strictObject({
    folder: z.string(),
    /** Settings of the image that it stands for. */
    env: Variables.default({}),
    workdir: z.string().default("/"),
    entrypoint: z.array(z.string()).optional(),
  }),
]);

const ImagesFile = z.strictObject({
  /** Names or patterns (`python:3.12*`), the first that fits counts. */
  bases: z.record(z.string(), Base).default({}),
  /** Folder of built layers. */
  cache: z.string().optional(),
  build: z.strictObject({ network: BuildNetwork.default("none"), env: Variables.default({}) }).prefault({}),
  /** The network of agents and solutions whose task asks for more than a sandbox has. Such tasks are refused when it is not given. */
  agent: z.strictObject({ network: Network, env: Variables.default({}) }).optional(),
  /** The same for tests. */
  verifier: z.strictObject({ network: Network, env: Variables.default({}) }).optional(),
});

export interface ImageBase {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly entrypoint: readonly string[] | undefined;
}

export interface PhaseNetwork {
  readonly network: "none" | "host" | "public";
  /** For commands that have a network: proxies, indexes, certificates. In no hash. */
  readonly env: Readonly<Record<string, string>>;
}

export interface Images {
  /** @returns undefined when nothing stands for that name */
  find(name: string): ImageBase | undefined;
  /** @throws InputError saying how to make one */
  base(name: string, where: string): ImageBase;
  readonly cache: string;
  readonly build: PhaseNetwork & { readonly network: "none" | "host" };
  readonly agent: PhaseNetwork | undefined;
  readonly verifier: PhaseNetwork | undefined;
}

/**
 * @param file a YAML file; the one that the environment names when not given; without either no image has a base
 * @throws InputError naming the file and the path in it
 */
export function readImages(file: string | undefined = process.env[IMAGES_VARIABLE]): Images {
  if (file === undefined) return imagesOf(ImagesFile.parse({}), undefined);
  const document = parseDocument(readUserText(file, IMAGES_FILE));
  const [error] = document.errors;
  if (error !== undefined)
    throw new InputError({ what: error.message, where: file, fix: "write valid YAML" });
  const parsed = ImagesFile.safeParse(valueOfYaml(document, file) ?? {});
  if (!parsed.success) {
    throw new InputError({
      what: z.prettifyError(parsed.error).replace(/\s+/g, " "),
      where: file,
      fix: "see docs/images.md",
    });
  }
  return imagesOf(parsed.data, file);
}

function imagesOf(content: z.infer<typeof ImagesFile>, file: string | undefined): Images {
  const { bases, build, agent, verifier } = content;
  const besideFile = (path: string): string => resolve(file === undefined ? "." : dirname(file), path);
  const find = (name: string): ImageBase | undefined => {
    const short = shortName(name);
    const found = Object.entries(bases).find(
      ([pattern]) =>
        pattern === name || new RegExp(`^${patternSource(shortName(pattern))}$`, "su").test(short),
    )?.[1];
    if (found === undefined) return undefined;
    if (typeof found === "string")
      return { folder: besideFile(found), env: {}, workdir: "/", entrypoint: undefined };
    return { ...found, folder: besideFile(found.folder), entrypoint: found.entrypoint };
  };
  return {
    find,
    build,
    agent,
    verifier,
    cache: content.cache === undefined ? defaultCache() : besideFile(content.cache),
    base: (name, where) => {
      const found = find(name);
      if (found === undefined) throw unknownBase(name, where, file);
      return found;
    },
  };
}

/** Sandboxes of the machine's root cannot enter its home. */
function defaultCache(): string {
  return process.getuid?.() === 0 ? "/var/cache/t1/images" : join(homedir(), ".cache", "t1", "images");
}

/** As Docker reads names: `docker.io/library/x` is `x`, no tag is `latest`, a digest does not tell more. */
function shortName(name: string): string {
  const plain = name.replace(/@sha256:[0-9a-f]+$/, "").replace(/^(docker\.io\/)?(library\/)?/, "");
  return /:[^/]*$/.test(plain) || plain.endsWith("*") ? plain : `${plain}:latest`;
}

function unknownBase(name: string, where: string, file: string | undefined): InputError {
  const suite = /bookworm|debian:12|python/.test(name)
    ? "bookworm"
    : /debian/.test(name)
      ? "trixie"
      : "noble";
  const folder = `/roots/${shortName(name).replace(/[^\w.]+/g, "-")}`;
  const line = `bases: { ${JSON.stringify(name)}: ${folder} }`;
  return new InputError({
    what: `nothing on this machine stands for the image ${name}`,
    where,
    expected: file === undefined ? `a file named by --images or ${IMAGES_VARIABLE}` : `an entry in ${file}`,
    fix: `scripts/make-root.sh ${suite} ${folder} makes a root file system by debootstrap; then write: ${line}`,
  });
}
