// What `zod` is inside a function's bundle: all of it but its translations, which are half of the bytes and which no
// bundler can leave out, since they hang on the object `z`. The list is zod's own (v4/classic/external.js, 4.6).
import * as z from "./zod-in-english.mjs";

export * from "../../node_modules/zod/v4/classic/checks.js";
export * as coerce from "../../node_modules/zod/v4/classic/coerce.js";
export * from "../../node_modules/zod/v4/classic/errors.js";
export * as iso from "../../node_modules/zod/v4/classic/iso.js";
export * from "../../node_modules/zod/v4/classic/parse.js";
export * from "../../node_modules/zod/v4/classic/schemas.js";
export { z };
