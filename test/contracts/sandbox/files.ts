// Files of the spec, and what goes in and out as tar.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pack } from "tar-stream";
import { describe } from "vitest";
import { packFolder, readTarFiles } from "../../../src/sandbox/tar.ts";
import { DISK_BYTES, type SandboxContract } from "./contract.ts";
import { output, packed, run } from "./inside.ts";

export function fileRules({ rule, folderWith, subject }: SandboxContract): void {
  describe("files", () => {
    rule(
      "of the spec are there from the start, with modes and below new folders",
      async ({ create, expect }) => {
        const folder = folderWith({
          "data/a.csv": "1,2\n",
          "data/sub/b": "b\n",
          "run.sh": "#!/bin/sh\necho ran\n",
        });
        const files = [
          { from: join(folder, "data"), to: "/srv/in" },
          { from: join(folder, "run.sh"), to: "/app/bin/run" },
        ];
        const sandbox = await create({ image: { ...subject().image, files } });
        expect(await output(sandbox, "cat /srv/in/a.csv /srv/in/sub/b; sh bin/run")).toBe("1,2\nb\nran\n");
      },
    );

    rule("that cannot be placed are named before anything runs", async ({ create, expect }) => {
      const folder = folderWith({ f: "" });
      const files = [{ from: join(folder, "f"), to: "/proc/f" }];
      await expect(create({ image: { ...subject().image, files } })).rejects.toMatchObject({
        name: "InputError",
      });
    });

    rule("go in and come out as they are", async ({ create, expect }) => {
      const sandbox = await create();
      const tar = await packFolder(folderWith({ "a/b.bin": "\0\xff", "é ü": "text\n" }));
      expect(await sandbox.upload(tar, "/data/new")).toEqual({ unpacked: true });
      expect(await output(sandbox, "cat '/data/new/é ü'")).toBe("text\n");
      const down = await sandbox.download("/data/new", 1 << 20);
      expect(await readTarFiles(await packed(down))).toEqual(await readTarFiles(tar));
    });

    rule(
      "of a missing folder, an empty one and one that is too large are told apart",
      async ({ create, expect }) => {
        const sandbox = await create();
        await run(
          sandbox,
          "mkdir empty large; dd if=/dev/zero of=large/f bs=1024 count=300 2>/dev/null; echo > file",
        );
        expect(await sandbox.download("/app/none", 100_000)).toEqual({ missing: true });
        expect(await sandbox.download("/app/file", 100_000)).toEqual({ missing: true });
        expect(await sandbox.download("/app/large", 100_000)).toEqual({ oversized: true });
        expect((await readTarFiles(await packed(await sandbox.download("/app/empty", 100_000)))).size).toBe(
          0,
        );
        expect(await output(sandbox, "echo still here")).toBe("still here\n");
      },
    );

    rule("never leave the sandbox by a link", async ({ create, expect }) => {
      const sandbox = await create();
      const outside = folderWith({ secret: "of this machine" });
      await run(sandbox, `ln -s / root; ln -s ${outside} out; ln -s ${outside}/secret secret`);
      expect(await sandbox.download("/app/out", 1 << 20)).toEqual({ missing: true });
      const tar = await packFolder(folderWith({ planted: "x" }));
      await sandbox.upload(tar, "/app/out");
      await sandbox.upload(tar, `/app/root${outside}`);
      expect(existsSync(join(outside, "planted"))).toBe(false);
      expect(await output(sandbox, `cat ${outside}/planted`)).toBe("x");
    });

    rule("of an archive with a link that leads out stay inside", async ({ create, expect }) => {
      const sandbox = await create();
      const outside = folderWith({});
      const archive = pack();
      archive.entry({ name: "way", type: "symlink", linkname: outside });
      archive.entry({ name: "way/planted" }, "x");
      archive.finalize();
      const chunks: Buffer[] = [];
      for await (const chunk of archive as AsyncIterable<Buffer>) chunks.push(chunk);
      await sandbox.upload(Buffer.concat(chunks), "/app");
      expect(existsSync(join(outside, "planted"))).toBe(false);
      expect(await output(sandbox, "echo alive")).toBe("alive\n");
    });

    // What an agent may have made of a folder, and what must be left of it beside the folder.
    const obstacles: readonly (readonly [what: string, made: string, untouched?: string])[] = [
      ["nothing", "rm -rf /fresh"],
      [
        "files of all kinds",
        "mkdir -p /fresh/a; touch /fresh/.hidden /fresh/-rf '/fresh/new\nline'; mkdir /fresh/-p",
      ],
      [
        "folders that nobody may enter or write",
        "mkdir -p /fresh/a/b; touch /fresh/a/b/f; chmod 000 /fresh/a/b /fresh/a; chmod 555 /fresh",
      ],
      [
        "links within it that lead away",
        "mkdir -p /app/kept /fresh; ln -s /app/kept /app/f /fresh",
        "/app/kept",
      ],
      ["a link to a folder", "mkdir /app/kept; touch /app/kept/f; ln -s /app/kept /fresh", "/app/kept/f"],
      ["a link to itself", "ln -s /fresh /fresh"],
      ["a file", "echo x > /fresh"],
      ["a link that leads nowhere", "ln -s /no/such /fresh"],
    ];
    rule("fill a folder that is made anew, whatever stands in its place", async ({ create, expect }) => {
      const tar = await packFolder(folderWith({ "in/f": "new\n" }));
      const check = async ([what, made, untouched = "/"]: (typeof obstacles)[number]): Promise<void> => {
        const sandbox = await create();
        await output(sandbox, made);
        expect(await sandbox.upload(tar, "/fresh", { emptied: ["/fresh"] }), what).toEqual({
          unpacked: true,
        });
        const look = `cd /fresh && pwd -P; ls -A . in; cat in/f; [ -L /fresh ] || ls -ld .; ls -d ${untouched}`;
        const [place, ...rest] = (await output(sandbox, look)).trim().split("\n");
        expect([what, place, ...rest.slice(0, 5)]).toEqual([what, "/fresh", ".:", "in", "", "in:", "f"]);
        expect([what, ...rest.slice(5)]).toEqual([
          what,
          "new",
          expect.stringMatching(/^drwxr-xr-x /),
          untouched,
        ]);
      };
      await Promise.all(obstacles.map(check));
    });

    rule("come with other folders made anew, and what is in the way of these", async ({ create, expect }) => {
      const sandbox = await create();
      await output(sandbox, "rm -rf /logs; echo x > /logs; mkdir -p /real; ln -s /real /way; touch /real/f");
      const tar = await packFolder(folderWith({ f: "tests\n" }));
      const emptied = ["/logs/verifier", "/way/to/it", "/tests"];
      expect(await sandbox.upload(tar, "/tests", { emptied })).toEqual({ unpacked: true });
      const look = "cat /tests/f; ls -A /logs /logs/verifier /real /real/to/it";
      expect((await output(sandbox, look)).trim().split(/\n+/)).toEqual([
        ...["tests", "/logs:", "verifier", "/logs/verifier:"],
        ...["/real:", "f", "to", "/real/to/it:"],
      ]);
    });

    rule("fill a folder that held a tree deeper than any path", async ({ create, expect }) => {
      const sandbox = await create();
      const deep =
        "mkdir /fresh; cd /fresh; i=0; while [ $i -lt 60 ]; do i=$((i+1)); mkdir $d && cd -P $d || exit 1; done";
      const name = "d".repeat(100);
      expect((await run(sandbox, `d=${name}; ${deep}; touch bottom`)).end).toEqual({
        kind: "exited",
        exitCode: 0,
      });
      const tar = await packFolder(folderWith({ f: "" }));
      expect(await sandbox.upload(tar, "/fresh", { emptied: ["/fresh"] })).toEqual({ unpacked: true });
      expect(await output(sandbox, "ls -A /fresh")).toBe("f\n");
    });

    rule("are refused where a mount cannot be made anew", async ({ create, expect }) => {
      const sandbox = await create();
      const tar = await packFolder(folderWith({ f: "" }));
      for (const folder of ["/proc", "/dev/shm", "/"]) {
        const result = await sandbox.upload(tar, "/app", { emptied: [folder] });
        expect(result, folder).toHaveProperty(
          "refused",
          expect.stringMatching(/cannot (empty|replace|make)/),
        );
      }
      expect(await output(sandbox, "ls -A; echo x > /dev/shm/f; cat /dev/shm/f")).toBe("x\n");
    });

    rule("that do not fit are refused, and the sandbox lives on", async ({ create, expect }) => {
      const sandbox = await create();
      const tar = await packFolder(folderWith({ big: "x".repeat(DISK_BYTES + 1) }));
      expect(await sandbox.upload(tar, "/app")).toHaveProperty("refused");
      expect(await output(sandbox, "rm -f big; echo ok")).toBe("ok\n");
    });

    rule("have one limit together, wherever they are written", async ({ create, expect }) => {
      const sandbox = await create();
      const most = Math.floor((DISK_BYTES / 1024) * 0.6);
      const write = (path: string) => run(sandbox, `dd if=/dev/zero of=${path} bs=1024 count=${most}`);
      expect((await write("/app/a")).end).toEqual({ kind: "exited", exitCode: 0 });
      expect((await write("/tmp/b")).end).not.toEqual({ kind: "exited", exitCode: 0 });
      expect((await run(sandbox, "rm /app/a /tmp/b && echo x > /root/c")).end).toEqual({
        kind: "exited",
        exitCode: 0,
      });
    });
  });
}
