// What differs from the image, and a successor that has it.
import { describe } from "vitest";
import type { Sandbox, SuccessorOptions } from "../../../src/sandbox/sandbox.ts";
import { packFiles, packFolder } from "../../../src/sandbox/tar.ts";
import type { SandboxContract } from "./contract.ts";
import { output, processes, run } from "./inside.ts";

export function changeRules({ rule, folderWith, subject, unique }: SandboxContract): void {
  describe("changes", () => {
    const placed = () => ({
      ...subject().image,
      files: [{ from: folderWith({ "a.txt": "one\n", "sub/b.txt": "two\n" }), to: "/app" }],
    });
    const changesOf = async (sandbox: Sandbox) =>
      Object.fromEntries(
        (await sandbox.changedFiles()).map(({ path, change, kind }) => [path, `${change} ${kind}`]),
      );

    rule("are none at first, and none for what is only read", async ({ create, expect }) => {
      const sandbox = await create({ image: placed() });
      expect(await changesOf(sandbox)).toEqual({});
      await run(sandbox, "cat a.txt sub/b.txt /etc/passwd; ls -l / /logs");
      expect(await changesOf(sandbox)).toEqual({});
    });

    rule(
      "are those of now, also after all that ran was killed and more was done",
      async ({ create, expect }) => {
        const sandbox = await create({ image: placed() });
        await run(sandbox, "echo x > one");
        await sandbox.killAgents();
        expect(await changesOf(sandbox)).toEqual({ "/app/one": "added file" });
        const tar = await packFiles([{ from: folderWith({ two: "y" }), to: "/app" }]);
        expect(await sandbox.upload(tar, "/")).toEqual({ unpacked: true });
        expect(await changesOf(sandbox)).toEqual({ "/app/one": "added file", "/app/two": "added file" });
        await sandbox.killAgents();
        await run(sandbox, "rm one two");
        expect(await changesOf(sandbox)).toEqual({});
      },
    );

    rule("name what was added, modified and deleted, and its kind", async ({ create, expect }) => {
      const sandbox = await create({ image: placed() });
      await output(
        sandbox,
        "echo x > new; mkdir d; echo y > d/f; ln -s nowhere l; echo more >> a.txt; rm -r sub; chmod 700 /logs/agent",
      );
      expect(await changesOf(sandbox)).toEqual({
        "/app/new": "added file",
        "/app/d": "added folder",
        "/app/d/f": "added file",
        "/app/l": "added link",
        "/app/a.txt": "modified file",
        "/app/sub": "deleted folder",
        "/app/sub/b.txt": "deleted file",
        "/logs/agent": "modified folder",
      });
    });

    rule("say where links lead, also hard links to them", async ({ create, expect }) => {
      const sandbox = await create({ image: placed() });
      await output(
        sandbox,
        "ln -s ../no/where l; ln l hard 2>/dev/null || ln -P l hard; rm a.txt; ln -s /x a.txt",
      );
      const links = (await sandbox.changedFiles()).map(({ path, kind, target }) => [path, kind, target]);
      expect(links).toEqual([
        ["/app/a.txt", "link", "/x"],
        ["/app/hard", "link", "../no/where"],
        ["/app/l", "link", "../no/where"],
      ]);
    });

    rule("are seen when size and time of a file were put back", async ({ create, expect }) => {
      const sandbox = await create({ image: placed() });
      await output(sandbox, "touch -r a.txt ref; echo two > a.txt; touch -r ref a.txt; rm ref");
      expect(await changesOf(sandbox)).toEqual({ "/app/a.txt": "modified file" });
    });

    rule("are seen when size and time of a file of the image were put back", async ({ create, expect }) => {
      const sandbox = await create();
      const file = await output(
        sandbox,
        "f=/etc/passwd; [ -e $f ] || f=/bin/yes; printf $f; touch -r $f ref; tr a-z A-Z < $f > new; cat new > $f; touch -r ref $f; rm ref new",
      );
      expect(await changesOf(sandbox)).toEqual({ [file]: "modified file" });
    });

    rule("are seen when two that came at the same time changed places", async ({ create, expect }) => {
      const files = [{ from: folderWith({ "a/f": "one\n", "b/f": "two\n" }), to: "/app" }];
      const sandbox = await create({ image: { ...subject().image, files } });
      await output(sandbox, "mv a c; mv b a; mv c b");
      expect(await changesOf(sandbox)).toEqual({
        "/app/a/f": "modified file",
        "/app/b/f": "modified file",
      });
    });

    rule("are seen when one thing stands in another's place", async ({ create, expect }) => {
      const sandbox = await create({ image: placed() });
      await output(sandbox, "rm a.txt; mkdir a.txt; rm -r sub; ln -s /etc sub");
      expect(await changesOf(sandbox)).toEqual({
        "/app/a.txt": "modified folder",
        "/app/sub": "modified link",
        "/app/sub/b.txt": "deleted file",
      });
    });

    rule("go to a successor as they are, and its own begin there", async ({ create, expect }) => {
      const first = await create({ image: placed(), env: { COLOUR: "red" } });
      await output(
        first,
        "echo x > new; chmod 750 new; ln new hard; ln -s new l; mkdir -p d/e; chmod 700 d; rm sub/b.txt; echo more >> a.txt; " +
          "printf b > 'name with\nbreak'; touch -r new -d '2001-02-03 04:05:06' old 2>/dev/null || touch -d '2001-02-03 04:05:06' old",
      );
      await run(first, "setsid sleep 30 & (sleep 30 &)");
      const before = await changesOf(first);
      const second = await successor(first, []);
      expect(await changesOf(second)).toEqual(before);
      expect(await processes(second, "sleep")).toBe(0);
      await first[Symbol.asyncDispose]();
      const look =
        "ls -ld new d d/e old; [ new -ef hard ] && echo linked; readlink l; cat a.txt 'name with\nbreak'; ls sub; echo $COLOUR $PWD";
      const seen = await output(second, look);
      expect(seen).toMatch(
        /^drwx------.* d\ndrwxr-xr-x.* d\/e\n-rwxr-x---.* new\n.* 2001.* old\nlinked\nnew\none\nmore\nbred \/app\n$/,
      );
      await output(second, "echo z > z");
      expect(await changesOf(second)).toEqual({ ...before, "/app/z": "added file" });
    });

    rule("have names that are bytes, and reach a successor by these", async ({ create, expect }) => {
      const first = await create({ image: placed() });
      const name = `$(printf 'd\\377\\303\\251')`;
      await output(
        first,
        `n=${name}; mkdir -p "$n/$n"; echo x > "$n/$n/f$n"; ln "$n/$n/f$n" "hard$n"; ln -s "$n/." "l$n"; echo y > "$(printf 'd\\376')"; echo z > "$(printf 'd\\376x')"`,
      );
      const shown = "d\ufffdé";
      const changes = {
        [`/app/${shown}`]: "added folder",
        [`/app/${shown}/${shown}`]: "added folder",
        [`/app/${shown}/${shown}/f${shown}`]: "added file",
        [`/app/hard${shown}`]: "added file",
        [`/app/l${shown}`]: "added link",
        "/app/d\ufffd": "added file",
        "/app/d\ufffdx": "added file",
      };
      expect(await changesOf(first)).toEqual(changes);
      const second = await successor(first, ["/app/d\ufffdx"]);
      const { "/app/d\ufffdx": left, ...carried } = changes;
      expect([left, await changesOf(second)]).toEqual(["added file", carried]);
      expect(await output(second, `n=${name}; cat "l$n/$n/f$n" "hard$n" "$(printf 'd\\376')"`)).toBe(
        "x\nx\ny\n",
      );
      expect(
        await second.upload(await packFolder(folderWith({ f: "" })), "/app", { emptied: ["/app"] }),
      ).toEqual({
        unpacked: true,
      });
      expect(await output(second, "ls")).toBe("f\n");
    });

    rule(
      "deeper than any path are carried, or break the sandbox: no fault of its provider",
      async ({ create, expect }) => {
        const first = await create();
        await output(
          first,
          `n=$(printf '%0200d' 0); i=0; while [ $i -lt 30 ]; do i=$((i+1)); mkdir "$n" && cd -P "$n" || exit 1; done`,
        );
        const listed = await first.changedFiles().then(
          () => "listed",
          error => error.name,
        );
        expect(["listed", "SandboxBroken"]).toContain(listed);
        const lease = { id: `contract/${unique()}`, generation: 1, deadlineMs: Date.now() + 600_000 };
        const next = await first.successor(lease, { without: [] });
        if (!("refused" in next)) await next[Symbol.asyncDispose]();
        expect(await output(first, "echo ok")).toBe("ok\n");
      },
    );

    rule("stay behind where that is asked for, with what is below them", async ({ create, expect }) => {
      const first = await create({ image: placed() });
      await output(
        first,
        "echo bad > /etc/ld.so.preload; echo bad > a.txt; rm sub/b.txt; mkdir -p /tests/x; echo bad > /tests/x/y; ln /tests/x/y kept; echo ok > /etc/own.conf; rm /etc/ld.so.preload; echo bad > /etc/ld.so.preload.d",
      );
      const second = await successor(first, ["/tests", "/app/a.txt", "/app/sub", "/etc/ld.so.preload.d"]);
      expect(
        await output(
          second,
          "cat a.txt sub/b.txt kept /etc/own.conf; ls -d /tests /etc/ld.so.preload.d 2>/dev/null || true",
        ),
      ).toBe("one\ntwo\nbad\nok\n");
    });

    rule("stay behind also where that is found out late, or not at all", async ({ create, expect }) => {
      const first = await create({ image: placed() });
      await output(first, "echo bad > a.txt; echo good > new");
      const late = new Promise<string[]>(resolve => setTimeout(() => resolve(["/app/a.txt"]), 500));
      expect(await output(await successor(first, late), "cat a.txt new")).toBe("one\ngood\n");
      await expect(successor(first, Promise.reject(new Error("nobody knows")))).rejects.toThrow(
        "nobody knows",
      );
      expect(await output(await successor(first, []), "cat a.txt")).toBe("bad\n");
    });

    rule("fit into a successor when the first is full, with room to write", async ({ create, expect }) => {
      const first = await create({ diskBytes: 4 << 20 });
      await run(first, "echo work > w; dd if=/dev/zero of=big bs=65536 2>/dev/null; echo x > y");
      const second = await successor(first, []);
      expect(await output(second, "cat w; ls -d big; echo room > r; cat r")).toBe("work\nbig\nroom\n");
    });

    async function successor(first: Sandbox, without: SuccessorOptions["without"]): Promise<Sandbox> {
      const lease = { id: `contract/next${unique()}`, generation: 1, deadlineMs: Date.now() + 600_000 };
      const made = await first.successor(lease, { without });
      if ("refused" in made) throw new Error(made.refused);
      return made;
    }
  });
}
