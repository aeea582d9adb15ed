import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sandboxContract } from "../../../test/contracts/sandbox.ts";
import { makeRootFolder } from "../../../test/sandbox/root-folder.ts";
import { capturedText } from "../captured-text.ts";
import type { SandboxSpec } from "../sandbox.ts";
import { type BubblewrapProvider, createBubblewrapProvider } from "./provider.ts";
import { sandboxUser } from "./sandbox-user.ts";

const parent = mkdtempSync(join(tmpdir(), "t1-root-"));
const folder = join(parent, "image, with: odd=name");

beforeAll(() => {
  chmodSync(parent, 0o755);
  makeRootFolder(folder);
});
afterAll(() => rmSync(parent, { recursive: true, force: true }));

describe("an image folder", () => {
  sandboxContract(
    async () => ({
      provider: createBubblewrapProvider(),
      image: { kind: "root", folder, files: [] },
    }),
    { except: [] },
  );
});

describe("the folder of an image", () => {
  let provider: BubblewrapProvider;
  let count = 0;
  beforeAll(() => {
    provider = createBubblewrapProvider();
  });
  afterAll(() => provider[Symbol.asyncDispose]());

  function create(image: string) {
    const spec: SandboxSpec = {
      image: { kind: "root", folder: image, files: [] },
      workdir: "/app",
      env: {},
      network: "none",
      diskBytes: 4 << 20,
    };
    return provider.create(spec, { id: `root/${count++}`, generation: 1, deadlineMs: Date.now() + 60_000 });
  }

  test("stays as it is, whatever is done to it from inside", async () => {
    await using sandbox = await create(folder);
    const command =
      "rm /bin/yes; echo changed > /etc/os-release; mkdir /new; mv /bin/true /bin/false; cat /etc/os-release; ls /bin/yes";
    const { stdout } = await sandbox.exec(command, { timeoutMs: 5_000 });
    expect(capturedText(stdout)).toBe("changed\n");
    expect(readFileSync(join(folder, "etc/os-release"), "utf8")).toBe("NAME=hand-made\n");
    for (const [name, isThere] of [
      ["bin/yes", true],
      ["bin/true", true],
      ["bin/false", false],
      ["new", false],
      [".t1", false],
    ] as const)
      expect([name, existsSync(join(folder, name))]).toEqual([name, isThere]);
    await using other = await create(folder);
    expect(capturedText((await other.exec("cat /etc/os-release", { timeoutMs: 5_000 })).stdout)).toBe(
      "NAME=hand-made\n",
    );
  });

  test("is all there is: no program or file of this machine besides the toolkit", async () => {
    await using sandbox = await create(folder);
    const { stdout } = await sandbox.exec("echo /* /.t1/bin/*; ls /usr 2>/dev/null", { timeoutMs: 5_000 });
    const [listing = "", ...usr] = capturedText(stdout).trim().split("\n");
    expect(listing.split(" ").filter(name => name.startsWith("/.t1/bin/"))).toEqual(["/.t1/bin/tar"]);
    expect(listing).not.toContain("/home");
    expect(usr.join()).not.toContain("share");
  });

  test("leaves no mount of its own on this machine", async () => {
    await using sandbox = await create(folder);
    await sandbox.exec("true", { timeoutMs: 5_000 });
    expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain("t1-");
  });

  test("must be one, must belong to the sandbox's user, and must hold a shell", async () => {
    await expect(create(join(parent, "none"))).rejects.toThrow("the image is not a folder");
    await expect(create("relative")).rejects.toThrow("the image is not a folder");
    const empty = join(parent, "empty");
    mkdirSync(empty);
    const user = sandboxUser();
    if (user === undefined) {
      await expect(create("/usr")).rejects.toThrow(/belongs to user 0.*\n.*chown -hR \d+/s);
    } else {
      await expect(create(empty)).rejects.toThrow(/belongs to user 0.*\n.*chown -hR 1900000000:1900000000/s);
      chownSync(empty, user.uid, user.gid);
    }
    await expect(create(empty)).rejects.toThrow("the image cannot be used");
    symlinkSync("/etc", join(empty, "proc"));
    await expect(create(empty)).rejects.toThrow("something is in the place of a mount");
  });
});
