// Numbers that settings take.
import { z } from "zod";

/** The highest number that a key of the store can hold: six digits, so that their order is the order of numbers. */
export const LAST_NUMBER = 999_999;

export const Count = z.int().positive();
/** What is numbered in the store. */
export const Numbered = Count.max(LAST_NUMBER);
export const Rate = z.number().positive();
export const Share = z.number().min(0).max(1);
