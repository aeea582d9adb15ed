import { sweep } from "../../src/stages/sweep.ts";
import { stageHandler } from "../stage-handler.ts";
import { sweptCluster } from "./swept-cluster.ts";

export const handler = stageHandler(sweep, settings => ({ cluster: sweptCluster(settings) }));
