import { score } from "../../src/stages/score.ts";
import { stageHandler } from "../stage-handler.ts";

export const handler = stageHandler(score);
