// The trainer: trains on one closed iteration and ends. It writes when it is done, and the same bytes each time: ended
// at any point it is simply run again.
//   T1_RUN, T1_ITERATION    overrides of the job
//   T1_STORE_URL, T1_THREADS
import { availableParallelism } from "node:os";
import { z } from "zod";
import { reportError } from "../../src/cli/exit-codes.ts";
import type { ExitCode } from "../../src/failure/exit-code.ts";
import { train } from "../../src/pipeline/train.ts";
import { openStore } from "../../src/store/open-store.ts";
import { Sessions } from "../../src/training/onnx/network.ts";
import { readContainerEnvironment } from "../environment.ts";

const INTERRUPTED: ExitCode = 75;
process.once("SIGTERM", () => process.exit(INTERRUPTED)).once("SIGINT", () => process.exit(INTERRUPTED));

async function main(): Promise<void> {
  const env = readContainerEnvironment({
    T1_STORE_URL: z.string().min(1),
    T1_RUN: z.string().min(1),
    T1_ITERATION: z.coerce.number().int().nonnegative(),
    T1_THREADS: z.coerce.number().int().positive().default(availableParallelism()),
  });
  const store = await openStore(env.T1_STORE_URL);
  const sessions = new Sessions(env.T1_THREADS);
  await train(
    { run: env.T1_RUN, iteration: env.T1_ITERATION },
    { store, sessions, onStep: (done, total) => console.log(JSON.stringify({ step: done, of: total })) },
  );
}

await main().catch(error => process.exit(reportError(error, text => process.stderr.write(text))));
