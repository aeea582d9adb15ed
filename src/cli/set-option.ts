// The option that changes single settings of a config.
import { Option } from "commander";

export function setOption(): Option {
  return new Option(
    "--set <key=value>",
    "a setting that wins over the config's; may be given again, e.g. --set seed=1 --set reward.kind=binary",
  ).argParser((value: string, before: readonly string[] = []) => [...before, value]);
}
