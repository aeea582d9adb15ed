// The option that says where runs lie.
import { Option } from "commander";

export function storeOption(): Option {
  return new Option("--local <store>", "the store: a folder, or s3://BUCKET/PREFIX").default(".t1/store");
}
