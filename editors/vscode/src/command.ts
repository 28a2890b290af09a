/** Which command starts the server. Knows nothing of VS Code, so that it can be tested without. */

import * as path from "node:path";

export interface Settings {
  /** `speedlint.path`, or "". */
  path: string;
  /** `speedlint.interpreter`, or "". */
  interpreter: string;
}

export interface Command {
  command: string;
  args: string[];
}

export interface Surroundings {
  /** The interpreter that the Python extension has chosen, if any. */
  interpreter: string | undefined;
  platform: NodeJS.Platform;
  isFile: (name: string) => boolean;
}

const SERVER = ["server", "--stdio"];

/**
 * The first of: the configured speedlint; the `speedlint` beside the configured or chosen interpreter; the one on the PATH.
 * A configured interpreter without a `speedlint` beside it runs it as a module.
 */
export function serverCommand(settings: Settings, around: Surroundings): Command {
  if (settings.path) {
    return { command: settings.path, args: SERVER };
  }
  const interpreter = settings.interpreter || around.interpreter;
  const beside = interpreter && besideOf(interpreter, around.platform);
  if (beside && around.isFile(beside)) {
    return { command: beside, args: SERVER };
  }
  if (settings.interpreter) {
    return { command: settings.interpreter, args: ["-m", "speedlint", ...SERVER] };
  }
  return { command: "speedlint", args: SERVER };
}

function besideOf(interpreter: string, platform: NodeJS.Platform): string {
  const paths = platform === "win32" ? path.win32 : path.posix;
  const name = platform === "win32" ? "speedlint.exe" : "speedlint";
  const folder = paths.dirname(interpreter);
  const isOfConda = platform === "win32" && paths.basename(folder).toLowerCase() !== "scripts";
  return isOfConda ? paths.join(folder, "Scripts", name) : paths.join(folder, name);
}
