import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { makeFolder } from "../../test/task/folder.ts";
import { interpolate, readComposeFile } from "./compose-file.ts";
import { parseDuration, parseSize, splitCommand } from "./compose-values.ts";

const read = (yaml: string, env: Readonly<Record<string, string>> = {}) =>
  readComposeFile(join(makeFolder({ "docker-compose.yaml": yaml }), "docker-compose.yaml"), env);

describe("docker-compose.yaml", () => {
  test("gives services in the order in which they start, and what main has more", () => {
    const { main, services } = read(
      `version: "3.8"
x-note: none
services:
  web:
    build: ./web
    depends_on: { db: { condition: service_healthy }, seed: { condition: service_completed_successfully } }
    environment: [KEY, "URL=http://db:\${PORT:-5432}", "EMPTY=\${NONE}", ABSENT]
    expose: ["80"]
    deploy: { resources: { limits: { cpus: "0.5", memory: 512M } } }
  seed: { image: busybox, command: ["true"], depends_on: [db] }
  db:
    image: postgres:16
    command: postgres -c "shared buffers=1"
    healthcheck: { test: pg_isready, interval: 1m30s, timeout: 500ms, retries: 15 }
    ports: ["5432:5432"]
    restart: always
  main:
    build: { context: "\${CONTEXT_DIR}", dockerfile: Dockerfile.main }
    image: \${MAIN_IMAGE_NAME}
    command: ["sh", "-c", "sleep infinity"]
    network_mode: \${NETWORK_MODE:-bridge}
    environment: { MODE: 1 }
    volumes: ["\${HOST_VERIFIER_LOGS_PATH}:\${ENV_VERIFIER_LOGS_PATH}"]
    depends_on: [web]
networks: { default: {} }
`,
      { KEY: "k" },
    );
    expect(services.map(({ name }) => name)).toEqual(["db", "seed", "web"]);
    const [db, , web] = services;
    expect(db).toMatchObject({
      source: { kind: "image", name: "postgres:16" },
      command: ["postgres", "-c", "shared buffers=1"],
      healthcheck: { test: ["CMD-SHELL", "pg_isready"], intervalMs: 90_000, timeoutMs: 500, retries: 15 },
      dependsOn: [],
    });
    expect(web).toMatchObject({
      env: { KEY: "k", URL: "http://db:5432", EMPTY: "" },
      ...{ memoryBytes: 512 * 2 ** 20, cpus: 0.5 },
      source: { kind: "build", dockerfile: expect.stringMatching(/\/web\/Dockerfile$/) },
      dependsOn: [
        { service: "db", condition: "service_healthy" },
        { service: "seed", condition: "service_completed_successfully" },
      ],
    });
    expect(web?.env).not.toHaveProperty("ABSENT");
    expect(main.env).toEqual({ MODE: "1" });
    expect(main.build?.dockerfile).toBe(
      join(dirname(web?.source.kind === "build" ? web.source.context : ""), "Dockerfile.main"),
    );
  });

  test.each([
    ["services: { a: { image: x, privileged: true } }", "services.a.privileged: sandboxes do not have it"],
    ["services: { a: { image: x } }\nsecrets: {}", "secrets: sandboxes do not have it"],
    ["services: { a: {} }", "services.a: neither build nor image"],
    [
      'services: { main: { volumes: ["$HOME/.ssh:/root/.ssh:ro"] } }',
      "services.main.volumes: /home/me/.ssh:/root/.ssh:ro",
    ],
    ["services: { a: { image: x, volumes: [data:/data] } }", "services.a.volumes: data:/data"],
    ["services: { a: { image: x, network_mode: host } }", "services.a.network_mode: host"],
    ["services: { main: { command: npm start } }", "services.main.command: npm start"],
    ["services: { a: { image: x, depends_on: [b] } }", "services.a.depends_on: b"],
    [
      "services: { a: { image: x, depends_on: [b] }, b: { image: x, depends_on: [a] } }",
      "services.a.depends_on: a circle",
    ],
    [
      'services: { a: { image: x, expose: ["80"] }, b: { image: x, expose: [80] } }',
      "services.b.expose: 80 is a's too",
    ],
    ["services: { a: { image: x, healthcheck: { test: t, interval: soon } } }", "not a duration"],
    ["services: [", "docker-compose.yaml: valid YAML"],
  ])("is refused by name: %s", (yaml, message) => {
    expect(() => read(yaml, { HOME: "/home/me" })).toThrow(message);
  });
});

// Rows of compose-spec's documents on interpolation, durations and sizes.
test("variables", () => {
  const lookup = (name: string) => ({ SET: "1", EMPTY: "" })[name];
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: they are what is tested
  for (const [text, expected] of [
    ["$SET-${SET}", "1-1"],
    ["$$SET", "$SET"],
    ["${EMPTY:-a} ${EMPTY-a} ${NONE-a} ${NONE:-} ${NONE}", "a  a  "],
  ])
    expect(interpolate({ key: [text] }, lookup)).toEqual({ key: [expected] });
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: they are what is tested
});

test("durations, sizes and commands", () => {
  expect(["2s", "1m30s", "500ms", "1h5m"].map(text => parseDuration(text, ""))).toEqual([
    2000, 90_000, 500, 3_900_000,
  ]);
  expect(["1G", "512m", "2kb", "10"].map(text => parseSize(text, ""))).toEqual([2 ** 30, 2 ** 29, 2048, 10]);
  expect(splitCommand(`sh -c 'echo "a b"' "c \\" d" e\\ f`, "")).toEqual([
    "sh",
    "-c",
    'echo "a b"',
    'c " d',
    "e f",
  ]);
  expect(() => splitCommand("a 'b", "x.yaml")).toThrow(/not a command: x\.yaml/);
});
