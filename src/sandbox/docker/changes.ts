// What differs between a container's files and its image's.
import { z } from "zod";
import { Failure } from "../../failure/errors.ts";
import type { DaemonClient } from "../daemon/client.ts";
import { describePaths } from "../daemon/describe-paths.ts";
import { type Difference, isOfEngine } from "../daemon/difference.ts";
import { broken, nameOf } from "../daemon/leased-sandbox.ts";
import type { Lease } from "../sandbox.ts";
import type { Engine } from "./engine.ts";
import { exactPaths } from "./exact-paths.ts";
import { type Before, compareFiles, type EngineChange } from "./file-changes.ts";

const EngineChanges = z.array(z.object({ Path: z.string(), Kind: z.int() })).nullable();

/** A sandbox that is looked at: its container, and its daemon. */
interface Examined {
  readonly container: string;
  readonly lease: Lease;
  readonly client: DaemonClient;
}

/** @throws Failure SandboxBroken when what was made of the files cannot be listed */
export async function differenceOf(engine: Engine, examined: Examined, before: Before): Promise<Difference> {
  const { client } = examined;
  const listed = await listChanges(engine, examined);
  const changes = await exactPaths(client, listed, [...before.image.keys(), ...before.placed.keys()]);
  const paths = [...new Set([...changes.map(({ Path }) => Path), ...before.placed.keys()])].filter(
    path => !isOfEngine(path),
  );
  return compareFiles(changes, await describePaths(client, paths), before);
}

async function listChanges(
  engine: Engine,
  { container, lease, client }: Examined,
): Promise<readonly EngineChange[]> {
  const answer = await engine.call("GET", `/containers/${container}/changes`).catch((error: unknown) => {
    // ENAMETOOLONG: the engine looks at each file by its whole path.
    if (!(error instanceof Failure && /file name too long/.test(error.message))) throw error;
    throw broken(nameOf(lease), "its files cannot be listed: there are folders deeper than any path");
  });
  const listed = EngineChanges.safeParse(answer.value);
  if (answer.status === 200 && listed.success) return listed.data ?? [];
  await client.call({ op: "status" }); // a sandbox that is lost says why
  throw new Failure("SandboxUnavailable", "the container engine does not list changes", {
    retryable: true,
  });
}
