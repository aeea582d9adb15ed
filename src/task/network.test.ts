import { describe, expect, it } from "vitest";
import { normalizeHost } from "./network.ts";

// Results of harbor.models.task.config.normalize_allowed_hosts, Harbor 0.26.0 under Python 3.13.
const ROWS: readonly (readonly [entry: string, host: string | undefined])[] = [
  [" Example.COM. ", "example.com"],
  ["*.a.b", "*.a.b"],
  ["localhost", "localhost"],
  ["1.2.3.4", "1.2.3.4"],
  ["01.2.3.4", "01.2.3.4"],
  [`${"a".repeat(63)}.b`, `${"a".repeat(63)}.b`],
  [`${"a".repeat(64)}.b`, undefined],
  ["", undefined],
  ["..", undefined],
  ["*", undefined],
  ["*.", undefined],
  ["a.*.b", undefined],
  ["*.1.2.3.4", undefined],
  ["a_b", undefined],
  ["-a", undefined],
  ["é.com", undefined],
  ["a:80", undefined],
  ["http://a", undefined],
  ["a/b", undefined],
  ["1.0.0.0/8", "1.0.0.0/8"],
  ["1.0.0.0/08", "1.0.0.0/8"],
  ["1.0.0.0/255.0.0.0", "1.0.0.0/8"],
  ["1.0.0.0/0.255.255.255", "1.0.0.0/8"],
  ["10.0.0.0/255.255.255.255", "10.0.0.0/32"],
  ["0.0.0.0/0.0.0.0", "0.0.0.0/0"],
  ["10.0.0.0/255.0.255.0", undefined],
  ["1.2.3.4/8", undefined],
  ["1.0.0.0/33", undefined],
  ["1.0.0.0/", undefined],
  ["1.2.3.4/8/8", undefined],
  ["::1", "::1"],
  ["2001:DB8:0:0:0:0:0:1", "2001:db8::1"],
  ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
  ["1::3:4:5:6:7:8", "1:0:3:4:5:6:7:8"],
  ["0:0:1:0:0:0:0:0", "0:0:1::"],
  ["::1.2.3.4", "::102:304"],
  ["::ffff:102:304", "::ffff:1.2.3.4"],
  ["::/0", "::/0"],
  ["2001:db8::/32", "2001:db8::/32"],
  ["1::1/32", undefined],
  ["fe80::1%eth0", undefined],
  ["[::1]", undefined],
];

describe("normalizeHost", () => {
  it.each(ROWS)("makes of %j %j", (entry, host) => {
    expect(normalizeHost(entry)).toBe(host);
  });
});
