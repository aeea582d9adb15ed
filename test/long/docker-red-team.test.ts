// The red team's attacks on containers, over an image of the host's own programs.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe } from "vitest";
import { createDockerBuilder } from "../../src/sandbox/docker/docker-builder.ts";
import { createDockerProvider } from "../../src/sandbox/docker/provider.ts";
import { redTeam } from "../red-team/red-team.ts";
import { importFolder, noDocker } from "../sandbox/docker-images.ts";
import { makeRootFolder } from "../sandbox/root-folder.ts";

const why = noDocker === undefined ? "" : ` (skipped: ${noDocker})`;
const IMAGE = "t1-test/red-team:1";
const PROGRAMS = [
  ...["bash", "chattr", "date", "find", "getent", "head", "kill", "mkfifo", "mount", "perl", "pkill", "sed"],
  ...["tail", "tar", "tee", "test", "truncate", "umount", "unshare"],
];

/** An image with those programs and what perl loads for sockets. */
async function importPrograms(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "t1-red-team-"));
  try {
    const modules = execFileSync(
      "perl",
      [
        "-MIO::Socket::INET",
        "-MDynaLoader",
        "-e",
        'print "$_\\n" for values %INC, @DynaLoader::dl_shared_objects',
      ],
      { encoding: "utf8" },
    );
    makeRootFolder(
      folder,
      { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
      {
        programs: PROGRAMS,
        files: modules.trim().split("\n"),
      },
    );
    mkdirSync(join(folder, "root"));
    writeFileSync(join(folder, "etc/passwd"), "root:x:0:0::/root:/bin/sh\n");
    await importFolder(IMAGE, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

describe.skipIf(noDocker !== undefined)(`in containers, an agent with${why}`, () => {
  const runParent = mkdtempSync(join(tmpdir(), "t1-r-"));
  afterAll(() => rmSync(runParent, { recursive: true, force: true }));
  redTeam(
    async () => {
      await importPrograms();
      return {
        provider: await createDockerProvider({ runParent }),
        builder: createDockerBuilder({ build: { network: "none", env: {} } }),
        base: IMAGE,
      };
    },
    {
      except: [
        {
          attack: "no file left to be had, beside real work",
          reason: "the storage driver has no quota of files",
        },
      ],
    },
  );
});
