// The assembly that `cdk deploy` would deploy, synthesized when this version is first used and kept beside the clone. No
// copy of a definition is part of the repository: the folder is named by everything that the synthesis reads.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { InvariantError } from "../failure/errors.ts";
import { attributeFileError } from "../files/file-errors.ts";
import { makeFolders } from "../files/make-folders.ts";

export const ROOT = join(import.meta.dirname, "../..");

const CdkSettings = z.looseObject({ context: z.record(z.string(), z.unknown()) });

/**
 * @param folder where assemblies are kept
 * @returns the assembly's folder
 * @throws Failure StoreUnavailable when the folder cannot be written. @throws InvariantError when the app does not work
 */
export async function synthesizedAssembly({
  folder = join(ROOT, ".t1/assemblies"),
  onSynthesis,
}: {
  readonly folder?: string;
  readonly onSynthesis?: () => void;
} = {}): Promise<string> {
  const assembly = join(folder, hashOfSources());
  if (isThere(assembly)) return assembly;
  onSynthesis?.();
  let unfinished: string;
  try {
    makeFolders(folder);
    unfinished = mkdtempSync(join(folder, "unfinished-"));
  } catch (error) {
    throw attributeFileError(error, "create", folder);
  }
  try {
    await synthesize(unfinished);
    renameSync(unfinished, assembly);
  } catch (error) {
    // Another process may have been faster.
    if (!isThere(assembly)) throw error;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return assembly;
}

function isThere(assembly: string): boolean {
  try {
    return readdirSync(assembly).includes("manifest.json");
  } catch {
    return false;
  }
}

/** As the `cdk` command calls the app; functions are not bundled, since they run from their sources here. */
async function synthesize(folder: string): Promise<void> {
  const { context } = CdkSettings.parse(JSON.parse(readFileSync(join(ROOT, "cdk.json"), "utf8")));
  const child = spawn(process.execPath, [join(ROOT, "infra/app.ts")], {
    cwd: ROOT,
    env: {
      ...process.env,
      CDK_OUTDIR: folder,
      CDK_CONTEXT_JSON: JSON.stringify({ ...context, "aws:cdk:bundling-stacks": [] }),
    },
    stdio: ["ignore", "ignore", "pipe"],
    // Ctrl-C at a terminal is meant for us: it would end the app, and that look like a bug of it.
    detached: true,
  });
  const end = () => child.kill();
  process.once("exit", end);
  child.once("close", () => process.off("exit", end));
  let printed = "";
  child.stderr.on("data", text => {
    printed += text;
  });
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  child.once("error", reject).once("close", resolve);
  const code = await promise;
  if (code !== 0) throw new InvariantError("the state machines cannot be synthesized", { code, printed });
}

function hashOfSources(): string {
  const hash = createHash("sha256").update(`${ROOT}\0${process.version}\0`);
  const files = ["infra", "src", "lambdas"].flatMap(folder =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
      .filter(name => /(?<!\.test)\.(ts|mjs)$/.test(name))
      .map(name => join(folder, name)),
  );
  for (const file of ["cdk.json", "package-lock.json", ...files.sort()])
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(ROOT, file)))
      .update("\0");
  return hash.digest("hex").slice(0, 32);
}
