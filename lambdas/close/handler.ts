import { close } from "../../src/stages/close.ts";
import { stageHandler } from "../stage-handler.ts";

export const handler = stageHandler(close);
