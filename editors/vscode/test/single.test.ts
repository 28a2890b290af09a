import assert from "node:assert/strict";
import test from "node:test";
import { Single } from "../src/single";

/** What happens, as servers are made that start or not, and can be ended only where they run. */
function single(...starts: boolean[]): { one: Single; said: string[] } {
  const said: string[] = [];
  let made = 0;
  const make = async () => {
    const number = ++made;
    const runs = starts.shift() ?? true;
    const act = async (what: string) => {
      said.push(`${what} ${number}`);
      if (!runs) {
        throw new Error(`${what} ${number} failed`);
      }
    };
    return { start: () => act("start"), dispose: () => act("end") };
  };
  return { one: new Single(make, (error) => said.push(String(error))), said };
}

test("a restart ends the server before", async () => {
  const { one, said } = single();
  await Promise.all([one.restart(), one.restart(), one.stop()]);
  assert.deepEqual(said, ["start 1", "end 1", "start 2", "end 2"]);
});

test("after one that did not start, the next one does", async () => {
  const { one, said } = single(false, true);
  await one.restart();
  await one.restart();
  assert.deepEqual(said, ["start 1", "Error: start 1 failed", "end 1", "start 2"]);
});
