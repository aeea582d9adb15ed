import { describe, expect, it } from "vitest";
import { filesInMemory } from "../files/content.ts";
import { readTextFormat } from "./model-folder.ts";
import { trainTokenizer } from "./train-tokenizer.ts";

const TOKENIZER = trainTokenizer(["user\n assistant\n"], {
  vocabSize: 262,
  specialTokens: ["<|im_start|>", "<|im_end|>"],
});
const template = (name: string): string =>
  `{% for m in messages %}{{ '<|im_start|>' + m.role + ' ${name}\\n' + m.content + '<|im_end|>' }}{% endfor %}`;

function read(own: string | undefined, inConfig: string | undefined) {
  const files = [
    { path: "tokenizer.json", body: JSON.stringify(TOKENIZER) },
    { path: "tokenizer_config.json", body: JSON.stringify({ chat_template: inConfig }) },
    ...(own === undefined ? [] : [{ path: "chat_template.jinja", body: own }]),
  ];
  return readTextFormat(filesInMemory("m/", files), { endOfTurn: "<|im_end|>" });
}

describe("the chat template of a model folder", () => {
  it("is that of its own file before that of tokenizer_config.json, as in transformers", async () => {
    const opening = async (own: string | undefined, inConfig: string | undefined): Promise<string> => {
      const { tokenizer, chat } = await read(own, inConfig);
      return tokenizer.decode(chat.opening("x"));
    };
    expect(await opening(template("own"), template("config"))).toContain("user own\nx");
    expect(await opening(template("own"), undefined)).toContain("user own\nx");
    expect(await opening(undefined, template("config"))).toContain("user config\nx");
  });

  it("is named by its file where it is broken, and missed by name where there is none", async () => {
    await expect(read("{% for", template("config"))).rejects.toThrow("m/chat_template.jinja");
    await expect(read(undefined, "{% for")).rejects.toThrow("m/tokenizer_config.json");
    await expect(read(undefined, undefined)).rejects.toThrow("the model has no chat template");
  });
});
