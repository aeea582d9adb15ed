// Small images for tests, made from files of this machine without a registry, and whether an engine is there for them.
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Engine } from "../../src/sandbox/docker/engine.ts";
import { BUSYBOX, hasBusybox } from "./local-daemon.ts";

const engine = await Engine.open().catch(() => undefined);
engine?.close();
const isPodman = engine?.isPodman === true;

/** Why tests with containers are left out on this machine; undefined when they run. */
export const noDocker: string | undefined = !hasBusybox
  ? `no ${BUSYBOX} (apt-get install busybox-static)`
  : engine === undefined
    ? "no container engine answers"
    : undefined;

/** The same of images with a health check, and of services that have one. */
export const noImageHealthcheck = isPodman ? "podman makes images without one" : undefined;
export const noHealthchecks =
  isPodman && !existsSync("/run/systemd/system") ? "podman runs none without systemd" : undefined;

export interface ImageChanges {
  /** Instructions of a Dockerfile that the engine applies without a build: ENV, USER, ENTRYPOINT, WORKDIR, HEALTHCHECK. */
  readonly changes?: readonly string[];
  readonly files?: Readonly<Record<string, string>>;
}

/** Imports an image that holds busybox under all its names. @returns its reference */
export async function importImage(
  reference: string,
  { changes = [], files = {} }: ImageChanges = {},
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "t1-image-"));
  try {
    for (const child of ["bin", "etc", "tmp", "root", "usr/share"])
      mkdirSync(join(folder, child), { recursive: true });
    copyFileSync(BUSYBOX, join(folder, "bin/busybox"));
    const names = execFileSync(BUSYBOX, ["--list"], { encoding: "utf8" }).trim().split("\n");
    for (const name of names) if (name !== "busybox") symlinkSync("busybox", join(folder, "bin", name));
    writeFileSync(
      join(folder, "etc/passwd"),
      "root:x:0:0::/root:/bin/sh\nworker:x:1000:1000::/home/worker:/bin/sh\n",
    );
    writeFileSync(join(folder, "etc/group"), "root:x:0:\nworker:x:1000:\n");
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text, { mode: 0o755 });
    }
    await importFolder(reference, folder, changes);
    return reference;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A folder with a root file system, which root owns then. */
export async function importFolder(
  reference: string,
  folder: string,
  changes: readonly string[] = [],
): Promise<void> {
  const tar = execFileSync("tar", ["-C", folder, "--owner=0", "--group=0", "-c", "."], {
    maxBuffer: 256 << 20,
  });
  await post(`/images/create?fromSrc=-&repo=${encodeURIComponent(reference)}`, changes, tar);
}

async function post(path: string, changes: readonly string[], body: Buffer): Promise<void> {
  const engine = await Engine.open();
  engine.close();
  const query = changes.map(change => `&changes=${encodeURIComponent(change)}`).join("");
  await new Promise<void>((resolve, reject) => {
    const headers = { host: "docker", "content-type": "application/x-tar", "content-length": body.length };
    const sent = request(
      { socketPath: engine.socketPath, method: "POST", path: path + query, headers },
      answer => {
        const pieces: Buffer[] = [];
        answer
          .on("data", piece => pieces.push(piece))
          .once("end", () => {
            const said = Buffer.concat(pieces).toString();
            if (answer.statusCode === 200 && !said.includes('"error"')) resolve();
            else reject(new Error(`no image: ${answer.statusCode} ${said}`));
          });
      },
    );
    sent.once("error", reject);
    sent.end(body);
  });
}
