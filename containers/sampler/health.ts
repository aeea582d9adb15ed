// The sampler's health command: whether it answers. That it has no weights yet is no reason to replace it: the first
// driver brings them.
const port = process.env.T1_PORT ?? "8000";
await fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(4_000) }).catch(() => {
  process.exitCode = 1;
});
