/** Starts `speedlint server` for Python files, and starts it anew where the interpreter or the settings change. */

import * as fs from "node:fs";
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";
import { serverCommand } from "./command";

const NAME = "speedlint";

let client: LanguageClient | undefined;
let restarting: Promise<void> = Promise.resolve();

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
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
  await stop();
}

function restart(): Promise<void> {
  restarting = restarting.then(stop).then(start).catch(report);
  return restarting;
}

async function start(): Promise<void> {
  const settings = vscode.workspace.getConfiguration(NAME);
  const started = serverCommand(
    { path: settings.get("path", ""), interpreter: settings.get("interpreter", "") },
    {
      interpreter: await chosenInterpreter(),
      platform: process.platform,
      isFile: (name) => fs.statSync(name, { throwIfNoEntry: false })?.isFile() ?? false,
    },
  );
  client = new LanguageClient(NAME, NAME, started, {
    documentSelector: [
      { scheme: "file", language: "python" },
      { notebook: "jupyter-notebook", language: "python" },
    ],
    initializationOptions: { notes: settings.get("notes", false) },
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/{speedlint,pyproject}.toml") },
  });
  await client.start();
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  await running?.dispose();
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
  return found?.isActive ? found.exports : found?.activate();
}

async function chosenInterpreter(): Promise<string | undefined> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  return (await pythonExtension())?.environments?.getActiveEnvironmentPath?.(folder)?.path;
}
