// The stages' functions: the handlers that are deployed, loaded from where the assembly says their code lies and called
// in this process. The one that makes images ready is this machine's own: it has no CodeBuild.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Assembly } from "../asl/assembly.ts";
import type { LambdaFunction } from "../asl/executors/lambda.ts";
import { InvariantError } from "../failure/errors.ts";

type Handler = LambdaFunction["handler"];

/**
 * Handlers read their settings from the environment: that of the deployment, with this machine's in front, becomes that
 * of this process.
 *
 * @param own handlers that take the place of deployed ones, by name
 */
export function openFunctions(
  { functions }: Assembly,
  environment: Readonly<Record<string, string>>,
  own: Readonly<Record<string, Handler>>,
): Readonly<Record<string, LambdaFunction>> {
  const deployed = Object.values(functions).flatMap(one => Object.entries(one.environment));
  for (const [name, value] of [...deployed, ...Object.entries(environment)])
    if (name.startsWith("T1_")) process.env[name] = value;
  return Object.fromEntries(
    Object.entries(functions).map(([name, { folder, timeoutSeconds }]) => [
      name,
      { timeoutSeconds, handler: own[name] ?? loadedOnce(folder) },
    ]),
  );
}

function loadedOnce(folder: string): Handler {
  let loaded: Promise<Handler> | undefined;
  return async (event, context) => {
    loaded ??= load(folder);
    return (await loaded)(event, context);
  };
}

async function load(folder: string): Promise<Handler> {
  const file = join(folder, "handler.ts");
  if (!existsSync(file)) throw new InvariantError("the assembly's code is gone", { file });
  const { handler } = (await import(pathToFileURL(file).href)) as { readonly handler: Handler };
  return handler;
}
