import { plan } from "../../src/stages/plan.ts";
import { stageHandler } from "../stage-handler.ts";

export const handler = stageHandler(plan);
