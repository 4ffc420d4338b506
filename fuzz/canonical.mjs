// RFC 8785 in JavaScript, whose numbers and strings it is made from: one document a line in, its canonical
// text a line out.

import { readFileSync, writeSync } from "node:fs";

function canonical(value) {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  // Strings are compared by their UTF-16 units.
  const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.join(",")}}`;
}

const lines = readFileSync(0, "utf8").split("\n").filter((line) => line !== "");
let rest = Buffer.from(lines.map((line) => canonical(JSON.parse(line)) + "\n").join(""), "utf8");
while (rest.length > 0) {
  try {
    rest = rest.subarray(writeSync(1, rest));
  } catch (error) {
    if (error.code !== "EAGAIN") throw error;
  }
}
