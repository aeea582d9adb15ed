// The sampler's container: serves the policies of a store to drivers until SIGTERM, after which it answers what is
// under way and ends.
import { availableParallelism } from "node:os";
import { z } from "zod";
import { reportError } from "../../src/cli/exit-codes.ts";
import { InputError } from "../../src/failure/errors.ts";
import { OnnxSampler } from "../../src/sampler/onnx/onnx-sampler.ts";
import { SamplerServer } from "../../src/sampler/serve/sampler-server.ts";
import { openStore } from "../../src/store/open-store.ts";

const Count = z.coerce.number().int().positive();
const Environment = z
  .object({
    /** As `openStore` takes it. */
    T1_STORE: z.string().min(1),
    /** Key of the policy to begin with; without it the first update brings one. */
    T1_POLICY: z.string().endsWith("/").optional(),
    T1_POLICY_VERSION: z.coerce.number().int().nonnegative().optional(),
    /** Clients then send it as a bearer token. */
    T1_SAMPLER_KEY: z.string().min(1).optional(),
    T1_THREADS: Count.default(availableParallelism()),
    T1_CACHE_BYTES: Count.default(2 ** 31),
    HOST: z.string().min(1).default("0.0.0.0"),
    /** SGLang's own. */
    PORT: z.coerce.number().int().min(0).max(65_535).default(30_000),
    /** Fargate waits 120 s at most before it kills. */
    T1_GRACE_SECONDS: Count.default(110),
  })
  .refine(
    ({ T1_POLICY, T1_POLICY_VERSION }) => (T1_POLICY === undefined) === (T1_POLICY_VERSION === undefined),
    "expected T1_POLICY and T1_POLICY_VERSION together",
  );

try {
  await serve(parseEnvironment());
} catch (error) {
  process.exit(reportError(error, text => process.stderr.write(text)));
}

async function serve(environment: z.infer<typeof Environment>): Promise<void> {
  const {
    T1_STORE: storeUrl,
    T1_POLICY: prefix,
    T1_POLICY_VERSION: version,
    T1_SAMPLER_KEY: apiKey,
  } = environment;
  const store = await openStore(storeUrl);
  const sampler = new OnnxSampler({
    storeUrl,
    threads: environment.T1_THREADS,
    cacheBytes: environment.T1_CACHE_BYTES,
  });
  const terminated = new Promise<void>(resolve => {
    process.once("SIGTERM", resolve).once("SIGINT", resolve);
  });
  const server = await SamplerServer.open({
    ...{ sampler, store, host: environment.HOST, port: environment.PORT },
    ...(prefix !== undefined && version !== undefined && { policy: { prefix, version } }),
    ...(apiKey !== undefined && { apiKey }),
  });
  process.stdout.write(`serving ${storeUrl} at ${server.url}\n`);
  await terminated;
  process.stdout.write(`draining: ${server.running} requests under way\n`);
  await server.drain(environment.T1_GRACE_SECONDS * 1_000);
  await sampler[Symbol.asyncDispose]();
}

function parseEnvironment(): z.infer<typeof Environment> {
  const parsed = Environment.safeParse(process.env);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new InputError({
    what: "the sampler cannot start",
    where: "environment",
    expected: issues.join("; "),
    fix: "see the top of containers/sampler/main.ts",
  });
}
