// The sampler's health command: it fails unless the sampler answers.
import { answersHealth } from "../../src/sampler/serve/health.ts";

const port = process.env.T1_PORT ?? "8000";
if (!(await answersHealth(`http://127.0.0.1:${port}`, 4_000))) process.exitCode = 1;
