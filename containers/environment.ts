// What a container is told comes as environment variables.
import { z } from "zod";
import { InputError } from "../src/failure/errors.ts";

/** @throws InputError naming each variable that is missing or wrong */
export function readContainerEnvironment<Shape extends z.ZodRawShape>(
  shape: Shape,
): z.output<z.ZodObject<Shape>> {
  const parsed = z.object(shape).safeParse(process.env);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new InputError({
    what: "invalid environment of the container",
    expected: problems.join("; "),
    fix: "it is set by the task or job definition in infra/stacks",
  });
}
