// The trainer: trains on one closed iteration and ends. It writes when it is done, and the same bytes each time: ended
// at any point it is simply run again.

import { FAILED_OR_STOPPED } from "../../src/failure/exit-code.ts";
import { reportError } from "../../src/failure/report-error.ts";
import { train } from "../../src/learning/train.ts";
import { TRAINER_JOB, TRAINER_SETTINGS } from "../../src/stages/jobs.ts";
import { openStore } from "../../src/store/open-store.ts";
import { Sessions } from "../../src/training/onnx/network.ts";
import { startHeartbeat } from "../heartbeat.ts";

const leave = () => process.exit(FAILED_OR_STOPPED);
process.once("SIGTERM", leave).once("SIGINT", leave);

async function main(): Promise<void> {
  const job = TRAINER_JOB.fromEnvironment(process.env);
  const { storeUrl, ...settings } = TRAINER_SETTINGS.fromEnvironment(process.env);
  startHeartbeat();
  const store = await openStore(storeUrl);
  const sessions = new Sessions(settings);
  await train(job, {
    store,
    sessions,
    onStep: (done, total) => console.log(JSON.stringify({ step: done, of: total })),
  });
}

await main().catch(error => process.exit(reportError(error, text => process.stderr.write(text))));
