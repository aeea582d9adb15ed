// The trainer: trains on one closed iteration and ends. It writes when it is done, and the same bytes each time: ended
// at any point it is simply run again.
import { reportError } from "../../src/cli/exit-codes.ts";
import type { ExitCode } from "../../src/failure/exit-code.ts";
import { train } from "../../src/learning/train.ts";
import { openStore } from "../../src/store/open-store.ts";
import { Sessions } from "../../src/training/onnx/network.ts";
import { readContainerEnvironment } from "../environment.ts";
import { startHeartbeat } from "../heartbeat.ts";
import { TRAINER_ENVIRONMENT } from "./environment.ts";

const INTERRUPTED: ExitCode = 75;
process.once("SIGTERM", () => process.exit(INTERRUPTED)).once("SIGINT", () => process.exit(INTERRUPTED));

async function main(): Promise<void> {
  const env = readContainerEnvironment(TRAINER_ENVIRONMENT);
  startHeartbeat();
  const store = await openStore(env.T1_STORE_URL);
  const sessions = new Sessions({ threads: env.T1_THREADS, device: env.T1_DEVICE });
  await train(
    { run: env.T1_RUN, iteration: env.T1_ITERATION },
    { store, sessions, onStep: (done, total) => console.log(JSON.stringify({ step: done, of: total })) },
  );
}

await main().catch(error => process.exit(reportError(error, text => process.stderr.write(text))));
