import { summarise } from "../../src/stages/summarise.ts";
import { stageHandler } from "../stage-handler.ts";

export const handler = stageHandler(summarise);
