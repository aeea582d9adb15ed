// Values in the env tables of a task may name variables of the host: `${NAME}` or `${NAME:-default}`, whole value only.
import { InputError } from "../failure/errors.ts";

const TEMPLATE = /^\$\{([^}:]+)(?::-([^\n]*))?\}$/;

/**
 * Fills in the host's variables. A value that is no template as a whole stays as it is, dollar signs included; a
 * variable that is set but empty counts as set.
 *
 * @param env    an env table of a task
 * @param host   the host's environment
 * @param where  file and table, for the error: `/tasks/a/task.toml: verifier.env`
 * @throws InputError when a variable without default is not set
 */
export function resolveEnv(
  env: Readonly<Record<string, string>>,
  host: Readonly<Record<string, string | undefined>>,
  where: string,
): Record<string, string> {
  const resolved: Record<string, string> = {};
  for (const [key, value] of Object.entries(env)) {
    const [template, name, fallback] = TEMPLATE.exec(value) ?? [];
    if (template === undefined || name === undefined) {
      resolved[key] = value;
      continue;
    }
    const found = Object.hasOwn(host, name) ? host[name] : undefined;
    const filled = found ?? fallback;
    if (filled === undefined) {
      throw new InputError({
        what: `environment variable ${name} is not set`,
        where: `${where}.${key} = ${JSON.stringify(value)}`,
        expected: "a value on the host, or a default in the task",
        fix: `set ${name} before starting, or write "\${${name}:-default}" in the task`,
      });
    }
    resolved[key] = filled;
  }
  return resolved;
}
