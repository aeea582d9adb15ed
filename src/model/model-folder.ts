// Model folders where they lie: in a store, with a manifest that proves them whole, or in a folder of this machine.
import { join } from "node:path";
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { type FileSet, readWhole } from "../files/content.ts";
import { decodeUserText, listUserFolder, userFileSource } from "../files/user-files.ts";
import { openFolder, type StoredFolder } from "../store/manifest.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { ChatFormat, type ChatFormatOptions } from "./chat-format.ts";
import { readJsonFile, TOKENIZER_FILES } from "./checkpoint.ts";
import { Tokenizer } from "./tokenizer.ts";

/** @throws InputError when there is no manifest, so that the folder does not count */
export async function openStoredModel(store: ObjectStore, prefix: string): Promise<StoredFolder> {
  const folder = await openFolder(store, prefix);
  if (folder !== undefined) return folder;
  throw new InputError({
    what: "no such model",
    where: `${store.url}/${prefix}`,
    expected: "expected a folder with manifest.json",
    fix: "check the run and the version",
  });
}

/** Model files have few and small names; anything else in a folder (READMEs, images) is left alone. */
const MODEL_FILE = /^[\w.-]+\.(json|safetensors|jinja|txt)$/;

/** The files of a model folder of this machine. @throws InputError when the folder cannot be read */
export async function openLocalModel(folder: string): Promise<FileSet> {
  const entries = listUserFolder(folder, {
    what: "the model",
    expected: "a folder as transformers writes it",
    ifMissing: "check the path; names of a model hub are not fetched, download the model first",
  });
  const about = { what: "a file of the model", expected: "a file" };
  const names = entries.map(({ name }) => name).filter(name => MODEL_FILE.test(name));
  const source = (name: string) => userFileSource(join(folder, name), about);
  return { where: `${folder}/`, names, source, read: async name => readWhole(source(name)) };
}

const TEMPLATE_FILE = "chat_template.jinja";
const TokenizerConfig = z.looseObject({ chat_template: z.string().optional() });

/** Tokenizer and chat format of a model folder. @throws InputError when a file is missing or broken */
export async function readTextFormat(
  files: FileSet,
  options: Omit<ChatFormatOptions, "template" | "where">,
): Promise<{ readonly tokenizer: Tokenizer; readonly chat: ChatFormat }> {
  const [tokenizerFile, configFile] = TOKENIZER_FILES;
  const tokenizer = new Tokenizer(await readJsonFile(files, tokenizerFile), files.where + tokenizerFile);
  const parsed = TokenizerConfig.safeParse(await readJsonFile(files, configFile));
  if (!parsed.success)
    throw new InputError({
      what: "not a tokenizer's config",
      where: files.where + configFile,
      expected: z.prettifyError(parsed.error).replace(/\s+/g, " "),
      fix: "copy the file from the model that it belongs to",
    });
  // As in transformers, the template's own file counts where there are both.
  const own = await readTemplateFile(files);
  const where = files.where + (own === undefined ? configFile : TEMPLATE_FILE);
  const template = own ?? parsed.data.chat_template;
  if (template === undefined) {
    throw new InputError({
      what: "the model has no chat template",
      where: files.where,
      expected: `the key chat_template in ${configFile}, or ${TEMPLATE_FILE}`,
      fix: "use an instruct model",
    });
  }
  return { tokenizer, chat: new ChatFormat(tokenizer, { ...options, template, where }) };
}

async function readTemplateFile(files: FileSet): Promise<string | undefined> {
  if (!files.names.includes(TEMPLATE_FILE)) return undefined;
  const about = { what: "the chat template", expected: "Jinja source" };
  return decodeUserText(await files.read(TEMPLATE_FILE), files.where + TEMPLATE_FILE, about);
}
