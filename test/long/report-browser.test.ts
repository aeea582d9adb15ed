// Asks a real browser whether anything that a run's texts carry is run by its report: with the page's policy, and
// without it, since escaping has to hold alone.
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { makeReport } from "../../src/report/report.ts";
import { HOSTILE_TEXTS } from "../report/hostile-texts.ts";
import { makeRun } from "../report/make-run.ts";
import { temporaryFolder, temporaryStore } from "../store/temporary-store.ts";

const FLAGS =
  "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --virtual-time-budget=3000 --dump-dom";
const run = promisify(execFile);

async function findChromium(): Promise<string | undefined> {
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    if (await run(name, ["--version"]).catch(() => undefined)) return name;
  }
  return undefined;
}
const chromium = await findChromium();
const why = chromium === undefined ? " (skipped: no chromium (apt-get install chromium))" : "";

/** @returns whether a hostile text left its mark on the document, and its elements as the browser understood them */
async function open(html: string): Promise<{ readonly owned: boolean; readonly dom: string }> {
  const folder = await temporaryFolder();
  const file = join(folder, "page.html");
  await writeFile(file, html);
  const { stdout } = await run(
    chromium ?? "",
    [...FLAGS.split(" "), `--user-data-dir=${join(folder, "profile")}`, `file://${file}`],
    { maxBuffer: 1 << 26 },
  );
  return { owned: /<html[^>]* data-owned/.test(stdout), dom: stdout };
}

describe.skipIf(chromium === undefined)(`a report in a browser${why}`, () => {
  it("would be seen to run something if it did", async () => {
    const text = HOSTILE_TEXTS["an image with a handler"];
    expect((await open(`<!doctype html><html><body>${text}</body></html>`)).owned).toBe(true);
  });

  it.each(Object.entries(HOSTILE_TEXTS))("runs nothing when every text is %s", async (_, hostile) => {
    const store = await temporaryStore();
    const texts = {
      instruction: hostile,
      answer: hostile,
      observation: hostile,
      task: hostile,
      label: hostile,
      test: hostile,
      failure: hostile,
    };
    await makeRun(store, "r", { iterations: 1, episodes: 2, evaluated: [0], texts });
    const { text } = await makeReport(store, "r");
    const unprotected = text.replace(/<meta http-equiv="Content-Security-Policy"[^>]*>/, "");
    expect(unprotected.length).toBeLessThan(text.length);
    for (const page of [text, unprotected]) {
      const { owned, dom } = await open(page);
      expect(owned).toBe(false);
      expect(dom).not.toMatch(/<(script|img|iframe|base|animate)[\s>]/);
      expect(dom).toMatch(/<\/main>\s*<\/body>/);
    }
  });
});
