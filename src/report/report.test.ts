import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { HOSTILE_TEXTS } from "../../test/report/hostile-texts.ts";
import { makeRun, type RunOptions, type Texts } from "../../test/report/make-run.ts";
import { scanMarkup } from "../../test/report/scan-markup.ts";
import { InputError } from "../failure/errors.ts";
import { openFileStore } from "../store/file-store.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { makeReport } from "./report.ts";

const folder = mkdtempSync(join(tmpdir(), "t1-report-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function newStore(): Promise<ObjectStore> {
  return openFileStore(mkdtempSync(join(folder, "store-")));
}

async function storeOf(options: RunOptions): Promise<ObjectStore> {
  const store = await newStore();
  await makeRun(store, "r", options);
  return store;
}

async function reportOf(options: RunOptions) {
  return makeReport(await storeOf(options), "r");
}

async function overwrite(store: ObjectStore, key: string, body: string): Promise<void> {
  await store.delete(key);
  await store.put(key, body, { ifNoneMatch: "*" });
}

const ELEMENTS =
  "html head meta title body nav main header section h1 h2 h3 h4 p a span b i small div dl dt dd details summary figure figcaption svg g path rect circle text table thead tbody tr th td ul ol li pre code".split(
    " ",
  );
const ATTRIBUTES =
  "lang charset name content http-equiv class id href title scope role aria-label aria-hidden viewBox d x y cx cy r width height".split(
    " ",
  );

/** One run for the tests that only read it. */
const whole = storeOf({ evaluated: [0, 4], episodes: 8 });

describe.concurrent("a report", () => {
  it("shows a run: curves, times, groups, evaluations, episodes with their tokens", async () => {
    const { text, ...counts } = await makeReport(await whole, "r");
    expect(counts).toMatchObject({
      iterationCount: 4,
      evaluationCount: 2,
      episodeCount: 14,
      leftOutCount: 0,
      problems: [],
    });
    const { text: shown, elements } = scanMarkup(text);
    for (const part of [
      "Gain on held-out",
      "48 receipts were made again",
      "Explained variance",
      "Gap between trainer and sampler",
      "rollout",
      "families",
      "Gain of v4 over v0",
      "a task that was won: before",
      "Write 7 to a.txt.",
      "echo 7 > a.txt",
      "a.txt holds 7",
      "agrees",
      "sandbox: SandboxUnavailable",
    ])
      expect(shown).toContain(part);
    expect(shown).not.toContain("does not agree");
    const titles = elements.map(({ attributes }) => attributes.get("title") ?? "");
    expect(titles.some(title => /^#\d+ id \d+\nlog p −0\.7000, p 49\.7 %$/.test(title))).toBe(true);
  });

  it("writes the change of a group with an interval that is no mirror image", async () => {
    const { text } = await makeReport(await whole, "r");
    const { text: shown } = scanMarkup(text);
    expect(shown).toMatch(/[+−]\d+\.\d \[[+−]\d+, [+−]\d+\]/);
    expect(shown).not.toContain("±");
  });

  it("tells apart two evaluations of one name, and gives one task no interval", async () => {
    const store = await storeOf({ evaluated: [0, 4], episodes: 8 });
    const evaluations = fileURLToPath(`${store.url}/runs/r/evaluations`);
    for (const name of readdirSync(evaluations))
      cpSync(join(evaluations, name), join(evaluations, name.replace(/-x1$/, "-x3")), { recursive: true });
    const { text: shown } = scanMarkup((await makeReport(store, "r")).text);
    expect(shown).toContain("held-out, 1 per task");
    expect(shown).toContain("held-out, 3 per task");
    expect(shown).toContain("one task");
  });

  it("is the same twice", async () => {
    expect((await makeReport(await whole, "r")).text).toBe((await makeReport(await whole, "r")).text);
  });

  it.each(Object.entries(HOSTILE_TEXTS))(
    "is only markup of its own when every text is %s",
    async (_, hostile) => {
      const texts: Texts = {
        instruction: hostile,
        answer: hostile,
        observation: hostile,
        task: hostile,
        label: hostile,
        test: hostile,
        failure: hostile,
      };
      const { text } = await reportOf({ iterations: 1, episodes: 2, evaluated: [0], texts });
      const { elements } = scanMarkup(text);
      for (const { name, attributes } of elements) {
        expect(ELEMENTS).toContain(name);
        for (const [attribute, value] of attributes) {
          expect(ATTRIBUTES).toContain(attribute);
          if (attribute === "href") expect(value).toMatch(/^#[\w.-]+$/);
        }
      }
      expect(text.replace(/[\n\t]/g, "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
    },
  );

  it("forbids by its policy whatever is not its own style sheet", async () => {
    const { text } = await reportOf({ iterations: 1 });
    const { elements } = scanMarkup(text);
    const at = elements.findIndex(
      ({ attributes }) => attributes.get("http-equiv") === "Content-Security-Policy",
    );
    const style = /<style>([^<]*)<\/style>/.exec(text)?.[1] ?? "";
    const digest = await crypto.subtle.digest("SHA-256", Buffer.from(style));
    expect(elements[at].attributes.get("content")).toBe(
      `default-src 'none'; style-src 'sha256-${Buffer.from(digest).toString("base64")}'; img-src data:; base-uri 'none'; form-action 'none'`,
    );
    expect(text.indexOf("Content-Security-Policy")).toBeLessThan(text.indexOf("<style>"));
    expect(style).not.toMatch(/url\(|@import/);
  });

  it("stays small and says what it leaves out when a line has a megabyte", async () => {
    const long = `${"\0".repeat(30_000)}${'"'.repeat(1_000_000)}end of the line`;
    const texts = { observation: long, label: long, failure: long };
    const { text, episodeCount, leftOutCount } = await reportOf({ iterations: 1, episodes: 2, texts });
    expect(Buffer.byteLength(text)).toBeLessThan(1_000_000);
    expect([episodeCount, leftOutCount]).toEqual([2, 0]);
    expect(scanMarkup(text).text).toMatch(/[\d,]+ characters left out/);
  });

  it.each<[string, RunOptions, string]>([
    ["has no iteration", { iterations: 0 }, "No iteration is finished yet."],
    ["is supervised", { kind: "sft" }, "Cross-entropy of the demonstrated tokens"],
    ["has no evaluation", {}, "measures a version on a pool"],
    ["has one iteration", { iterations: 1 }, "Of the only closed iteration."],
    ["was never timed", { withTimings: false }, "No iteration was timed"],
  ])("is whole when the run %s", async (_, options, part) => {
    const { text, problems } = await reportOf(options);
    expect(problems).toEqual([]);
    scanMarkup(text);
    expect(text).toContain(part);
  });

  it("says in its place what of an episode is missing, broken or changed, and shows the rest", async () => {
    const store = await storeOf({ iterations: 1, episodes: 3 });
    const at = (episode: number) => `runs/r/iterations/000000/episodes/00000${episode}/attempt-000001/`;
    await overwrite(store, `${at(0)}transcript.jsonl`, "{}\n");
    await overwrite(store, `${at(1)}arrays.safetensors`, "broken");
    await store.delete(`${at(2)}episode.json`);
    const { text, episodeCount } = await makeReport(store, "r");
    expect(episodeCount).toBe(3);
    const shown = scanMarkup(text).text;
    for (const problem of [
      "000000/attempt-000001/transcript.jsonl:1",
      "not the trajectory that was closed",
      "missing object",
    ])
      expect(shown).toContain(problem);
  });

  it("lists objects of a run that cannot be read, and does without them", async () => {
    const store = await storeOf({ iterations: 3, evaluated: [0] });
    await overwrite(store, "runs/r/iterations/000001/metrics.json", "{");
    await overwrite(store, "runs/r/iterations/000002/closed.json", "[]");
    await overwrite(store, "runs/r/evaluations/held-out-v000000-x1/summary.json", "{}");
    await overwrite(store, "runs/r/policies/000003/tokenizer.json", "{}");
    const { text, problems, evaluationCount } = await makeReport(store, "r");
    expect(problems).toHaveLength(3);
    expect(evaluationCount).toBe(0);
    expect(scanMarkup(text).text).toContain("Tokens are shown by their ids");
  });

  it("is refused for a run that is not there", async () => {
    await expect(makeReport(await newStore(), "r")).rejects.toThrow(InputError);
  });
});
