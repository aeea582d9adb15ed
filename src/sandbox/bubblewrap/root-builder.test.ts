// biome-ignore-all lint/suspicious/noTemplateCurlyInString: Dockerfiles hold references of this form
import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { makeRootFolder } from "../../../test/sandbox/root-folder.ts";
import type { BuiltImage } from "../../image/image-builder.ts";
import { type Images, readImages } from "../../image/images-file.ts";
import { capturedText } from "../captured-text.ts";
import { type BubblewrapProvider, createBubblewrapProvider } from "./provider.ts";
import { createRootBuilder } from "./root-builder.ts";

const parent = mkdtempSync(join(tmpdir(), "t1-builder-"));
let provider: BubblewrapProvider;
let images: Images;
let context: string;
let lines: string[];
let count = 0;

beforeAll(() => {
  chmodSync(parent, 0o755);
  makeRootFolder(join(parent, "root"));
  const file = join(parent, "t1-images.yaml");
  const base = { folder: "root", env: { FROM_BASE: "yes" } };
  writeFileSync(
    file,
    JSON.stringify({
      bases: { "small:1*": base },
      cache: "cache",
      build: { env: { SECRET: "s", HELD: "0" } },
    }),
  );
  images = readImages(file);
  provider = createBubblewrapProvider();
});
afterAll(async () => {
  await provider[Symbol.asyncDispose]();
  rmSync(parent, { recursive: true, force: true });
});
beforeEach(() => {
  context = mkdtempSync(join(parent, "context-"));
  lines = [];
});
afterEach(() => rmSync(context, { recursive: true, force: true }));

function put(files: Readonly<Record<string, string | Uint8Array>>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(context, name, ".."), { recursive: true });
    writeFileSync(join(context, name), content);
  }
}

function build(text: string, { timeoutMs = 60_000, builder = createRootBuilder(images, provider) } = {}) {
  const dockerfile = join(context, "Dockerfile");
  writeFileSync(dockerfile, text);
  return builder.build({
    source: { kind: "dockerfile", dockerfile, context },
    timeoutMs,
    onProgress: line => lines.push(line.replace(context, "").replace(/[\d.]+ s$/, "made")),
  });
}

async function inside({ image, workdir, env }: BuiltImage, command: string): Promise<string> {
  const lease = { id: `test/${count++}`, generation: 1, deadlineMs: Date.now() + 60_000 };
  await using sandbox = await provider.create(
    { image, workdir, env, network: "none", diskBytes: 8 << 20 },
    lease,
  );
  const { stdout, stderr } = await sandbox.exec(command, { timeoutMs: 10_000 });
  return capturedText(stdout) + capturedText(stderr);
}

describe("an image", () => {
  test("is what its instructions make of its base, in order", async () => {
    put({ "a.txt": "a\n", "d/b.txt": "b\n" });
    const image = await build(
      [
        "ARG TAG=1.2",
        "FROM small:$TAG",
        "ARG WHO=me",
        'ENV A=1 B="two words"',
        "WORKDIR /work/x",
        "COPY a.txt renamed.txt",
        "COPY d /d",
        "RUN echo $A-$B-$WHO-$FROM_BASE-$SECRET-$PWD > said && cat renamed.txt /d/b.txt >> said",
        "RUN rm /d/b.txt && chmod 600 renamed.txt",
        'LABEL x=y\nEXPOSE 80\nCMD ["x"]\nVOLUME /v\nSTOPSIGNAL TERM',
      ].join("\n"),
    );
    expect(image).toMatchObject({ workdir: "/work/x", env: { A: "1", B: "two words", FROM_BASE: "yes" } });
    expect(image.env).not.toHaveProperty("SECRET");
    expect(await inside(image, "cat said; ls /d; ls -n renamed.txt; echo $A $WHO")).toMatch(
      /^1-two words-me-yes-s-\/work\/x\na\nb\n-rw-------.*renamed.txt\n1\n$/,
    );
  });

  test("keeps modes, links and empty folders of what is copied", async () => {
    put({ "t/run.sh": "#!/bin/sh\n", "t/x": "x" });
    chmodSync(join(context, "t/run.sh"), 0o751);
    mkdirSync(join(context, "t/empty"));
    symlinkSync("x", join(context, "t/link"));
    const image = await build("FROM small:1\nCOPY t /t\nCOPY --chmod=640 t/x /y");
    expect(await inside(image, "cd /t; ls -n . ; ls -n /y; readlink link; ls empty")).toMatch(
      /empty[\s\S]*link -> x[\s\S]*-rwxr-x--x[\s\S]*-rw-r-----.*\/y\nx\n$/,
    );
  });

  // Each as Docker does it.
  test.each([
    ["a file under a new name", "COPY a.txt data.csv", "data.csv"],
    ["a file into a folder", "COPY a.txt in/", "in/a.txt"],
    ["a file onto a folder that the base has", "COPY a.txt /etc", "/etc/a.txt"],
    ["files of a pattern", "COPY *.txt in/", "in/a.txt in/b.txt"],
    ["what a folder holds", "COPY d dest", "dest/b.txt dest/sub/c"],
    ["the whole context without what is left out", "COPY . /all/", "/all/a.txt /all/b.txt /all/d/b.txt"],
    ["JSON, for names with spaces", 'COPY ["with space", "to here"]', "'to here'"],
    ["through variables", "ENV TO=in\nCOPY ${TO:+a.txt} $TO/", "in/a.txt"],
    ["a text", "COPY <<one <<two in/\n1\none\n2\ntwo", "in/one in/two"],
  ])("copies %s", async (_, instructions, expected) => {
    put({ "a.txt": "a", "b.txt": "b", "d/b.txt": "b", "d/sub/c": "c", "with space": "s" });
    put({ ".dockerignore": "d/sub\n!d/sub\nDockerfile\n.dockerignore" });
    const image = await build(`FROM small:1\nWORKDIR /app\n${instructions}`);
    expect(await inside(image, `ls -d ${expected} && ls -A /all 2>/dev/null`)).not.toMatch(
      /cannot access|Dockerfile|dockerignore/,
    );
  });

  test("unpacks what ADD is given as an archive, and nothing else", async () => {
    const tar = pack();
    tar.entry({ name: "in/f" }, "packed");
    tar.finalize();
    const bytes = Buffer.concat((await Array.fromAsync(tar)) as Buffer[]);
    put({ "a.tgz": gzipSync(bytes), "a.tar": bytes, "b.gz": gzipSync("text"), "b.xz": "\xfd7zXZ" });
    const image = await build(
      "FROM small:1\nADD a.tgz /one\nADD a.tar /two/\nADD b.gz /three/\nCOPY a.tar /four/",
    );
    expect(await inside(image, "cat /one/in/f /two/in/f; ls /three /four")).toBe(
      "packedpacked/four:\na.tar\n\n/three:\nb.gz\n",
    );
  });

  test("takes files from other stages and images, and builds no stage that it does not need", async () => {
    const image = await build(
      [
        "FROM small:1 AS tools",
        "RUN mkdir -p /opt/t/sub && echo tool > /opt/t/sub/a && ln -s t /opt/link",
        "FROM small:1 AS broken",
        "RUN exit 1",
        "FROM tools AS more",
        "RUN echo more > /opt/more",
        "FROM small:1",
        "COPY --from=tools /opt/link /tree",
        "COPY --from=2 --chmod=600 /opt/more renamed",
        "COPY --from=small:1 /bin/cat /opt/",
      ].join("\n"),
    );
    expect(await inside(image, "cat /tree/sub/a /renamed; ls /opt; ls -n /renamed")).toMatch(
      /^tool\nmore\ncat\n-rw-------/,
    );
    expect(lines.join()).not.toContain("exit 1");
  });

  test("runs commands by the shell, the words or the script that is asked for", async () => {
    const image = await build(
      [
        "FROM small:1",
        "RUN <<EOF\nx=1\necho script $x > /script\nEOF",
        "RUN cat > /fed <<'EOF' && echo done >> /fed\n$x\nEOF",
        "RUN <<EOF\n#!/bin/cat\n#self\nEOF",
        'RUN ["/bin/sh", "-c", "echo \\"$0\\" > /words", "a b"]',
        'SHELL ["/bin/sh", "-e", "-c"]',
        "RUN echo $- > /flags",
      ].join("\n"),
    );
    expect(await inside(image, "cat /script /fed /words /flags; ls -A / | grep t1-script")).toMatch(
      /^script 1\n\$x\ndone\na b\n.*e.*\n$/,
    );
  });

  test("says what it is run by: entrypoint, working directory, health", async () => {
    put({ "init.sh": '#!/bin/sh\necho seeded > /seed\nexec "$@"\n' });
    chmodSync(join(context, "init.sh"), 0o755);
    const image = await build(
      'FROM small:1\nCOPY init.sh /\nENTRYPOINT ["/init.sh"]\nHEALTHCHECK --interval=1m30s --retries=2 CMD cat /seed',
    );
    expect(await inside(image, "cat /seed")).toBe("seeded\n");
    expect(image.healthcheck).toEqual({
      command: "cat /seed",
      intervalMs: 90_000,
      timeoutMs: 30_000,
      startPeriodMs: 0,
      startIntervalMs: 5000,
      retries: 2,
    });
  });

  test("may be the base itself", async () => {
    const { build } = createRootBuilder(images, provider);
    const image = await build({
      source: { kind: "image", name: "docker.io/library/small:1" },
      timeoutMs: 1000,
    });
    expect(await inside(image, "echo $FROM_BASE")).toBe("yes\n");
    await expect(build({ source: { kind: "image", name: "other:2" }, timeoutMs: 1000 })).rejects.toThrow(
      /nothing on this machine stands for the image other:2.*\n.*make-root.sh noble \/roots\/other-2.*"other:2"/s,
    );
  });
});

describe("a layer", () => {
  const made = () => lines.filter(line => line.endsWith("made")).map(line => /^\S+:(\d+)/.exec(line)?.[1]);

  test("is made once, and anew when anything it depends on changes", async () => {
    put({ f: "1" });
    const text = "FROM small:1\nENV UNIQUE=layer\nRUN echo a > /a\nCOPY f /f\nRUN cat /a /f > /b";
    const first = await build(text);
    expect(made()).toEqual(["3", "4", "5"]);
    lines = [];
    utimesSync(join(context, "f"), 1, 1);
    expect((await build(text)).hash).toBe(first.hash);
    expect(made()).toEqual([]);
    put({ f: "2" });
    const second = await build(text);
    expect(made()).toEqual(["4", "5"]);
    expect(await inside(second, "cat /b")).toBe("a\n2");
    lines = [];
    chmodSync(join(context, "f"), 0o777);
    await build(text);
    expect(made()).toEqual(["4", "5"]);
    lines = [];
    await build(text.replace("UNIQUE=layer", "UNIQUE=other"));
    expect(made()).toEqual(["3", "4", "5"]);
  });

  test("is made by one of several builders at once", async () => {
    const text = "FROM small:1\nRUN sleep 0.3; echo $$ >> /once; echo of several";
    const built = await Promise.all([1, 2, 3].map(() => build(text)));
    expect(made()).toHaveLength(3);
    expect(new Set(built.map(({ hash }) => hash)).size).toBe(1);
    expect((await inside(built[0] as BuiltImage, "cat /once")).trim().split("\n")).toHaveLength(1);
  });

  test("is not there when its builder was killed, and the next builder makes it", async () => {
    // Held until it is killed, by a variable that is no part of the layer's identity; the next builder is not.
    const text = "FROM small:1\nRUN echo half > /half; sleep $HELD; echo whole > /half";
    put({ Dockerfile: text });
    const held = join(parent, "held.yaml");
    writeFileSync(
      held,
      readFileSync(join(parent, "t1-images.yaml"), "utf8").replace('"HELD":"0"', '"HELD":"50"'),
    );
    const script = fileURLToPath(new URL("../../../test/sandbox/hold-build.ts", import.meta.url));
    const child = spawn(process.execPath, [script, held, context], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const building = join(images.cache, "building");
    // By name: the kernel's own folder of an overlay is closed to an ordinary user.
    const hasHalf = (): boolean =>
      readdirSync(building).some(process =>
        readdirSync(join(building, process)).some(layer =>
          existsSync(join(building, process, layer, "upper/half")),
        ),
      );
    await expect.poll(() => existsSync(building) && hasHalf(), { timeout: 20_000 }).toBe(true);
    const before = readdirSync(join(images.cache, "layers")).length;
    child.kill("SIGKILL");
    await new Promise(resolve => child.once("exit", resolve));
    expect(readdirSync(join(images.cache, "layers"))).toHaveLength(before);
    const image = await build(text);
    expect(await inside(image, "cat /half")).toBe("whole\n");
    expect(readdirSync(building).flatMap(name => readdirSync(join(building, name)))).toEqual([]);
  });
});

describe("a build that fails says where and why", () => {
  test.each([
    ["RUN echo out; echo bad >&2; exit 3", /RUN ended with exit code 3: .*Dockerfile:3: .*out\nbad/s],
    ["RUN kill -9 $$", /RUN was ended by SIGKILL: .*:3/],
    ["RUN sleep 20", /RUN was not done within the 2 s of the build: .*:3/],
    ["RUN --mount=type=cache,target=/c true", /RUN --mount is not supported: .*:3/],
    ["USER app", /USER app: the image wants several users: .*:3: .*one user is mapped/],
    ["COPY --chown=app:app f /f", /COPY --chown=app:app: the image wants several users: .*:3/],
    ["COPY --parents f /f", /COPY --parents is not supported: .*:3/],
    ["COPY missing /f", /COPY of a missing file \(missing\): .*:3/],
    ["COPY ../../etc/passwd /f", /COPY of a missing file/],
    ["COPY out /f", /COPY of a missing file \(out\)/],
    ["COPY f f2 /to", /COPY of several files to one: .*:3/],
    ["COPY --from=nowhere /a /b", /nothing on this machine stands for the image nowhere: .*:3/],
    ["COPY --from=0 /missing /b", /nothing on this machine stands for the image 0/],
    ["ADD https://example.com/x /x", /ADD of a URL .*:3/],
    ["ADD b.xz /x", /compressed by something else than gzip/],
    ["ONBUILD RUN x", /ONBUILD is not supported: .*:3/],
    ["FORM x", /FORM is not supported: .*:3/],
    ["ENV A", /ENV without a value: .*:3/],
    ["WORKDIR ${A", /WORKDIR with .*: .*:3/],
    ["SHELL /bin/sh", /SHELL without a JSON array/],
    ["HEALTHCHECK --interval=x CMD true", /HEALTHCHECK --interval=x/],
    ["FROM scratch", /FROM scratch/],
    ["FROM other:1", /nothing on this machine stands for the image other:1: .*:3/],
    ["FROM --platform=linux/s390x small:1", /FROM --platform=linux\/s390x/],
  ])("%s", async (line, message) => {
    put({ f: "f", f2: "f", "b.xz": Buffer.from("\xfd7zXZ\0", "latin1") });
    symlinkSync("/etc", join(context, "out"));
    await expect(build(`FROM small:1\n\n${line}\n`, { timeoutMs: 2000 })).rejects.toThrow(message);
    expect(existsSync(join(images.cache, "building"))).toBe(true);
    const left = execFileSync("find", [join(images.cache, "building"), "-mindepth", "2"], {
      encoding: "utf8",
    });
    expect(left).toBe("");
  });
});
