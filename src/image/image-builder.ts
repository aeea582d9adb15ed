// The contract of image building: a Dockerfile, or the name of an image, becomes what sandboxes start from.
import type { SandboxImage } from "../sandbox/sandbox.ts";
import type { ImageHealthcheck } from "./image-config.ts";

export interface BuildRequest {
  readonly source:
    | { readonly kind: "dockerfile"; readonly dockerfile: string; readonly context: string }
    | {
        readonly kind: "image";
        readonly name: string;
        /** Built instead where nothing is known of that name. */
        readonly otherwise?: { readonly dockerfile: string; readonly context: string };
      };
  /** Time limit of the whole build. */
  readonly timeoutMs: number;
  /** One line each time something begins or ends. */
  readonly onProgress?: (line: string) => void;
  readonly signal?: AbortSignal;
}

export interface BuiltImage {
  readonly image: SandboxImage;
  readonly workdir: string;
  /** Of commands. The verifier looks here for the folders of PATH. */
  readonly env: Readonly<Record<string, string>>;
  readonly healthcheck: ImageHealthcheck | undefined;
  /** Hash of everything that the image was made from. */
  readonly hash: string;
}

export interface ImageBuilder {
  /** This machine's own programs stand for the image of a Dockerfile that says they may (host-dockerfile.ts). */
  readonly usesHostPrograms: boolean;
  /** Sandboxes of its images know every user of the image. */
  readonly hasUsers: boolean;
  /** They can have containers beside them. */
  readonly hasServices: boolean;
  /** @throws InputError naming file and line of what cannot be built, or of the command that failed */
  build(request: BuildRequest): Promise<BuiltImage>;
}
