// Learns a byte-level BPE vocabulary (arXiv 1508.07909 on bytes) and writes it as tokenizer.json. Digits stand alone,
// so that numbers are spelled the same way wherever they occur.
import { InputError } from "../failure/errors.ts";

export interface TokenizerTraining {
  readonly vocabSize: number;
  /** Special tokens get the first ids, in this order. */
  readonly specialTokens: readonly string[];
}

/**
 * Matches words as the ByteLevel pre-tokenizer cuts them (the GPT-2 pattern). Digits were cut out one by one before.
 */
const WORD = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

/**
 * Merges the most frequent pair first, and among equally frequent pairs the alphabetically first, so that the result is
 * deterministic.
 *
 * @returns the JSON of tokenizer.json
 * @throws InputError when the texts hold too few pairs for the vocabulary
 */
export function trainTokenizer(
  texts: Iterable<string>,
  { vocabSize, specialTokens }: TokenizerTraining,
): unknown {
  const alphabet = byteAlphabet();
  const words = countWords(texts, alphabet);
  const vocabulary = [...specialTokens, ...[...alphabet].sort()];
  const merges: [string, string][] = [];
  while (vocabulary.length < vocabSize) {
    const pair = mostFrequentPair(words);
    if (pair === undefined) {
      throw new InputError({
        what: "too little text for the vocabulary",
        expected: `${vocabSize} tokens, got ${vocabulary.length} from ${words.length} different words`,
        fix: "give more text or a smaller vocabSize",
      });
    }
    merges.push(pair);
    vocabulary.push(pair[0] + pair[1]);
    for (const word of words) merge(word.symbols, pair);
  }
  return tokenizerJson(vocabulary, merges, specialTokens);
}

interface Word {
  readonly symbols: string[];
  readonly count: number;
}

/** The printable character that stands for each byte, as GPT-2 chose them. */
export function byteAlphabet(): string[] {
  const printable = (byte: number): boolean =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) =>
    String.fromCharCode(printable(byte) ? byte : 256 + others++),
  );
}

function countWords(texts: Iterable<string>, alphabet: readonly string[]): Word[] {
  const counts = new Map<string, number>();
  for (const text of texts) {
    for (const piece of text.split(/(\p{N})/u)) {
      for (const [word] of piece.matchAll(WORD)) counts.set(word, (counts.get(word) ?? 0) + 1);
    }
  }
  return [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([word, count]) => ({ symbols: [...Buffer.from(word)].map(byte => alphabet[byte]), count }));
}

function mostFrequentPair(words: readonly Word[]): [string, string] | undefined {
  const counts = new Map<string, number>();
  for (const { symbols, count } of words) {
    for (let i = 0; i + 1 < symbols.length; i++) {
      const key = `${symbols[i]} ${symbols[i + 1]}`;
      counts.set(key, (counts.get(key) ?? 0) + count);
    }
  }
  let best: string | undefined;
  let most = 0;
  for (const [key, count] of counts) {
    if (count > most || (count === most && best !== undefined && key < best)) [best, most] = [key, count];
  }
  const [left, right] = best?.split(" ") ?? [];
  return left === undefined || right === undefined ? undefined : [left, right];
}

function merge(symbols: string[], [left, right]: readonly [string, string]): void {
  for (let i = 0; i + 1 < symbols.length; i++) {
    if (symbols[i] === left && symbols[i + 1] === right) symbols.splice(i, 2, left + right);
  }
}

function tokenizerJson(
  vocabulary: readonly string[],
  merges: readonly [string, string][],
  specials: readonly string[],
) {
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: specials.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Digits", individual_digits: true },
        { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
      ],
    },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
      merges,
    },
  };
}
