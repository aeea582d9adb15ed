import { runStateContract } from "../../test/contracts/run-state.ts";
import { temporaryStore } from "../../test/store/temporary-store.ts";

runStateContract(temporaryStore);
