import { expect, it } from "vitest";
import { tooOld } from "./sweep.ts";

it("ends drivers and sandboxes past their age, never what a service keeps", () => {
  const now = new Date("2026-01-01T12:00:00Z");
  const aged = (arn: string, group: string, seconds: number) => ({
    arn,
    group,
    createdAt: new Date(now.getTime() - seconds * 1000),
  });
  const tasks = [
    aged("young driver", "family:t1-driver", 3600),
    aged("sandbox at the limit", "family:t1-sandbox-a", 10_800),
    aged("old sandbox", "family:t1-sandbox-a", 10_801),
    aged("old driver", "family:t1-driver", 99_999),
    aged("sampler", "service:t1-sampler", 999_999),
  ];
  expect(tooOld(tasks, 10_800, now)).toEqual(["old sandbox", "old driver"]);
});
