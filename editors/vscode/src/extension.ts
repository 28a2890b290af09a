/** Starts `speedlint server` for Python files, and starts it anew where the interpreter or the settings change. */

import * as fs from "node:fs";
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";
import { serverCommand } from "./command";
import { Single } from "./single";

const NAME = "speedlint";

let server: Single | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const watcher = vscode.workspace.createFileSystemWatcher("**/{speedlint,pyproject}.toml");
  const own = new Single(() => made(watcher), report);
  server = own;
  const restart = () => own.restart();
  context.subscriptions.push(
    watcher,
    vscode.commands.registerCommand("speedlint.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(NAME)) {
        void restart();
      }
    }),
  );
  const python = await pythonExtension();
  const changed = python?.environments?.onDidChangeActiveEnvironmentPath?.(restart);
  if (changed) {
    context.subscriptions.push(changed);
  }
  await restart();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

async function made(watcher: vscode.FileSystemWatcher): Promise<LanguageClient> {
  const settings = vscode.workspace.getConfiguration(NAME);
  const started = serverCommand(
    { path: settings.get("path", ""), interpreter: settings.get("interpreter", "") },
    {
      interpreter: await chosenInterpreter(),
      platform: process.platform,
      isFile: (name) => fs.statSync(name, { throwIfNoEntry: false })?.isFile() ?? false,
    },
  );
  return new LanguageClient(NAME, NAME, started, {
    documentSelector: [
      { scheme: "file", language: "python" },
      { notebook: "jupyter-notebook", language: "python" },
    ],
    initializationOptions: { notes: settings.get("notes", false) },
    synchronize: { fileEvents: watcher },
  });
}

async function report(error: unknown): Promise<void> {
  const why = error instanceof Error ? error.message : String(error);
  const install = "install it with `pip install 'speedlint[server]'`, or set `speedlint.path`";
  await vscode.window.showErrorMessage(`speedlint did not start (${why}); ${install}.`);
}

/** What is used of the Python extension's interface, which may be missing or of another version. */
interface PythonExtension {
  environments?: {
    getActiveEnvironmentPath?: (resource?: vscode.Uri) => { path: string } | undefined;
    onDidChangeActiveEnvironmentPath?: (listener: () => void) => vscode.Disposable;
  };
}

async function pythonExtension(): Promise<PythonExtension | undefined> {
  const found = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
  try {
    return found?.isActive ? found.exports : await found?.activate();
  } catch {
    return undefined;
  }
}

async function chosenInterpreter(): Promise<string | undefined> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  return (await pythonExtension())?.environments?.getActiveEnvironmentPath?.(folder)?.path;
}
