// A whole run whose store is a bucket: sandboxes, sampler and trainer, which open the store in threads of their own.
import { rmSync } from "node:fs";
import { basename, dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { executionsFolder } from "../../src/local/journals.ts";
import { readState } from "../../src/run/run-state.ts";
import { openStore } from "../../src/store/open-store.ts";
import { makeTinyRun, t1 } from "../run/tiny-run.ts";
import { findSeaweedfs, type S3Server, startSeaweedfs } from "../store/seaweedfs.ts";

const found = await findSeaweedfs();
const title = "missing" in found ? `a run in S3 (skipped: ${found.missing})` : "a run in S3";

describe.skipIf("missing" in found)(title, () => {
  let server: S3Server;
  beforeAll(async () => {
    server = await startSeaweedfs("program" in found ? found.program : "");
  }, 90_000);
  afterAll(() => server?.stop());

  it("goes from start to done, and is found again", async () => {
    const tiny = await makeTinyRun({ tasks: 6, iterations: 2, settings: "rollout:\n  episodes: 4\n" });
    onTestFinished(() => rmSync(tiny.folder, { recursive: true }));
    const url = `s3://${await server.createBucket()}/t1?endpoint=${encodeURIComponent(server.endpoint)}`;
    const ended = await t1("run", "start", tiny.config, "--name", "tiny", "--local", url);
    expect(ended.code, ended.stderr).toBe(0);
    const store = await openStore(url);
    onTestFinished(() =>
      rmSync(dirname(dirname(dirname(executionsFolder(store, "tiny")))), { recursive: true }),
    );
    expect((await readState(store, "tiny")).state).toMatchObject({ rolloutsClosed: 2, policyPublished: 2 });
    // Journals grow in a folder; of those that have ended the bucket has a copy.
    const kept = (await Array.fromAsync(store.list("runs/tiny/executions/"))).map(({ key }) => basename(key));
    expect(kept.sort()).toEqual(
      ["t1-iteration@tiny-s1-i000000", "t1-iteration@tiny-s1-i000001", "t1-run@tiny-s1"].map(
        name => `${name}.jsonl`,
      ),
    );
    expect((await t1("run", "list", "--local", url)).stdout).toMatch(/tiny +ppo +2\/2 +done/);
  });
});
