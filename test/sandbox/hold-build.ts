// Builds an image in a process of its own, for tests that kill it: `hold-build.ts IMAGES_FILE CONTEXT`.
import { join } from "node:path";
import { readImages } from "../../src/image/images-file.ts";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import { createRootBuilder } from "../../src/sandbox/bubblewrap/root-builder.ts";

const [, , file, context = ""] = process.argv;
const builder = createRootBuilder(readImages(file), createBubblewrapProvider());
await builder.build({
  source: { kind: "dockerfile", dockerfile: join(context, "Dockerfile"), context },
  timeoutMs: 60_000,
});
