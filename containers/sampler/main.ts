// The sampler's container: serves the policies of a store to drivers until SIGTERM, after which it answers what is
// under way and ends.
import { reportError } from "../../src/cli/exit-codes.ts";
import { InputError } from "../../src/failure/errors.ts";
import { OnnxSampler } from "../../src/sampler/onnx/onnx-sampler.ts";
import { SamplerServer } from "../../src/sampler/serve/sampler-server.ts";
import { openStore } from "../../src/store/open-store.ts";
import { readContainerEnvironment } from "../environment.ts";
import { SAMPLER_ENVIRONMENT } from "./environment.ts";

async function serve(): Promise<void> {
  const env = readContainerEnvironment(SAMPLER_ENVIRONMENT);
  const {
    T1_STORE_URL: storeUrl,
    T1_POLICY: prefix,
    T1_POLICY_VERSION: version,
    T1_SAMPLER_KEY: apiKey,
  } = env;
  if ((prefix === undefined) !== (version === undefined))
    throw new InputError("expected T1_POLICY and T1_POLICY_VERSION together, or neither");
  const store = await openStore(storeUrl);
  const sampler = new OnnxSampler({ storeUrl, threads: env.T1_THREADS, cacheBytes: env.T1_CACHE_BYTES });
  const terminated = new Promise<void>(resolve => {
    process.once("SIGTERM", resolve).once("SIGINT", resolve);
  });
  const server = await SamplerServer.open({
    ...{ sampler, store, host: env.T1_HOST, port: env.T1_PORT },
    ...(prefix !== undefined && version !== undefined && { policy: { prefix, version } }),
    ...(apiKey !== undefined && { apiKey }),
  });
  process.stdout.write(`serving ${storeUrl} at ${server.url}\n`);
  await terminated;
  process.stdout.write(`draining: ${server.running} requests under way\n`);
  await server.drain(env.T1_GRACE_SECONDS * 1_000);
  await sampler[Symbol.asyncDispose]();
}

await serve().catch(error => process.exit(reportError(error, text => process.stderr.write(text))));
