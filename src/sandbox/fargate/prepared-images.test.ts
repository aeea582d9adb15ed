import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { temporaryStore } from "../../../test/store/temporary-store.ts";
import { encodeJson } from "../../store/json.ts";
import {
  createPreparedImages,
  findPreparedImage,
  imageSourceHash,
  preparedImageKey,
} from "./prepared-images.ts";

const TOOLKIT = "registry/t1/sandbox-toolkit:main";

function context(text: string): { kind: "dockerfile"; dockerfile: string; context: string } {
  const folder = mkdtempSync(join(tmpdir(), "t1-prepared-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "sub"));
  writeFileSync(join(folder, "Dockerfile"), text);
  return { kind: "dockerfile", dockerfile: join(folder, "Dockerfile"), context: folder };
}

test("an image is named by what it is built from, wherever that lies", async () => {
  const hash = await imageSourceHash(context("FROM x\n"));
  expect(await imageSourceHash(context("FROM x\n"))).toBe(hash);
  expect(await imageSourceHash(context("FROM y\n"))).not.toBe(hash);
  expect(await imageSourceHash({ kind: "image", name: "x" })).not.toBe(
    await imageSourceHash({ kind: "image", name: "y" }),
  );
});

test("what the prepare stage recorded is what drivers start: definition, variables, folder, user, entry point", async () => {
  const store = await temporaryStore();
  const options = { store, toolkitImage: TOOLKIT, families: "t1-sandbox-" };
  const source = context("FROM x\n");
  const hash = await imageSourceHash(source);
  const config = {
    ...{ Env: ["PATH=/opt/bin", "A=b=c"], WorkingDir: "/srv", User: "worker", Entrypoint: ["/init.sh"] },
    Cmd: ["ignored"],
  };
  const record = { taskDefinitionArn: "arn:definition:3", config };
  await store.put(preparedImageKey(hash, TOOLKIT), encodeJson(record), { ifNoneMatch: "*" });
  const built = await createPreparedImages(options).build({ source, timeoutMs: 1 });
  expect(built).toMatchObject({
    workdir: "/srv",
    env: { PATH: "/opt/bin", A: "b=c" },
    image: { kind: "docker", reference: hash },
  });
  expect(await findPreparedImage(hash, options)).toMatchObject({
    ...{ taskDefinition: "arn:definition:3", env: { PATH: "/opt/bin", A: "b=c" }, workdir: "/srv" },
    ...{ user: "worker", entrypoint: ["/init.sh"] },
  });
  // A definition with another daemon in it is of no use.
  await expect(findPreparedImage(hash, { ...options, toolkitImage: "other" })).rejects.toMatchObject({
    name: "InputError",
    message: expect.stringContaining("not prepared"),
  });
});

test("programs of no image in particular are those of the default definition", async () => {
  const options = { store: await temporaryStore(), toolkitImage: TOOLKIT, families: "t1-sandbox-" };
  expect(await findPreparedImage("default", options)).toMatchObject({ taskDefinition: "t1-sandbox-default" });
});
