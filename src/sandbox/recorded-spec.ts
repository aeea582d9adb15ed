// A sandbox's spec as it is written down for a driver that takes the sandbox over. Ours, since it came from us.
import { z } from "zod";

const Text = z.string();
const File = z.strictObject({ from: Text, to: Text });

export const DockerImageSpec = z.strictObject({
  kind: z.literal("docker"),
  reference: Text,
  files: z.array(File).readonly(),
});
export const HostImageSpec = z.strictObject({ kind: z.literal("host"), files: z.array(File).readonly() });

/** All but the image, which each provider has some kinds of. */
export const RecordedSpec = z.strictObject({
  workdir: Text,
  env: z.record(Text, Text),
  network: z.enum(["none", "host", "public"]),
  diskBytes: z.number(),
  user: Text.optional(),
  memoryBytes: z.number().optional(),
  cpus: z.number().optional(),
});
