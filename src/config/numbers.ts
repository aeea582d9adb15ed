// Numbers that settings take.
import { z } from "zod";
import { LAST_NUMBER } from "../store/keys.ts";

export const Count = z.int().positive();
/** What is numbered in the store. */
export const Numbered = Count.max(LAST_NUMBER);
export const Rate = z.number().positive();
export const Share = z.number().min(0).max(1);
