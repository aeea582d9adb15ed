// Model folders where they lie: in a store, with a manifest that proves them whole, or in a folder of this machine.
import { join } from "node:path";
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { decodeUserText, listUserFolder, readUserFileAsync } from "../files/user-files.ts";
import { type Manifest, readFolderFile, readManifest, writeFolder } from "../store/manifest.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { ChatFormat, type ChatFormatOptions } from "./chat-format.ts";
import {
  CONFIG_FILE,
  decodeModelFiles,
  type Files,
  type Model,
  parseJson,
  TOKENIZER_FILES,
} from "./checkpoint.ts";
import { type ModelConfig, parseModelConfig } from "./config.ts";
import type { Head } from "./parameters.ts";
import { Tokenizer } from "./tokenizer.ts";

/** Model files are few and small names; anything else in a folder (READMEs, images) is left alone. */
const MODEL_FILE = /^[\w.-]+\.(json|safetensors|jinja)$/;

/** @throws InputError when the folder does not count or a file of it differs from its manifest */
export function readStoredFiles(store: ObjectStore, prefix: string): Promise<Map<string, Uint8Array>> {
  return readFiles(store, prefix, () => true);
}

/** All but the weights, which are as large as everything else is small. @throws as `readStoredFiles` does */
export function readStoredDescription(store: ObjectStore, prefix: string): Promise<Map<string, Uint8Array>> {
  return readFiles(store, prefix, path => !path.endsWith(".safetensors"));
}

async function readFiles(
  store: ObjectStore,
  prefix: string,
  isWanted: (path: string) => boolean,
): Promise<Map<string, Uint8Array>> {
  const manifest = await manifestOfModel(store, prefix);
  const files = new Map<string, Uint8Array>();
  for (const { path } of manifest.files)
    if (isWanted(path)) files.set(path, await readFolderFile(store, prefix, manifest, path));
  return files;
}

/** What a model is, without its weights. @throws as `readStoredFiles` does */
export async function readStoredConfig(store: ObjectStore, prefix: string): Promise<ModelConfig> {
  const file = await readFolderFile(store, prefix, await manifestOfModel(store, prefix), CONFIG_FILE);
  return parseModelConfig(
    parseJson(new Map([[CONFIG_FILE, file]]), CONFIG_FILE, prefix),
    `${prefix}${CONFIG_FILE}`,
  );
}

async function manifestOfModel(store: ObjectStore, prefix: string): Promise<Manifest> {
  const manifest = await readManifest(store, prefix);
  if (manifest !== undefined) return manifest;
  throw new InputError({
    what: "no such model",
    where: `${store.url}/${prefix}`,
    expected: "expected a folder with manifest.json",
    fix: "check the run and the version",
  });
}

export async function readModelFolder(store: ObjectStore, prefix: string, head: Head): Promise<Model> {
  return decodeModelFiles(await readStoredFiles(store, prefix), head, prefix);
}

export async function writeStoredFiles(store: ObjectStore, prefix: string, files: Files): Promise<void> {
  await writeFolder(
    store,
    prefix,
    [...files].map(([path, body]) => ({ path, body })),
  );
}

/** The model files of a folder of this machine. */
export async function readLocalFiles(folder: string): Promise<Map<string, Uint8Array>> {
  const about = { what: "the model", expected: "a folder as transformers writes it" };
  const names = listUserFolder(folder, {
    ...about,
    ifMissing: "check the path; names of a model hub are not fetched, download the model first",
  }).map(entry => entry.name);
  const wanted = names.filter(name => MODEL_FILE.test(name) && name !== "manifest.json");
  return new Map(
    await Promise.all(
      wanted.map(
        async name =>
          [
            name,
            await readUserFileAsync(join(folder, name), { what: "a file of the model", expected: "a file" }),
          ] as const,
      ),
    ),
  );
}

const TEMPLATE_FILE = "chat_template.jinja";
const TokenizerConfig = z.looseObject({ chat_template: z.string().optional() });

/** Tokenizer and chat format of a model folder. */
export function readTextFormat(
  files: Files,
  where: string,
  options: Omit<ChatFormatOptions, "template" | "where">,
): { readonly tokenizer: Tokenizer; readonly chat: ChatFormat } {
  const [tokenizerFile, configFile] = TOKENIZER_FILES;
  const tokenizer = new Tokenizer(parseJson(files, tokenizerFile, where), `${where}/${tokenizerFile}`);
  const parsed = TokenizerConfig.safeParse(parseJson(files, configFile, where));
  if (!parsed.success)
    throw new InputError({
      what: "not a tokenizer's config",
      where: `${where}/${configFile}`,
      expected: z.prettifyError(parsed.error).replace(/\s+/g, " "),
      fix: "copy the file from the model that it belongs to",
    });
  const inConfig = parsed.data.chat_template;
  const template = inConfig ?? files.get(TEMPLATE_FILE);
  if (template === undefined) {
    throw new InputError({
      what: "the model has no chat template",
      where,
      expected: `the key chat_template in ${configFile}, or ${TEMPLATE_FILE}`,
      fix: "use an instruct model",
    });
  }
  const file = `${where}/${inConfig === undefined ? TEMPLATE_FILE : configFile}`;
  const about = { what: "the chat template", expected: "Jinja source" };
  const text = typeof template === "string" ? template : decodeUserText(template, file, about);
  return { tokenizer, chat: new ChatFormat(tokenizer, { ...options, template: text, where: file }) };
}
