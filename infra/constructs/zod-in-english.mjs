// Stands for `zod` inside a function's bundle: all of zod except its translations, which are half of the bytes and which no
// bundler can drop, since they hang on the object `z`. The list is zod's own (v4/classic/external.js, 4.6).
import * as z from "./zod-names.mjs";

export * from "./zod-names.mjs";
export { z };
