// What `zod` is inside a function's bundle: all of it but its translations, which are half of the bytes and which no
// bundler can leave out, since they hang on the object `z`. The list is zod's own (v4/classic/external.js, 4.6).
import * as z from "./zod-names.mjs";

export * from "./zod-names.mjs";
export { z };
