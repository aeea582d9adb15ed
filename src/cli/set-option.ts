// The option that changes single settings of a config.
import { Option } from "commander";
import { changeableKeys } from "../config/change-config.ts";

export function setOption(): Option {
  return settings(
    "a setting that wins over the config's; may be given again, e.g. --set seed=1 --set reward.kind=binary",
  );
}

export function changeOption(): Option {
  return settings(
    `another value from here on, for a setting that may change in a run: ${changeableKeys().join(", ")}; may be given again`,
  );
}

function settings(description: string): Option {
  return new Option("--set <key=value>", description).argParser(
    (value: string, before: readonly string[] = []) => [...before, value],
  );
}
