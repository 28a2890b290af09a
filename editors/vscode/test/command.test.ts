import assert from "node:assert/strict";
import test from "node:test";
import { serverCommand, type Surroundings } from "../src/command";

const SERVER = ["server", "--stdio"];
const NOTHING = { path: "", interpreter: "" };

function around(changes: Partial<Surroundings> = {}): Surroundings {
  return { interpreter: undefined, platform: "linux", isFile: () => true, ...changes };
}

test("without anything the one on the PATH is started", () => {
  assert.deepEqual(serverCommand(NOTHING, around()), { command: "speedlint", args: SERVER });
});

test("a configured path goes before all else", () => {
  const settings = { path: "/opt/speedlint", interpreter: "/venv/bin/python" };
  assert.deepEqual(serverCommand(settings, around()), { command: "/opt/speedlint", args: SERVER });
});

test("the speedlint beside the chosen interpreter is started", () => {
  const found = serverCommand(NOTHING, around({ interpreter: "/venv/bin/python" }));
  assert.deepEqual(found, { command: "/venv/bin/speedlint", args: SERVER });
});

test("a configured interpreter goes before the chosen one", () => {
  const settings = { path: "", interpreter: "/own/bin/python" };
  assert.equal(serverCommand(settings, around({ interpreter: "/venv/bin/python" })).command, "/own/bin/speedlint");
});

test("a chosen interpreter without speedlint leaves the one on the PATH", () => {
  const found = serverCommand(NOTHING, around({ interpreter: "/venv/bin/python", isFile: () => false }));
  assert.deepEqual(found, { command: "speedlint", args: SERVER });
});

test("a configured interpreter without a script beside it runs the module", () => {
  const settings = { path: "", interpreter: "/own/bin/python" };
  const found = serverCommand(settings, around({ isFile: () => false }));
  assert.deepEqual(found, { command: "/own/bin/python", args: ["-m", "speedlint", ...SERVER] });
});

test("Windows keeps scripts beside a virtual environment's interpreter, and below another one's", () => {
  const windows = (interpreter: string) => serverCommand(NOTHING, around({ platform: "win32", interpreter })).command;
  assert.equal(windows("C:\\venv\\Scripts\\python.exe"), "C:\\venv\\Scripts\\speedlint.exe");
  assert.equal(windows("C:\\Python\\python.exe"), "C:\\Python\\Scripts\\speedlint.exe");
});
