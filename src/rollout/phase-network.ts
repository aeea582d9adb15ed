// What the network policy of a task's phase means on this machine. A policy that cannot be kept is refused; what stands
// for it instead has to be said by whoever owns the machine (images-file.ts), and is never wider than the policy.
import { InputError } from "../failure/errors.ts";
import type { Images, PhaseNetwork } from "../image/images-file.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { NetworkPolicy } from "../task/network.ts";

const NO_NETWORK: PhaseNetwork = { network: "none", env: {} };

/** @throws InputError */
export function phaseNetwork(
  phase: "agent" | "verifier",
  policy: NetworkPolicy,
  images: Images,
  where: string,
): PhaseNetwork {
  if (policy.kind === "no-network") return NO_NETWORK;
  const allowed = images[phase];
  if (allowed !== undefined && (policy.kind === "public" || allowed.network === "none")) return allowed;
  const who = phase === "agent" ? "the agent" : "the verifier";
  throw new InputError({
    what: `the task wants network access for ${who} (${policy.kind})`,
    where,
    expected:
      policy.kind === "allowlist"
        ? "a policy that sandboxes of this machine can keep: they have all of its network or none"
        : 'network_mode = "no-network"',
    fix: `leave it out of the pool, or say in the images file what it gets instead: ${phase}: { network: none${policy.kind === "public" ? ", host, or public with docker" : ""} }`,
  });
}

/** The sandbox as a phase sees it. */
export function inPhase(sandbox: Sandbox, { network, env }: PhaseNetwork): Sandbox {
  if (network === "none") return sandbox;
  const extend = <Options extends { readonly env?: Readonly<Record<string, string>> }>(options: Options) => ({
    ...options,
    ...(network === "host" && { network }),
    env: { ...env, ...options.env },
  });
  return {
    lease: sandbox.lease,
    exec: (command, options) => sandbox.exec(command, extend(options)),
    terminal: options => sandbox.terminal(extend(options)),
    upload: (...args) => sandbox.upload(...args),
    download: (...args) => sandbox.download(...args),
    killAgents: () => sandbox.killAgents(),
    changedFiles: () => sandbox.changedFiles(),
    successor: async (...args) => {
      const next = await sandbox.successor(...args);
      return "refused" in next ? next : inPhase(next, { network, env });
    },
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  };
}
