// Every alarm has its heading in the runbook.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { deployedTemplates } from "./deployed-templates.ts";

const templates = await deployedTemplates();
const docs = readFileSync(join(import.meta.dirname, "../../docs/operate.md"), "utf8");
const anchors = [...docs.matchAll(/^#{2,4} (.+)$/gm)].map(([, heading]) =>
  heading.toLowerCase().replaceAll(" ", "-"),
);
const alarms = Object.values(templates.observability.Resources)
  .filter(({ Type }) => Type === "AWS::CloudWatch::Alarm")
  .map(({ Properties }) => Properties);

describe("alarms", () => {
  it.each(alarms.map(alarm => [alarm.AlarmName, alarm.AlarmDescription]))(
    "%s says where its runbook is, and it is there",
    (_, description) => {
      const [, file, anchor] = /Runbook: (\S+)#(\S+)$/.exec(description) ?? [];
      expect(file).toBe("docs/operate.md");
      expect(anchors).toContain(anchor);
    },
  );

  it("have a heading each, and no heading is left over", () => {
    const wanted = alarms.map(({ AlarmName }) => AlarmName.replace(/^t1-/, "alarm-"));
    expect(anchors.filter(anchor => anchor.startsWith("alarm-")).sort()).toEqual(wanted.sort());
    expect(alarms.every(({ AlarmActions }) => AlarmActions.length === 1)).toBe(true);
  });
});
