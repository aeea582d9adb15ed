// Builds an image in a process of its own, for tests that kill it: `hold-build.ts IMAGES_FILE CONTEXT`.
import { join } from "node:path";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import { readImages } from "../../src/sandbox/image/images-file.ts";
import { createRootBuilder } from "../../src/sandbox/image/root-builder.ts";

const [, , file, context = ""] = process.argv;
const builder = createRootBuilder(readImages(file), createBubblewrapProvider());
await builder.build({
  source: { kind: "dockerfile", dockerfile: join(context, "Dockerfile"), context },
  timeoutMs: 60_000,
});
