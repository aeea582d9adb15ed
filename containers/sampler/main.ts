// The sampler's container serves the policies of a store to drivers until SIGTERM. Then it answers the open requests and
// ends.

import { InputError } from "../../src/failure/errors.ts";
import { reportError } from "../../src/failure/report-error.ts";
import { OnnxSampler } from "../../src/sampler/onnx/onnx-sampler.ts";
import { SamplerServer } from "../../src/sampler/serve/sampler-server.ts";
import { SAMPLER_SETTINGS } from "../../src/stages/jobs.ts";
import { openStore } from "../../src/store/open-store.ts";

async function serve(): Promise<void> {
  const settings = SAMPLER_SETTINGS.fromEnvironment(process.env);
  const {
    storeUrl,
    policy: prefix,
    policyVersion: version,
    key: apiKey,
    threads,
    cacheBytes,
    host,
    port,
  } = settings;
  if ((prefix === undefined) !== (version === undefined))
    throw new InputError("expected T1_POLICY and T1_POLICY_VERSION together, or neither");
  const store = await openStore(storeUrl);
  const sampler = new OnnxSampler({ storeUrl, threads, cacheBytes });
  const terminated = new Promise<void>(resolve => {
    process.once("SIGTERM", resolve).once("SIGINT", resolve);
  });
  const server = await SamplerServer.open({
    ...{ sampler, store, host, port },
    ...(prefix !== undefined && version !== undefined && { policy: { prefix, version } }),
    ...(apiKey !== undefined && { apiKey }),
  });
  process.stdout.write(`serving ${storeUrl} at ${server.url}\n`);
  await terminated;
  process.stdout.write(`draining: ${server.running} requests under way\n`);
  await server.drain(settings.graceSeconds * 1_000);
  await sampler[Symbol.asyncDispose]();
}

await serve().catch(error => process.exit(reportError(error, text => process.stderr.write(text))));
