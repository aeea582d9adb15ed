// Zod schemas of every kind of state, one level deep: load-definition.ts goes down into branches and item processors
// itself, so that an error can name the state it is in.
import { z } from "zod";
import { isExpression } from "./value-template.ts";

/** The text option has the same message, because zod reports only the nearest option of a union. */
const orExpression = (kind: z.ZodType, expected: string) => {
  const error = `expected ${expected} or a JSONata string {% … %}`;
  return z.union([kind, z.string().refine(isExpression, { error })], { error });
};

const Name = z.string().min(1).max(80, { error: "expected at most 80 characters (limit of Step Functions)" });

const ErrorEquals = z.array(z.string().min(1)).min(1);

/** Bounds: Amazon States Language, "Retrying after error". */
const RetrierSchema = z.strictObject({
  ErrorEquals,
  IntervalSeconds: z.int().min(1).max(99_999_999).optional(),
  MaxAttempts: z.int().min(0).max(99_999_999).optional(),
  BackoffRate: z.number().min(1).optional(),
  MaxDelaySeconds: z.int().min(1).max(31_622_399).optional(),
  JitterStrategy: z.enum(["FULL", "NONE"]).optional(),
  Comment: z.string().optional(),
});

const CatcherSchema = z.strictObject({
  ErrorEquals,
  Next: Name,
  Assign: z.record(z.string(), z.json()).optional(),
  Output: z.json().optional(),
  Comment: z.string().optional(),
});

const common = {
  Comment: z.string().optional(),
  QueryLanguage: z.literal("JSONata").optional(),
};
const step = { ...common, Next: Name.optional(), End: z.boolean().optional() };
const result = { Assign: z.record(z.string(), z.json()).optional(), Output: z.json().optional() };
const failing = { Retry: z.array(RetrierSchema).optional(), Catch: z.array(CatcherSchema).optional() };

const seconds = orExpression(z.int().min(0).max(99_999_999), "a whole number of seconds");

/** load-definition.ts checks the states inside one by one. */
export const ScopeSchema = z.strictObject({
  Comment: z.string().optional(),
  QueryLanguage: z.literal("JSONata").optional(),
  StartAt: Name,
  States: z.record(z.string(), z.unknown()),
});

export const MachineSchema = ScopeSchema.extend({
  Version: z.literal("1.0").optional(),
  TimeoutSeconds: z.int().min(1).max(99_999_999).optional(),
});

export const ItemProcessorSchema = ScopeSchema.extend({
  ProcessorConfig: z.strictObject({ Mode: z.literal("DISTRIBUTED"), ExecutionType: z.literal("STANDARD") }),
});

const ItemReaderSchema = z.strictObject({
  Resource: z.literal("arn:aws:states:::s3:getObject"),
  Arguments: z.json(),
  ReaderConfig: z.strictObject({ InputType: z.literal("JSONL") }),
});

const ResultWriterSchema = z.strictObject({
  Resource: z.literal("arn:aws:states:::s3:putObject"),
  Arguments: z.json(),
});

export const StateSchema = z.discriminatedUnion("Type", [
  z.strictObject({ Type: z.literal("Pass"), ...step, ...result }),
  z.strictObject({
    Type: z.literal("Task"),
    ...step,
    ...result,
    ...failing,
    Resource: z.string().min(1),
    Arguments: z.json().optional(),
    TimeoutSeconds: seconds.optional(),
  }),
  z.strictObject({
    Type: z.literal("Choice"),
    ...common,
    ...result,
    Choices: z
      .array(
        z.strictObject({
          Condition: orExpression(z.boolean(), "true, false"),
          Next: Name,
          ...result,
          Comment: z.string().optional(),
        }),
      )
      .min(1),
    Default: Name.optional(),
  }),
  z.strictObject({
    Type: z.literal("Wait"),
    ...step,
    ...result,
    Seconds: seconds,
  }),
  z.strictObject({ Type: z.literal("Succeed"), ...common, Output: z.json().optional() }),
  z.strictObject({
    Type: z.literal("Fail"),
    ...common,
    Error: z.string().optional(),
    Cause: z.string().optional(),
  }),
  z.strictObject({
    Type: z.literal("Parallel"),
    ...step,
    ...result,
    ...failing,
    Arguments: z.json().optional(),
    Branches: z.array(z.unknown()).min(1),
  }),
  z.strictObject({
    Type: z.literal("Map"),
    ...step,
    ...result,
    ...failing,
    Items: orExpression(z.array(z.json()), "a list").optional(),
    ItemSelector: z.json().optional(),
    ItemProcessor: z.unknown(),
    ItemReader: ItemReaderSchema.optional(),
    ResultWriter: ResultWriterSchema.optional(),
    MaxConcurrency: orExpression(z.int().min(0), "a whole number").optional(),
    ToleratedFailureCount: orExpression(z.int().min(0), "a whole number").optional(),
    ToleratedFailurePercentage: orExpression(z.number().min(0).max(100), "a number from 0 to 100").optional(),
    Label: z
      .string()
      .min(1)
      .max(40, { error: "expected at most 40 characters (limit of Step Functions)" })
      // biome-ignore lint/suspicious/noControlCharactersInRegex: Step Functions forbids exactly these
      .regex(/^[^\s?*<>{}[\]:;,\\|^~$#%&`"\u0000-\u001f\u007f-\u009f]+$/, {
        error: "expected no space, wildcard, bracket or special character",
      })
      .optional(),
  }),
]);

export type RawState = z.output<typeof StateSchema>;
export type RawRetrier = z.output<typeof RetrierSchema>;
export type RawCatcher = z.output<typeof CatcherSchema>;
