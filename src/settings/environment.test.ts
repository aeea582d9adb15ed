import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  CountText,
  environment,
  FlagText,
  IntegersText,
  jsonText,
  ListText,
  NumberText,
  Text,
} from "./environment.ts";

const Shape = z.strictObject({ vcpus: z.number(), market: z.enum(["spot", "on-demand"]) });
const SETTINGS = environment("a test", {
  store: ["T1_STORE", Text],
  seconds: ["T1_SECONDS", NumberText],
  threads: ["T1_THREADS", CountText.default(3)],
  spot: ["T1_SPOT", FlagText],
  subnets: ["T1_SUBNETS", ListText],
  episodes: ["T1_EPISODES", IntegersText],
  shape: ["T1_SHAPE", jsonText(Shape)],
  proxy: ["T1_PROXY", Text.optional()],
});

const name = fc.stringMatching(/^[^,]+$/);
const settings = fc.record({
  store: fc.string({ minLength: 1 }),
  seconds: fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }).map(value => value + 0),
  threads: fc.integer({ min: 1, max: 1e6 }),
  spot: fc.boolean(),
  subnets: fc.array(name, { minLength: 1 }),
  episodes: fc.array(fc.nat(999_999), { minLength: 1 }),
  shape: fc.record({ vcpus: fc.integer(), market: fc.constantFrom("spot" as const, "on-demand" as const) }),
  proxy: fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
});

describe("settings in environment variables", () => {
  it("are read as they were written", () => {
    fc.assert(
      fc.property(settings, given => {
        expect(SETTINGS.fromEnvironment(SETTINGS.toEnvironment(given))).toEqual(given);
      }),
    );
  });

  const written = () =>
    SETTINGS.toEnvironment({
      ...{ store: "s", seconds: 1.5, spot: false, subnets: ["a", "b"], episodes: [0, 17] },
      shape: { vcpus: 2, market: "spot" },
    });

  it("have the text that a definition shows, and defaults where nothing was written", () => {
    expect(written()).toEqual({
      ...{ T1_STORE: "s", T1_SECONDS: "1.5", T1_SPOT: "false", T1_SUBNETS: "a,b", T1_EPISODES: "0,17" },
      T1_SHAPE: '{"vcpus":2,"market":"spot"}',
    });
    expect(SETTINGS.fromEnvironment(written())).toMatchObject({ threads: 3, proxy: undefined });
    expect(SETTINGS.names.episodes).toBe("T1_EPISODES");
  });

  it.each([
    ["T1_SECONDS", ""],
    ["T1_SECONDS", "0x10"],
    ["T1_SECONDS", "-1"],
    ["T1_THREADS", "0"],
    ["T1_SPOT", "yes"],
    ["T1_SUBNETS", ","],
    ["T1_EPISODES", "1,,2"],
    ["T1_EPISODES", "1.5"],
    ["T1_SHAPE", "{"],
    ["T1_SHAPE", '{"vcpus":"2","market":"spot"}'],
    ["T1_STORE", undefined],
  ])("are refused by the variable's name: %s = %j", (variable, text) => {
    const broken = { ...written(), [variable]: text };
    expect(() => SETTINGS.fromEnvironment(broken)).toThrow(variable);
  });

  it("cannot be written where they could not be read again", () => {
    const given = { ...SETTINGS.fromEnvironment(written()) };
    expect(() => SETTINGS.toEnvironment({ ...given, subnets: ["a,b"] })).toThrow("T1_SUBNETS");
    expect(() => SETTINGS.toEnvironment({ ...given, episodes: [] })).toThrow("T1_EPISODES");
    expect(() => SETTINGS.toEnvironment({ ...given, store: undefined as unknown as string })).toThrow(
      "store",
    );
  });
});
